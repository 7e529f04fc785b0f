package gate

import (
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/seckill-edge/seckill/lua"
)

// crowd is what is on its way to Redis for one product, in units. When that is
// more than the units left can serve, whatever share of it is in vain, the surplus
// is refused at once: it would wait only to hear "sold out", in front of those who
// come for units that have come back.
//
// It errs on the side of letting in. What fits into one call costs nothing more,
// so it is always let in; and as each call's answer says anew what is left, units
// that have come back are known as soon as somebody asks. Who asks for more than is
// left counts as one unit: he takes none, and must not keep out those who would.
type crowd struct {
	coming atomic.Int64
	left   atomic.Int64

	mu sync.Mutex
	at time.Time // of left, by Redis's clock
}

// learn takes Redis's word on the units left at a time. An older word than the
// last is late, unless Redis's clock was set back. Below 0 it cannot be read.
func (c *crowd) learn(left int64, at time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if late := c.at.Sub(at); left < 0 || late > 0 && late < freshMin {
		return
	}
	c.at = at
	c.left.Store(left)
}

// join adds units to what is on its way, and says as how many they count, which
// must leave again; false if they are surplus.
func (c *crowd) join(units, surplus int64) (weight int64, ok bool) {
	left := c.left.Load()
	if weight = units; weight > left {
		weight = 1
	}
	if coming := c.coming.Add(weight); surplus < 0 || coming == weight || coming <= max(batchMax, surplus*left) {
		return weight, true
	}
	c.leave(weight)
	return 0, false
}

// leave takes off what has come back from Redis, or does not go there.
func (c *crowd) leave(units int64) { c.coming.Add(-units) }

// stay counts clicks again that are still on their way, though they have left.
func (c *crowd) stay(clicks []*ticket) { c.coming.Add(weightOf(clicks)) }

func weightOf(batch []*ticket) (n int64) {
	for _, t := range batch {
		n += t.weight
	}
	return n
}

// pass lets a click through to Redis, or says why not. What is let through must
// leave the crowd by its weight.
func (g *Gate) pass(s *sale, units int64) (d Decision, weight int64, ok bool) {
	d.Outcome = lua.Reserved
	if weight, ok = s.crowd.join(units, int64(g.cfg.Surplus)); !ok {
		d.Outcome, d.RetryAfter = lua.Crowded, time.Duration(1+rand.IntN(2))*time.Second
	} else if d.Limit = g.enterSale(s); !d.Limit.In() {
		s.crowd.leave(weight)
		d.Outcome, d.RetryAfter = lua.Limited, time.Duration(d.Limit.RetryAfter)*time.Second
	}
	return d, weight, d.Outcome == lua.Reserved
}
