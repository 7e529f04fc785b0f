// Package ticket makes and checks the tickets that a purchase may need: who has
// one has asked after the start, is the buyer it names, and buys one order, which
// the ticket names too. Nothing is stored anywhere. Time and keys are passed in.
//
// A ticket is an order id, then in base64url 60 bytes:
//
//	expiry in ms     6 bytes
//	buyer           12 bytes of a SHA-256
//	product         12 bytes of a SHA-256
//	activity        12 bytes of a SHA-256
//	signature       18 bytes of the HMAC-SHA256 of all that
package ticket

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"time"

	"github.com/seckill-edge/seckill/internal/order"
)

const (
	expirySize = 6
	digestSize = 12
	claimsSize = expirySize + 3*digestSize
	macSize    = 18
	// Length is the length of every ticket, in bytes.
	Length = order.IDLength + (claimsSize+macSize)/3*4
)

// Strict, so that no two texts are the same ticket; the sizes leave no spare bits.
var encoding = base64.RawURLEncoding.Strict()

// Holder is who may use a ticket, and what for.
type Holder struct {
	UserID     string
	ProductID  string
	ActivityID string
}

// Flaw is what is wrong with a ticket.
type Flaw int

// The flaws. A ticket that has several is said to have the first one.
const (
	None          Flaw = iota
	Forged             // no ticket of ours: cut short, changed, or signed with a key that is not known
	OtherUser          // another buyer's
	OtherProduct       // another product's
	OtherActivity      // another activity's of the same product
	Expired
	Used // for an order that may have been given back so long ago that nobody knows; Check does not say so
)

// String names the flaw the way metrics do.
func (f Flaw) String() string {
	switch f {
	case None:
		return "good"
	case Forged:
		return "invalid"
	case OtherUser:
		return "other_buyer"
	case OtherProduct:
		return "other_product"
	case OtherActivity:
		return "other_activity"
	case Expired:
		return "expired"
	case Used:
		return "used"
	}
	return "unknown"
}

// Sign makes the ticket that lets h buy the order orderID before expires.
// orderID must be valid.
func (k *Keys) Sign(h Holder, orderID string, expires time.Time) string {
	s := k.signers[0].Get().(*signer)
	defer k.signers[0].Put(s)
	s.raw = appendExpiry(s.raw[:0], expires)
	s.raw = s.appendDigest(s.raw, h.UserID)
	s.raw = s.appendDigest(s.raw, h.ProductID)
	s.raw = s.appendDigest(s.raw, h.ActivityID)
	s.raw = append(s.raw, s.sum(orderID, s.raw)...)
	s.text = append(s.text[:0], orderID...)
	s.text = encoding.AppendEncode(s.text, s.raw)
	return string(s.text)
}

// Check says which order the ticket is good for, if h holds it at now; or what is
// wrong with it. Of one that has expired it names the order all the same: its holder
// may ask what it has bought. It compares in constant time what is secret.
func (k *Keys) Check(ticket string, h Holder, now time.Time) (orderID string, flaw Flaw) {
	if len(ticket) != Length || !order.ValidID(ticket[:order.IDLength]) {
		return "", Forged
	}
	orderID = ticket[:order.IDLength]
	for i := range k.signers {
		s := k.signers[i].Get().(*signer)
		flaw = s.check(ticket, h, now)
		k.signers[i].Put(s)
		if flaw != Forged {
			break
		}
	}
	if flaw != None && flaw != Expired {
		return "", flaw
	}
	return orderID, flaw
}

func (s *signer) check(ticket string, h Holder, now time.Time) Flaw {
	s.text = append(s.text[:0], ticket[order.IDLength:]...)
	raw, err := encoding.AppendDecode(s.raw[:0], s.text)
	s.raw = raw
	if err != nil || len(raw) != claimsSize+macSize {
		return Forged
	}
	claims, mac := raw[:claimsSize], raw[claimsSize:]
	if !hmac.Equal(s.sum(ticket[:order.IDLength], claims), mac) {
		return Forged
	}
	expires, digests := readExpiry(claims), claims[expirySize:]
	switch {
	case !s.isDigest(digests[:digestSize], h.UserID):
		return OtherUser
	case !s.isDigest(digests[digestSize:2*digestSize], h.ProductID):
		return OtherProduct
	case !s.isDigest(digests[2*digestSize:], h.ActivityID):
		return OtherActivity
	case !now.Before(expires):
		return Expired
	}
	return None
}

func (s *signer) appendDigest(b []byte, id string) []byte {
	s.id = append(s.id[:0], id...)
	sum := sha256.Sum256(s.id)
	return append(b, sum[:digestSize]...)
}

func (s *signer) isDigest(digest []byte, id string) bool {
	s.id = append(s.id[:0], id...)
	sum := sha256.Sum256(s.id)
	return hmac.Equal(sum[:digestSize], digest)
}

func appendExpiry(b []byte, t time.Time) []byte {
	ms := uint64(t.UnixMilli())
	for shift := 8 * (expirySize - 1); shift >= 0; shift -= 8 {
		b = append(b, byte(ms>>shift))
	}
	return b
}

func readExpiry(claims []byte) time.Time {
	var ms uint64
	for _, c := range claims[:expirySize] {
		ms = ms<<8 | uint64(c)
	}
	return time.UnixMilli(int64(ms))
}
