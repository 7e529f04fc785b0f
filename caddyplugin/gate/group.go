package gate

import (
	"context"
	"runtime"
	"sync"
	"time"

	"github.com/seckill-edge/seckill/internal/killpoint"
	"github.com/seckill-edge/seckill/internal/order"
	"github.com/seckill-edge/seckill/lua"
)

// group gathers the clicks of one product and reserves for all that wait with
// one script call. There is no timer: while a call is on its way the next clicks
// gather. A second call goes out beside the first only when at least secondCall
// wait, which happens when the network is slower than loopback or a call hangs.
type group struct {
	sale *sale
	wake chan struct{}
	quit chan struct{} // closed once drained

	mu      sync.Mutex
	waiting []*ticket
	calls   int          // workers at work, at most len(flight)
	flight  [2][]*ticket // what each worker has taken and not answered
	// carried is what is tried again (see carryLocked), carrying that somebody does.
	carried  []*ticket
	carrying bool
	retry    chan struct{}
	closed   bool
	drained  bool
}

func newGroup(s *sale) *group {
	g := &group{sale: s, quit: make(chan struct{}), retry: make(chan struct{}, 1)}
	g.wake = make(chan struct{}, len(g.flight))
	for i := range g.flight {
		s.gate.start(func() { g.work(i) })
	}
	return g
}

// join adds a click. It returns false if the group is closed or too many wait.
func (g *group) join(t *ticket) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed || len(g.waiting)+len(g.carried) >= g.sale.gate.cfg.Waiting {
		return false
	}
	g.waiting = append(g.waiting, t)
	if g.calls == 0 || g.calls < len(g.flight) && len(g.waiting) >= secondCall {
		g.calls++
		g.wake <- struct{}{}
	}
	return true
}

// work is one of the two workers.
func (g *group) work(i int) {
	for {
		select {
		case <-g.wake:
		case <-g.quit:
			return
		}
		for first := true; ; first = false {
			// Two yields let the clicks that are runnable now join this batch.
			runtime.Gosched()
			runtime.Gosched()
			batch, overdue := g.take(i, first)
			if len(overdue) > 0 {
				g.giveUp(overdue, false)
			}
			if batch == nil {
				break
			}
			g.decide(i, batch)
		}
	}
}

// decide asks Redis for worker i's batch and answers it. What cannot be answered
// yet, and was told "queued" or may have been reserved, is carried on.
func (g *group) decide(i int, batch []*ticket) {
	n, weight := int64(len(batch)), weightOf(batch)
	g.sale.carried.Add(n)
	reply, err := g.firstTry(batch)
	if err != nil && mayHaveRun(err) {
		for _, t := range batch {
			t.unknown = true // and stays counted as carried
		}
		g.land(i, batch)
		return
	}
	g.land(i, nil)
	g.sale.crowd.leave(weight)
	var late []*ticket
	if err == nil {
		killpoint.Here(killpoint.AfterReserve)
		late = g.answer(batch, reply)
	} else {
		late = refuse(batch)
	}
	g.sale.carried.Add(-n)
	g.sale.crowd.stay(late)
	g.mu.Lock()
	g.carryLocked(late)
	g.mu.Unlock()
}

// firstTry calls for a batch unless the circuit is open.
func (g *group) firstTry(batch []*ticket) (lua.Batch, error) {
	view := g.sale.view.Load()
	other := false
	for _, t := range batch {
		t.came = view.ID
		if t.activity != "" && t.activity != view.ID {
			t.came, other = t.activity, true
		}
	}
	switch {
	case other:
		return lua.Batch{}, errOtherActivity
	case g.sale.breaker.open.Load():
		return lua.Batch{}, errCircuitOpen
	}
	return g.reserve(view, batch)
}

// refuse answers a batch of which Redis has run nothing: 503, come again. It
// returns the clicks that were told "queued" before.
func refuse(batch []*ticket) (late []*ticket) {
	for _, t := range batch {
		if !t.reply(lua.Result{Outcome: lua.Unavailable}) {
			late = append(late, t)
		}
	}
	return late
}

// take hands worker i its next batch; nil sends it to sleep. A worker that is
// not the only one goes on only if enough wait for two. What has waited for too
// long to be sent at all is overdue.
func (g *group) take(i int, first bool) (batch, overdue []*ticket) {
	g.mu.Lock()
	defer g.mu.Unlock()
	overdue = g.overdueLocked()
	n := min(len(g.waiting), batchMax)
	if n == 0 || !first && g.calls > 1 && n < secondCall {
		g.calls--
		g.closeIfIdleLocked()
		return nil, overdue
	}
	batch = g.cutLocked(n)
	g.flight[i] = batch
	return batch, overdue
}

// overdueLocked takes the clicks out whose time to be reserved is over. They stand
// in front.
func (g *group) overdueLocked() []*ticket {
	if len(g.waiting) == 0 {
		return nil
	}
	last, n := g.sale.gate.deps.Now().Add(-g.sale.gate.reserveWithin()), 0
	for n < len(g.waiting) && g.waiting[n].joined.Before(last) {
		n++
	}
	return g.cutLocked(n)
}

// cutLocked takes the first n that wait.
func (g *group) cutLocked(n int) []*ticket {
	if n == 0 {
		return nil
	}
	cut := make([]*ticket, n)
	copy(cut, g.waiting)
	rest := copy(g.waiting, g.waiting[n:])
	clear(g.waiting[rest:])
	g.waiting = g.waiting[:rest]
	return cut
}

// land takes worker i's batch out of the watchdog's sight: from here on its
// tickets may be freed, but for those that are carried.
func (g *group) land(i int, carried []*ticket) {
	g.mu.Lock()
	g.flight[i] = nil
	g.carryLocked(carried)
	g.mu.Unlock()
}

// answer gives every click its result and forwards what was reserved. What the
// reply says of the sale is noted first: whoever clicks after the answer meets it. It
// returns the clicks that are undecided: they were told "queued", and Redis cannot
// sell now, which nobody has decided. An earlier call for a ticket of unknown outcome
// may have reserved what this one found reserved.
func (g *group) answer(batch []*ticket, reply lua.Batch) (undecided []*ticket) {
	g.note(reply)
	orders := make([]order.Order, 0, len(batch))
	for i, t := range batch {
		r, request, resent := reply.Results[i], t.request, t.unknown // the ticket may be reused once it is answered
		if r.Outcome == lua.NoProduct {
			r.Outcome = lua.Unavailable // this edge knows better: Redis has lost it
		}
		if r.Outcome == lua.Reserved && !r.Repeat {
			o := order.Order{
				ID: request.OrderID, ActivityID: reply.ActivityID, ProductID: g.sale.product,
				UserID: request.UserID, Quantity: request.Quantity, Claim: r.Claim, ReservedAt: reply.At,
			}
			if e := r.Earlier; e != nil { // by another use of the ticket, which may have asked for more
				o.Quantity, o.ReservedAt = e.Quantity, e.At
			}
			if r.Earlier == nil || resent && r.Earlier.Mark == lua.MarkQueued {
				orders = append(orders, o)
			}
		}
		switch {
		case t.reply(r):
		case r.Outcome == lua.Unavailable:
			t.unknown = false // it is not in Redis
			undecided = append(undecided, t)
		default:
			g.sale.gate.learnLate(g.sale, request.OrderID, r)
		}
	}
	if len(orders) > 0 {
		g.sale.gate.publish.add(g.sale, orders)
	}
	return undecided
}

func (g *group) note(reply lua.Batch) {
	g.sale.crowd.learn(reply.Available, reply.At)
	g.sale.confirm(reply)
	for _, r := range reply.Results {
		switch r.Outcome {
		case lua.Held, lua.Unavailable, lua.Ended:
			g.sale.lookNow()
			return
		case lua.Reserved, lua.SoldOut:
			if reply.Available == 0 {
				g.sale.sellOut(reply.At)
				return
			}
		default: // says nothing of the sale
		}
	}
}

// expire tells every click that has waited since before the given time "queued".
// It holds the lock throughout, so that a worker, which lands its batch under the
// same lock before it answers, finds every late order noted.
func (g *group) expire(before time.Time) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, list := range [...][]*ticket{g.flight[0], g.flight[1], g.waiting} {
		for _, t := range list {
			if t.joined.After(before) {
				break // lists are in order of arrival
			}
			g.tellQueued(t)
		}
	}
	for _, t := range g.carried { // not in order of arrival
		if !t.joined.After(before) {
			g.tellQueued(t)
		}
	}
}

func (g *group) tellQueued(t *ticket) {
	t.giveUp(func() { g.sale.gate.late.add(g.sale.product, t) })
}

// drain lets no further click in and waits until those inside are answered, or
// ctx ends.
func (g *group) drain(ctx context.Context) {
	g.mu.Lock()
	g.closed = true
	g.closeIfIdleLocked()
	g.mu.Unlock()
	select {
	case <-g.quit:
	case <-ctx.Done():
	}
}

func (g *group) closeIfIdleLocked() {
	if g.closed && !g.drained && g.calls == 0 && len(g.waiting) == 0 && !g.carrying {
		g.drained = true
		close(g.quit)
	}
}
