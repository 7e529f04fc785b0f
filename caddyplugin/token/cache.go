package token

import (
	"crypto/sha256"
	"encoding/binary"
	"sync/atomic"
	"time"
)

const (
	// places is how many verified tokens are remembered, at about 150 bytes each.
	// Verifying one costs 70 allocations, and with EdDSA as much time as ten answers;
	// a buyer asks again and again within seconds, and an edge that answers 40,000
	// requests a second has met 200,000 of them in five.
	places = 1 << 18
	// ways is how many places a token may have. With one, a quarter of 20,000 tokens
	// drove each other out of 65,536 places.
	ways = 4
)

// cache remembers verified tokens. Each may lie in a few places only, so memory is
// bounded and no lock is needed: one that is moved on just now may not be found, and
// is then verified again.
type cache struct {
	sets [places / ways]set
}

type set [ways]atomic.Pointer[verified]

type verified struct {
	sum     [sha256.Size]byte
	user    string
	expires time.Time
}

func newCache() *cache { return new(cache) }

func sumOf(token string) [sha256.Size]byte { return sha256.Sum256([]byte(token)) }

func (c *cache) set(sum *[sha256.Size]byte) *set {
	return &c.sets[binary.LittleEndian.Uint64(sum[:])%uint64(len(c.sets))]
}

// get finds a token that has been verified and has not expired at now.
func (c *cache) get(sum [sha256.Size]byte, now time.Time) (user string, ok bool) {
	s := c.set(&sum)
	for i := range s {
		if v := s[i].Load(); v != nil && v.sum == sum {
			return v.user, now.Before(v.expires)
		}
	}
	return "", false
}

// put remembers a token in front of its set. Those before it move one place on, up to
// that of none or of itself; else the one that was put first is forgotten, however
// long it is good: what was seen a month ago is not to be in a crowd's way.
func (c *cache) put(sum [sha256.Size]byte, user string, expires time.Time) {
	s := c.set(&sum)
	next := &verified{sum: sum, user: user, expires: expires}
	for i := range s {
		was := s[i].Swap(next)
		if was == nil || was.sum == sum {
			return
		}
		next = was
	}
}
