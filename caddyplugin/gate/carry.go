package gate

import (
	"time"

	"github.com/seckill-edge/seckill/lua"
)

const (
	// carrySoon is the first pause before the carried clicks are tried again; it
	// doubles up to carryLate while that fails.
	carrySoon = 20 * time.Millisecond
	carryLate = time.Second
)

// carryLocked takes over clicks that cannot be refused now: those that were told
// "queued", and those that Redis may have reserved. They are tried again under the
// same order ids, which has no second effect, beside the circuit breaker and by one
// goroutine with a bounded pace, until Redis has decided or their time to be
// reserved is over. The workers are free for new clicks meanwhile.
func (g *group) carryLocked(clicks []*ticket) {
	if len(clicks) == 0 {
		return
	}
	g.carried = append(g.carried, clicks...)
	if !g.carrying {
		g.carrying = true
		g.sale.gate.start(g.carry)
	}
}

// carry runs until nothing is carried, or the gate stops.
func (g *group) carry() {
	for wait := carrySoon; ; {
		goOn := g.restBeforeRetry(wait)
		batch, left := g.takeCarried(!goOn)
		switch {
		case !left:
			return
		case len(batch) == 0:
		case g.tryAgain(batch):
			wait = carrySoon
			continue
		}
		wait = min(2*wait, carryLate)
	}
}

// restBeforeRetry waits, less if the circuit closes; false when the gate stops.
func (g *group) restBeforeRetry(wait time.Duration) bool {
	t := time.NewTimer(jitter(wait))
	defer t.Stop()
	select {
	case <-t.C:
	case <-g.retry:
	case <-g.sale.gate.ctx.Done():
		return false
	}
	return true
}

// retryNow tries the carried clicks without waiting any longer.
func (g *group) retryNow() {
	select {
	case g.retry <- struct{}{}:
	default:
	}
}

// takeCarried hands out the clicks to try next, which stay in the watchdog's sight.
// What has no time left, or all of it at the end of the gate, is given up. left is
// false when nothing is carried any more.
func (g *group) takeCarried(all bool) (batch []*ticket, left bool) {
	g.mu.Lock()
	last := g.sale.gate.deps.Now().Add(-g.sale.gate.reserveWithin())
	var over []*ticket
	keep := g.carried[:0]
	for _, t := range g.carried {
		if all || t.joined.Before(last) {
			over = append(over, t)
		} else {
			keep = append(keep, t)
		}
	}
	clear(g.carried[len(keep):])
	g.carried = keep
	batch = append(batch, keep[:min(len(keep), batchMax)]...)
	g.mu.Unlock()
	g.giveUp(over, all)
	g.mu.Lock()
	defer g.mu.Unlock()
	g.carrying = len(g.carried) > 0
	g.closeIfIdleLocked()
	return batch, g.carrying
}

// giveUp ends what was carried in vain. A click that Redis has certainly not run is
// refused. What it may have run is told by Redis's record of it, or is lost.
func (g *group) giveUp(clicks []*ticket, stopping bool) {
	for _, t := range clicks {
		id, unknown := t.request.OrderID, t.unknown
		g.sale.crowd.leave(t.weight)
		if unknown {
			g.sale.carried.Add(-1)
		}
		if !t.reply(lua.Result{Outcome: lua.Unavailable}) && !unknown && !stopping {
			g.sale.gate.learnLate(g.sale, id, lua.Result{Outcome: lua.Unavailable})
		}
	}
}

// tryAgain calls for carried clicks; false if Redis has decided none of them.
func (g *group) tryAgain(batch []*ticket) bool {
	view := g.sale.view.Load()
	if batch = g.sameActivity(view, batch); len(batch) == 0 {
		return true
	}
	for _, t := range batch {
		if !t.unknown { // else it is counted from before
			g.sale.carried.Add(1)
		}
	}
	reply, err := g.reserve(view, batch)
	if err != nil {
		g.again(batch, mayHaveRun(err))
		return false
	}
	g.mu.Lock()
	g.dropCarriedLocked(batch)
	g.mu.Unlock()
	n := len(batch)
	g.sale.crowd.leave(weightOf(batch))
	undecided := g.answer(batch, reply)
	g.sale.carried.Add(-int64(n))
	g.sale.crowd.stay(undecided)
	g.mu.Lock()
	g.carried = append(g.carried, undecided...) // behind those that wait for their turn
	g.mu.Unlock()
	return len(undecided) < n
}

// again notes a failed try. Redis has certainly run nothing of it unless mayRun.
func (g *group) again(batch []*ticket, mayRun bool) {
	for _, t := range batch {
		switch {
		case t.unknown:
		case mayRun:
			t.unknown = true
		default:
			g.sale.carried.Add(-1)
		}
	}
}

// sameActivity leaves out the clicks that came for another activity of the product:
// that one is over.
func (g *group) sameActivity(view *localView, batch []*ticket) []*ticket {
	same := batch[:0:0]
	var other []*ticket
	for _, t := range batch {
		if t.came == view.ID {
			same = append(same, t)
		} else {
			other = append(other, t)
		}
	}
	if len(other) > 0 {
		g.mu.Lock()
		g.dropCarriedLocked(other)
		g.mu.Unlock()
		g.giveUp(other, false)
	}
	return same
}

// dropCarriedLocked takes clicks out of the watchdog's sight: from here on their
// tickets may be freed.
func (g *group) dropCarriedLocked(clicks []*ticket) {
	gone := make(map[*ticket]bool, len(clicks))
	for _, t := range clicks {
		gone[t] = true
	}
	keep := g.carried[:0]
	for _, t := range g.carried {
		if !gone[t] {
			keep = append(keep, t)
		}
	}
	clear(g.carried[len(keep):])
	g.carried = keep
}
