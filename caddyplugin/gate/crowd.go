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
// that have come back are known as soon as somebody asks.
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
	if late := c.at.Sub(at); left < 0 || late > 0 && late < freshFor {
		return
	}
	c.at = at
	c.left.Store(left)
}

// join adds units to what is on its way; false if they are surplus.
func (c *crowd) join(units, surplus int64) bool {
	coming := c.coming.Add(units)
	if surplus < 0 || coming == units || coming <= max(batchMax, surplus*c.left.Load()) {
		return true
	}
	c.leave(units)
	return false
}

// leave takes off what has come back from Redis, or does not go there.
func (c *crowd) leave(units int64) { c.coming.Add(-units) }

func unitsOf(batch []*ticket) int64 {
	n := 0
	for _, t := range batch {
		n += t.request.Quantity
	}
	return int64(n)
}

// pass lets a click through to Redis, or says why not. What is let through must
// leave the crowd.
func (g *Gate) pass(s *sale, units int64) (Decision, bool) {
	d := Decision{Outcome: lua.Reserved}
	if !s.crowd.join(units, int64(g.cfg.Surplus)) {
		d.Outcome, d.RetryAfter = lua.Crowded, time.Duration(1+rand.IntN(2))*time.Second
	} else if d.Limit = g.enterSale(s); !d.Limit.In() {
		s.crowd.leave(units)
		d.Outcome, d.RetryAfter = lua.Limited, time.Duration(d.Limit.RetryAfter)*time.Second
	}
	return d, d.Outcome == lua.Reserved
}
