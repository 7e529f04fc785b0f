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
	closed  bool
	drained bool
}

func newGroup(s *sale) *group {
	g := &group{sale: s, quit: make(chan struct{})}
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
	if g.closed || len(g.waiting) >= g.sale.gate.cfg.Waiting {
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
				g.sale.crowd.leave(weightOf(overdue))
				g.fail(overdue, errNotExecuted)
			}
			if batch == nil {
				break
			}
			n, weight := int64(len(batch)), weightOf(batch)
			g.sale.carried.Add(n)
			reply, resent, err := g.call(batch)
			g.land(i)
			g.sale.crowd.leave(weight)
			if err != nil {
				g.fail(batch, err)
			} else {
				killpoint.Here(killpoint.AfterReserve)
				g.answer(batch, reply, resent)
			}
			g.sale.carried.Add(-n)
		}
	}
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
// tickets may be freed.
func (g *group) land(i int) {
	g.mu.Lock()
	g.flight[i] = nil
	g.mu.Unlock()
}

// answer gives every click its result and forwards what was reserved. What the
// reply says of the sale is noted first: whoever clicks after his answer meets it.
// resent says that an earlier call of the batch may have reserved what this one
// found reserved.
func (g *group) answer(batch []*ticket, reply lua.Batch, resent bool) {
	g.note(reply)
	orders := make([]order.Order, 0, len(batch))
	for i, t := range batch {
		r, request := reply.Results[i], t.request // the ticket may be reused once it is answered
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
		if !t.reply(r) {
			g.sale.gate.learnLate(request.OrderID, r)
		}
	}
	if len(orders) > 0 {
		g.sale.gate.publish.add(g.sale, orders)
	}
}

func (g *group) note(reply lua.Batch) {
	g.sale.crowd.learn(reply.Available, reply.At)
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

// fail answers a batch that Redis did not: 503, come again. Clicks that were
// told "queued" before learn their fate from Fate.
func (g *group) fail(batch []*ticket, err error) {
	for _, t := range batch {
		id := t.request.OrderID
		if !t.reply(lua.Result{Outcome: lua.Unavailable}) && notExecuted(err) {
			g.sale.gate.learnLate(id, lua.Result{Outcome: lua.Unavailable})
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
			t.giveUp(func() { g.sale.gate.late.add(g.sale.product, t) })
		}
	}
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
	if g.closed && !g.drained && g.calls == 0 && len(g.waiting) == 0 {
		g.drained = true
		close(g.quit)
	}
}
