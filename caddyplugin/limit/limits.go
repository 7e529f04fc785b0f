package limit

import (
	"hash/maphash"
	"math/rand/v2"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/time/rate"
)

// Limit is the limit of one level.
type Limit struct {
	Rate
	// Shadow counts and tells what would be refused, and lets it in.
	Shadow bool
}

// Config says what is limited, and how much.
type Config struct {
	// Limits are those of the levels, nil for none.
	Limits [levels]*Limit
	// IPv4Bits and IPv6Bits are how much of an address one client has, in bits.
	IPv4Bits, IPv6Bits int
	// Allow is not limited by its address, Deny is not let in at all. Who is on
	// both is denied.
	Allow, Deny Prefixes
}

// Count is what became of the calls that a level was asked about.
type Count struct{ Allowed, Refused, Shadowed uint64 }

// Stats are the counters of Limits since New.
type Stats struct {
	// Levels counts by level, Denied the calls of addresses on the deny list,
	// Exempt those that the allow list spared the limit of their address.
	Levels         [levels]Count
	Denied, Exempt uint64
	// Addresses, Users and Products are told apart now.
	Addresses, Users, Products int
}

// Limits applies the local limits and keeps their state when they are changed. It
// is safe for concurrent use. Make one with New.
type Limits struct {
	plan   atomic.Pointer[plan]
	using  sync.Mutex // held by Use
	counts [levels]struct{ allowed, refused, shadowed atomic.Uint64 }
	denied atomic.Uint64
	exempt atomic.Uint64
}

// plan is a config with its buckets.
type plan struct {
	Config
	policies [levels]string
	keyed    [levels]*keyed        // of ip, user and the activities
	whole    [levels]*rate.Limiter // of the totals
}

// New makes limits that limit nothing; see Use.
func New() *Limits {
	l := &Limits{}
	l.plan.Store(&plan{})
	return l
}

// Use changes the limits from now on. Whoever has spent his tokens has spent them
// under the new limits too, unless his level was off, or addresses are grouped in
// another way. The config must be valid (Rate.Validate; 1 to 32 and 128 bits).
func (l *Limits) Use(c Config, now time.Time) {
	l.using.Lock()
	defer l.using.Unlock()
	old, next := l.plan.Load(), &plan{Config: c}
	regrouped := old.IPv4Bits != c.IPv4Bits || old.IPv6Bits != c.IPv6Bits
	for _, level := range Levels {
		limit := c.Limits[level]
		if limit == nil {
			continue
		}
		next.policies[level] = limit.policy(level.String())
		switch level {
		case Total, SharedTotal:
			if next.whole[level] = old.whole[level]; next.whole[level] == nil {
				next.whole[level] = limit.bucket()
			}
			limit.adjust(next.whole[level], now)
		default:
			if next.keyed[level] = old.keyed[level]; next.keyed[level] == nil || level == IP && regrouped {
				next.keyed[level] = newKeyed(limit.Rate, maxKeys)
			}
			next.keyed[level].adjust(limit.Rate, now)
		}
	}
	l.plan.Store(next)
}

// Enter asks the lists, the limit of the address and the limit of this edge, in
// this order: what is refused by one takes nothing from the next. Clients without
// an address, with the zero Addr, share one bucket.
func (l *Limits) Enter(addr netip.Addr, now time.Time) (v Verdict) {
	p := l.plan.Load()
	addr = addr.Unmap().WithZone("")
	if p.Deny.Contain(addr) {
		l.denied.Add(1)
		return Verdict{Denied: true}
	}
	if k := p.keyed[IP]; k != nil {
		if p.Allow.Contain(addr) {
			l.exempt.Add(1)
		} else {
			ok, wait := k.allow(maphash.Comparable(k.seed, p.group(addr)), now)
			l.note(&v, p, IP, ok, wait)
		}
	}
	if whole := p.whole[Total]; whole != nil && !v.Refused {
		ok, wait := take(whole, now)
		l.note(&v, p, Total, ok, wait)
	}
	return v
}

// group is what an address is limited by: its network, of the length that one
// client is given.
func (p *plan) group(addr netip.Addr) netip.Addr {
	bits := p.IPv4Bits
	if addr.Is6() {
		bits = p.IPv6Bits
	}
	if prefix, err := addr.Prefix(bits); err == nil {
		return prefix.Addr()
	}
	return addr
}

// User asks the limit of a buyer.
func (l *Limits) User(user string, now time.Time) Verdict { return l.ask(User, user, now) }

// Activity asks this edge's limit of a product. It is for products that there are:
// any other would be kept apart, too.
func (l *Limits) Activity(product string, now time.Time) Verdict {
	return l.ask(Activity, product, now)
}

func (l *Limits) ask(level Level, key string, now time.Time) (v Verdict) {
	p := l.plan.Load()
	if k := p.keyed[level]; k != nil {
		ok, wait := k.allow(maphash.String(k.seed, key), now)
		l.note(&v, p, level, ok, wait)
	}
	return v
}

// Lease asks a limit that all edges share, that of a product or, with SharedTotal,
// of all, by what this edge has taken of it.
func (l *Limits) Lease(level Level, product string, lease *Lease, now time.Time) (v Verdict) {
	p := l.plan.Load()
	if limit := p.Limits[level]; limit != nil {
		own := p.whole[level]
		if k := p.keyed[level]; k != nil {
			own = k.bucket(maphash.String(k.seed, product), now)
		}
		ok, wait := lease.allow(limit.Rate, own, now)
		l.note(&v, p, level, ok, wait)
	}
	return v
}

// note counts what a level says, and writes it into v.
func (l *Limits) note(v *Verdict, p *plan, level Level, ok bool, wait time.Duration) {
	switch count := &l.counts[level]; {
	case ok:
		count.allowed.Add(1)
		return
	case p.Limits[level].Shadow:
		count.shadowed.Add(1)
		v.Shadowed = v.Shadowed.with(level)
		return
	default:
		count.refused.Add(1)
	}
	v.Refused, v.Level = true, level
	v.Policy = p.policies[level]
	seconds := int((wait + time.Second - 1) / time.Second)
	v.RetryAfter = max(1, seconds) + rand.IntN(1+max(1, seconds/4))
}

// Stats returns the counters.
func (l *Limits) Stats() Stats {
	s := Stats{Denied: l.denied.Load(), Exempt: l.exempt.Load()}
	for i := range l.counts {
		c := &l.counts[i]
		s.Levels[i] = Count{Allowed: c.allowed.Load(), Refused: c.refused.Load(), Shadowed: c.shadowed.Load()}
	}
	p := l.plan.Load()
	for level, n := range map[Level]*int{IP: &s.Addresses, User: &s.Users, Activity: &s.Products} {
		if k := p.keyed[level]; k != nil {
			*n = k.len()
		}
	}
	return s
}
