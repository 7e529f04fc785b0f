package gate

import (
	"context"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"github.com/seckill-edge/seckill/caddyplugin/limit"
	"github.com/seckill-edge/seckill/lua"
)

const (
	// lookEvery is how often a sale's view is renewed; lookShut while Redis does
	// not answer or the activity is held, so that it opens again at once.
	lookEvery = time.Second
	lookShut  = 200 * time.Millisecond
	// lookGap is the least time between two looks, however many changes come.
	lookGap = 20 * time.Millisecond
	// A view is fresh for freshLooks times as long as looks take to come round, but
	// at least freshMin and at most freshMax: a machine or a Redis that is slow sells
	// slowly instead of shutting. A Redis that is away is the circuit breaker's
	// business. An old view cannot oversell: the script checks everything itself; it
	// only sends clicks to Redis that are in vain, or refuses some that are not.
	freshLooks = 3
	freshMin   = 3 * time.Second
	freshMax   = 15 * time.Second
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
	breaker *breaker
	view    atomic.Pointer[localView]
	// soldOut is set by the reply of a reservation at once, and by each look;
	// soldOutAt is the time of that reply in ms, by Redis's clock: an older look
	// that comes in later must not unsay it.
	soldOut   atomic.Bool
	soldOutAt atomic.Int64
	// heard is when Redis has confirmed the view last, by a look or by the reply to a
	// reservation, fresh for how long that is believed. Both are durations, the
	// former since the gate's beginning.
	heard, fresh atomic.Int64
	// gone says that Redis has lost the activity in mid-sale.
	gone atomic.Bool
	// carried is the orders this edge is reserving, or has reserved and the broker
	// has not confirmed. It is what the edge tells the backend, see lua.Present.
	carried atomic.Int64
	// crowd is what is on its way to Redis, lease what is taken ahead of the
	// product's limit that all edges share.
	crowd crowd
	lease *limit.Lease
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

// over says that the activity sells nothing any more, whatever becomes of Redis.
func (v *localView) over(now time.Time) bool {
	return v.State == lua.Closed || v.serverNow(now).Sub(v.End) > clockSlack
}

func newSale(g *Gate, product string, snapshot lua.Snapshot, now time.Time) *sale {
	s := &sale{gate: g, product: product, breaker: &breaker{product: product, outage: g.outage}, nudge: make(chan struct{}, 1)}
	s.lease = g.newLease(product)
	s.fresh.Store(int64(freshMin))
	s.see(snapshot, now)
	s.group = newGroup(s)
	g.start(s.watch)
	return s
}

func (s *sale) see(snapshot lua.Snapshot, now time.Time) {
	s.view.Store(&localView{Snapshot: snapshot, seen: now})
	s.heard.Store(int64(now.Sub(s.gate.born)))
	s.crowd.learn(snapshot.Available, snapshot.Now)
	// A look that seems much older than the reply is from after the server's clock
	// went back.
	older := time.UnixMilli(s.soldOutAt.Load()).Sub(snapshot.Now)
	if snapshot.Available == 0 || older < 0 || older >= freshMin {
		s.soldOut.Store(snapshot.Available == 0)
	}
}

func (s *sale) sellOut(at time.Time) {
	s.soldOutAt.Store(at.UnixMilli())
	s.soldOut.Store(true)
}

// watch renews the view until the gate closes, or the activity is over and
// nothing of it is carried any more. What is asked of it then is a sight.
func (s *sale) watch() {
	timer := time.NewTimer(0) // the first look tells the backend that this edge is there
	defer timer.Stop()
	for looked := (time.Time{}); ; {
		select {
		case <-s.gate.ctx.Done():
			return
		case <-timer.C:
		case <-s.nudge:
			if wait := lookGap - s.gate.deps.Now().Sub(looked); wait > 0 {
				timer.Reset(wait)
				continue
			}
		}
		s.look()
		s.learnPace(s.gate.deps.Now().Sub(looked), looked.IsZero())
		looked = s.gate.deps.Now()
		v := s.view.Load()
		if s.ended(v) {
			s.gate.sales.forget(s.product)
			s.group.drain(s.gate.ctx)
			s.leave(s.gate.ctx)
			return
		}
		next := s.gate.cfg.lookEvery
		if s.closed() || v.State != lua.Open || !v.Proven() {
			next = lookShut
		}
		timer.Reset(jitter(next))
	}
}

// ended says that the sale can be forgotten. A view that cannot be read says
// nothing of the end.
func (s *sale) ended(v *localView) bool {
	return (s.gone.Load() || !v.Damaged) && v.over(s.gate.deps.Now()) && s.carried.Load() == 0
}

// look asks Redis once and tells what this edge carries. Telling that is a write, so
// a Redis that reads and refuses writes is found even if nobody buys; with the
// circuit open the look tries all that a purchase needs before it closes it.
func (s *sale) look() {
	ctx, cancel := context.WithTimeout(s.gate.ctx, s.gate.cfg.callTimeout)
	defer cancel()
	open := s.breaker.open.Load()
	snapshot, found, err := lua.Audit(ctx, s.gate.deps.Redis, s.product)
	if err == nil && open {
		err = lua.Probe(ctx, s.gate.deps.Redis, s.product)
	}
	if err != nil {
		if s.gate.ctx.Err() == nil {
			s.breaker.note(err) // which tells the log
		}
		return
	}
	if !found {
		s.breaker.note(nil)
		if s.gone.CompareAndSwap(false, true) && !s.view.Load().over(s.gate.deps.Now()) {
			s.gate.deps.Log.Error("Redis has lost the activity; the entrance is closed until a backend has rebuilt it", "product", s.product)
		}
		return
	}
	before := s.view.Load().Epoch
	s.see(snapshot, s.gate.deps.Now())
	s.gone.Store(false)
	if snapshot.Epoch != before {
		// A backend may have proven the stock, and written records anew.
		s.gate.streams.nudge(s.product)
	}
	// What was reserved under this epoch or an older one is in carried by now: it
	// is counted before the call and taken off after the confirm.
	word := lua.Edge{ID: s.gate.id, Epoch: snapshot.Epoch, Carried: s.carried.Load(), At: snapshot.Now}
	err = lua.Present(ctx, s.gate.deps.Redis, s.product, word)
	switch {
	case err == nil:
		s.breaker.note(nil)
		s.group.retryNow()
	case s.gate.ctx.Err() != nil:
	case lua.FaultOf(err).Transient(): // a Redis that refuses this word refuses purchases
		s.breaker.note(err)
	default: // its key is something else; a backend removes that
		s.breaker.note(nil)
		s.gate.deps.Log.Debug("the backend does not hear of this edge", "product", s.product, "error", err)
	}
}

// learnPace takes in how long it took from one look to the end of the next. One that
// is slow counts at once, and is forgotten slowly.
func (s *sale) learnPace(took time.Duration, first bool) {
	if first {
		return
	}
	slower := max(freshLooks*took, time.Duration(s.fresh.Load())*9/10)
	s.fresh.Store(int64(min(max(slower, freshMin), freshMax)))
}

// confirm renews the view's freshness: a reply has just said the same of the
// activity as the view does.
func (s *sale) confirm(reply lua.Batch) {
	v := s.view.Load()
	if reply.State == v.State && reply.Epoch == v.Epoch && reply.ActivityID == v.ID {
		s.heard.Store(int64(s.gate.deps.Now().Sub(s.gate.born)))
	}
}

// stale says that Redis has not confirmed the view for too long.
func (s *sale) stale(now time.Time) bool {
	return int64(now.Sub(s.gate.born))-s.heard.Load() > s.fresh.Load()
}

// leave takes the edge's word back when it carries nothing any more.
func (s *sale) leave(ctx context.Context) {
	if s.carried.Load() > 0 {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, s.gate.cfg.callTimeout)
	defer cancel()
	if err := lua.Absent(ctx, s.gate.deps.Redis, s.product, s.gate.id); err != nil {
		s.gate.deps.Log.Debug("the backend does not hear that this edge has left", "product", s.product, "error", err)
	}
}

// lookNow asks watch for a look without waiting for it.
func (s *sale) lookNow() {
	select {
	case s.nudge <- struct{}{}:
	default:
	}
}

// closed says that Redis cannot be asked or has lost the activity.
func (s *sale) closed() bool { return s.breaker.open.Load() || s.gone.Load() }

// refusal says from memory whether a click is certainly in vain: sold out,
// closed, too early, too late, Redis away. Reserved means: ask Redis.
func (s *sale) refusal(now time.Time, quantity int) (lua.Outcome, time.Duration) {
	v := s.view.Load()
	if s.closed() || s.stale(now) || v.Damaged {
		return lua.Unavailable, time.Second
	}
	switch server := v.serverNow(now); {
	case v.over(now):
		return lua.Ended, 0
	case v.Start.Sub(server) > clockSlack:
		return lua.NotStarted, v.Start.Sub(server)
	case v.HeldByOperator():
		return lua.Held, time.Second
	case v.State != lua.Open || !v.Proven():
		return lua.Unavailable, time.Second
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
