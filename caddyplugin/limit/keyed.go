package limit

import (
	"hash/maphash"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

const (
	shards = 64
	// maxKeys bounds the buckets of one level, about 110 bytes each.
	maxKeys = 1 << 19
	// probes is how many random buckets an insert looks at, to drop those that are
	// full again. Two would keep pace with the inserts; more win ground, and find a
	// fuller one to drop where none is full.
	probes = 4
)

// keyed limits many keys alike. It is safe for concurrent use.
//
// A bucket that has refilled is no different from a new one, so such buckets are
// forgotten first. When no more fit, the fullest of a few makes room. So newcomers
// are always let in, and an abuser, whose bucket is empty, is not forgotten however
// many new keys come: to have him forgotten, as many keys must be as empty as his,
// and each of them has spent more than he gains.
//
// Keys are known by 64 bits of a hash whose seed nobody can learn: that two share
// a bucket is as likely as guessing it.
type keyed struct {
	seed   maphash.Seed
	shards [shards]shard
}

type shard struct {
	mu      sync.Mutex
	rate    Rate
	max     int
	buckets map[uint64]*rate.Limiter
}

// newKeyed tells at most max keys apart, rounded up to a multiple of 64.
func newKeyed(r Rate, max int) *keyed {
	k := &keyed{seed: maphash.MakeSeed()}
	for i := range k.shards {
		s := &k.shards[i]
		s.rate, s.max = r, (max+shards-1)/shards
		s.buckets = make(map[uint64]*rate.Limiter)
	}
	return k
}

// allow takes a token of the bucket of a hash made with seed. If there is none it
// says how long until there is.
func (k *keyed) allow(hash uint64, now time.Time) (ok bool, wait time.Duration) {
	return take(k.bucket(hash, now), now)
}

func (k *keyed) bucket(hash uint64, now time.Time) *rate.Limiter {
	return k.shards[hash%shards].bucket(hash, now)
}

func (s *shard) bucket(hash uint64, now time.Time) *rate.Limiter {
	s.mu.Lock()
	defer s.mu.Unlock()
	if b, ok := s.buckets[hash]; ok {
		return b
	}
	s.makeRoomLocked(now)
	b := s.rate.bucket()
	s.buckets[hash] = b
	return b
}

// makeRoomLocked looks at a few buckets (a map is walked from a random place) and
// drops those that are full; if there is still no room, the fullest.
func (s *shard) makeRoomLocked(now time.Time) {
	n, fullest, most := 0, uint64(0), -1.0
	for hash, b := range s.buckets {
		tokens := b.TokensAt(now)
		if tokens >= float64(s.rate.Burst) {
			delete(s.buckets, hash)
		} else if tokens > most {
			fullest, most = hash, tokens
		}
		if n++; n == probes {
			break
		}
	}
	if len(s.buckets) >= s.max {
		delete(s.buckets, fullest)
	}
}

// adjust gives all keys another rate, and takes from nobody what he has left.
func (k *keyed) adjust(r Rate, now time.Time) {
	for i := range k.shards {
		s := &k.shards[i]
		s.mu.Lock()
		if s.rate != r {
			s.rate = r
			for _, b := range s.buckets {
				r.adjust(b, now)
			}
		}
		s.mu.Unlock()
	}
}

// len is the number of keys told apart now.
func (k *keyed) len() int {
	n := 0
	for i := range k.shards {
		s := &k.shards[i]
		s.mu.Lock()
		n += len(s.buckets)
		s.mu.Unlock()
	}
	return n
}
