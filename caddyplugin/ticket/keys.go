package ticket

import (
	"crypto/hmac"
	"crypto/sha256"
	"errors"
	"fmt"
	"hash"
	"slices"
	"sync"
)

const (
	// MinSecret is the least length of a secret, in bytes: that of a SHA-256.
	MinSecret = 32
	// MaxKeys is the most keys at once. Each costs a forged ticket one signature
	// more.
	MaxKeys = 4
)

// purpose begins all that is signed, so that a secret which is used for something
// else, too, signs no ticket there.
const purpose = "seckill ticket 1\n"

// Keys are the secrets of tickets. They are safe for concurrent use.
type Keys struct {
	signers []sync.Pool // of *signer, one pool a secret
}

// signer is what one signature needs, kept for the next one.
type signer struct {
	mac                    hash.Hash
	raw, text, id, out, in []byte
}

// NewKeys takes 1 to MaxKeys secrets of at least MinSecret bytes each: the first
// one signs, all verify. So a key is changed in three steps, each on every edge
// before the next: add the new one as the last, make it the first, and take away
// the old one when its last ticket has expired. Errors never show a secret.
func NewKeys(secrets []string) (*Keys, error) {
	if len(secrets) == 0 || len(secrets) > MaxKeys {
		return nil, fmt.Errorf("%d keys: there must be 1 to %d", len(secrets), MaxKeys)
	}
	k := &Keys{signers: make([]sync.Pool, len(secrets))}
	for i, secret := range secrets {
		if len(secret) < MinSecret {
			return nil, fmt.Errorf("key %d has %d bytes, and must have at least %d; make one with: openssl rand -base64 48", i+1, len(secret), MinSecret)
		}
		if slices.Contains(secrets[:i], secret) {
			return nil, errors.New("two keys are the same; give each once")
		}
		key := []byte(secret)
		k.signers[i].New = func() any { return &signer{mac: hmac.New(sha256.New, key)} }
	}
	return k, nil
}

// sum signs an order id and claims. What it returns is good until the next call.
func (s *signer) sum(orderID string, claims []byte) []byte {
	s.in = append(s.in[:0], purpose...)
	s.in = append(s.in, orderID...)
	s.in = append(s.in, claims...)
	s.mac.Reset()
	s.mac.Write(s.in)
	s.out = s.mac.Sum(s.out[:0])
	return s.out[:macSize]
}
