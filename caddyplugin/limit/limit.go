// Package limit keeps one token bucket for each client address, in bounded
// memory. The buckets are golang.org/x/time/rate's; what is ours is forgetting
// them without giving anything away.
package limit

import (
	"hash/maphash"
	"math"
	"net/netip"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

const (
	shards = 64
	// probes is how many random buckets an insert looks at, to drop those that
	// are full again. Two would keep pace with the inserts; four win ground.
	probes = 4
)

// Limiter limits many addresses alike. It is safe for concurrent use.
//
// A bucket that has refilled is no different from a new one, so only such
// buckets are ever forgotten: a flood of new addresses cannot make the limiter
// forget an abuser. When no more buckets fit, addresses that are not known
// share one overflow bucket of a shard.
type Limiter struct {
	rate   rate.Limit
	burst  int
	seed   maphash.Seed
	shards [shards]shard
}

type shard struct {
	mu       sync.Mutex
	buckets  map[netip.Addr]*rate.Limiter
	max      int
	overflow *rate.Limiter
}

// New makes a limiter: every address has perSecond tokens a second and up to
// burst at once; at most max addresses are told apart (rounded up to a multiple
// of 64; a bucket costs about 200 bytes). perSecond must be above 0, burst and
// max at least 1.
func New(perSecond float64, burst, max int) *Limiter {
	l := &Limiter{rate: rate.Limit(perSecond), burst: burst, seed: maphash.MakeSeed()}
	for i := range l.shards {
		l.shards[i] = shard{
			buckets:  make(map[netip.Addr]*rate.Limiter),
			max:      (max + shards - 1) / shards,
			overflow: rate.NewLimiter(l.rate, burst),
		}
	}
	return l
}

// Key is what an address is limited by: an IPv4 address itself (also when it
// comes mapped into IPv6), an IPv6 address by its /64, because that is what one
// customer is given. The zero Addr is a key like any other.
func Key(addr netip.Addr) netip.Addr {
	addr = addr.Unmap().WithZone("")
	if addr.Is6() {
		if p, err := addr.Prefix(64); err == nil {
			return p.Addr()
		}
	}
	return addr
}

// Allow takes a token of addr's bucket at now. If there is none it says how long
// until there is.
func (l *Limiter) Allow(addr netip.Addr, now time.Time) (ok bool, wait time.Duration) {
	key := Key(addr)
	s := &l.shards[maphash.Comparable(l.seed, key)%shards]
	bucket := s.bucket(key, now, l.rate, l.burst)
	if bucket.AllowN(now, 1) {
		return true, 0
	}
	missing := 1 - bucket.TokensAt(now)
	if missing <= 0 {
		missing = math.SmallestNonzeroFloat64
	}
	return false, time.Duration(missing / float64(l.rate) * float64(time.Second))
}

func (s *shard) bucket(key netip.Addr, now time.Time, r rate.Limit, burst int) *rate.Limiter {
	s.mu.Lock()
	defer s.mu.Unlock()
	if b, ok := s.buckets[key]; ok {
		return b
	}
	s.forgetFullLocked(now, burst)
	if len(s.buckets) >= s.max {
		return s.overflow
	}
	b := rate.NewLimiter(r, burst)
	s.buckets[key] = b
	return b
}

// forgetFullLocked looks at a few buckets (a map is walked from a random place)
// and drops those that are full.
func (s *shard) forgetFullLocked(now time.Time, burst int) {
	n := 0
	for key, b := range s.buckets {
		if b.TokensAt(now) >= float64(burst) {
			delete(s.buckets, key)
		}
		if n++; n == probes {
			return
		}
	}
}

// Len is the number of addresses told apart now.
func (l *Limiter) Len() int {
	n := 0
	for i := range l.shards {
		s := &l.shards[i]
		s.mu.Lock()
		n += len(s.buckets)
		s.mu.Unlock()
	}
	return n
}
