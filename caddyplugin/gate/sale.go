package gate

import (
	"context"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"github.com/seckill-edge/seckill/lua"
)

const (
	// lookEvery is how often a sale's view is renewed; lookShut while Redis does
	// not answer or the activity is held, so that it opens again at once.
	lookEvery = time.Second
	lookShut  = 200 * time.Millisecond
	// freshFor is how old a view may be before the sale is shut.
	freshFor = 3 * time.Second
	// clockSlack is how far the edge trusts its estimate of Redis's clock: within
	// it, start and end are left to the script.
	clockSlack = 50 * time.Millisecond
)

// sale is one product's activity as this edge sees it: the view, and the group
// that reserves for it.
type sale struct {
	gate    *Gate
	product string
	group   *group
	view    atomic.Pointer[localView]
	// soldOut is set by the reply of a reservation at once, and by each look;
	// soldOutAt is the time of that reply in ms, by Redis's clock: an older look
	// that comes in later must not unsay it.
	soldOut   atomic.Bool
	soldOutAt atomic.Int64
	// shut is set when Redis failed; only a look that succeeds clears it.
	shut atomic.Bool
	// nudge asks for a look now.
	nudge chan struct{}
}

// localView is a snapshot and when it was taken by the edge's clock.
type localView struct {
	lua.Snapshot
	seen time.Time
}

// serverNow estimates Redis's clock.
func (v *localView) serverNow(now time.Time) time.Time { return v.Now.Add(now.Sub(v.seen)) }

func newSale(g *Gate, product string, snapshot lua.Snapshot, now time.Time) *sale {
	s := &sale{gate: g, product: product, nudge: make(chan struct{}, 1)}
	s.see(snapshot, now)
	s.group = newGroup(s)
	g.start(s.watch)
	return s
}

func (s *sale) see(snapshot lua.Snapshot, now time.Time) {
	s.view.Store(&localView{Snapshot: snapshot, seen: now})
	if snapshot.Available == 0 || snapshot.Now.UnixMilli() > s.soldOutAt.Load() {
		s.soldOut.Store(snapshot.Available == 0)
	}
}

func (s *sale) sellOut(at time.Time) {
	s.soldOutAt.Store(at.UnixMilli())
	s.soldOut.Store(true)
}

// watch renews the view until the gate closes or the activity is gone.
func (s *sale) watch() {
	timer := time.NewTimer(jitter(lookEvery))
	defer timer.Stop()
	for {
		select {
		case <-s.gate.ctx.Done():
			return
		case <-timer.C:
		case <-s.nudge:
		}
		if !s.look() {
			s.gate.sales.forget(s.product)
			s.group.drain(s.gate.ctx)
			return
		}
		next := lookEvery
		if v := s.view.Load(); s.shut.Load() || v.State != lua.Open {
			next = lookShut
		}
		timer.Reset(jitter(next))
	}
}

// look asks Redis once. It returns false if the activity is gone.
func (s *sale) look() bool {
	ctx, cancel := context.WithTimeout(s.gate.ctx, callTimeout)
	defer cancel()
	snapshot, found, err := lua.Audit(ctx, s.gate.deps.Redis, s.product)
	if err != nil {
		if s.gate.ctx.Err() == nil {
			s.shutDown(err)
		}
		return true
	}
	if !found {
		return false
	}
	s.see(snapshot, s.gate.deps.Now())
	if s.shut.CompareAndSwap(true, false) {
		s.gate.deps.Log.Info("Redis answers again, the entrance is open", "product", s.product)
	}
	return true
}

// shutDown closes the entrance until a look succeeds.
func (s *sale) shutDown(err error) {
	if s.shut.CompareAndSwap(false, true) {
		s.gate.deps.Log.Error("Redis does not answer, the entrance is closed; asking again until it does",
			"product", s.product, "error", err)
	}
	s.lookNow()
}

// lookNow asks watch for a look without waiting for it.
func (s *sale) lookNow() {
	select {
	case s.nudge <- struct{}{}:
	default:
	}
}

// refusal says from memory whether a click is certainly in vain: sold out,
// closed, too early, too late, Redis away. Reserved means: ask Redis.
func (s *sale) refusal(now time.Time, quantity int) (lua.Outcome, time.Duration) {
	v := s.view.Load()
	if s.shut.Load() || now.Sub(v.seen) > freshFor {
		return lua.Held, time.Second
	}
	if v.Damaged || v.State == lua.OnHold {
		return lua.Held, time.Second
	}
	server := v.serverNow(now)
	switch {
	case v.State == lua.Closed || server.Sub(v.End) > clockSlack:
		return lua.Ended, 0
	case v.Start.Sub(server) > clockSlack:
		return lua.NotStarted, v.Start.Sub(server)
	case quantity > v.Limit:
		return lua.BadArguments, 0
	case s.soldOut.Load():
		return lua.SoldOut, 0
	}
	return lua.Reserved, 0
}

// jitter spreads d by a tenth, so that the edges do not look in step.
func jitter(d time.Duration) time.Duration {
	return d - d/20 + rand.N(d/10)
}
