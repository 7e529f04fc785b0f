package gate

import (
	"context"
	"errors"
	"net"
	"time"

	"github.com/seckill-edge/seckill/lua"
)

// errOtherActivity refuses a batch in the moment in which the product's next
// activity has taken the place of the one that a click is meant for.
var errOtherActivity = errors.New("the activity has changed")

// reserve calls for clicks that all have seen the activity of view. If it was held
// and opened again since the last look it calls again under the new epoch: these
// clicks came under that one. Clicks on another activity did not.
func (g *group) reserve(view *localView, batch []*ticket) (lua.Batch, error) {
	requests := make([]lua.Request, len(batch))
	first := batch[0].joined
	for i, t := range batch {
		requests[i] = t.request
		if t.joined.Before(first) {
			first = t.joined
		}
	}
	reply, err := g.callOnce(view.Epoch, first, requests)
	if err == nil && reply.State == lua.Open && reply.Epoch != view.Epoch && reply.ActivityID == view.ID {
		g.sale.lookNow()
		reply, err = g.callOnce(reply.Epoch, first, requests)
	}
	return reply, err
}

// callOnce calls for clicks of which the first came at the time first. A call that
// reaches Redis too late to keep its promise, because this process or the network
// stood still, reserves nothing there: another edge may have told the buyer that
// their order is lost.
func (g *group) callOnce(epoch int64, first time.Time, requests []lua.Request) (lua.Batch, error) {
	gate := g.sale.gate
	ctx, cancel := context.WithTimeout(gate.ctx, gate.cfg.callTimeout)
	defer cancel()
	start := gate.deps.Now()
	until := g.sale.view.Load().serverNow(first).Add(gate.reserveWithin())
	reply, err := lua.ReserveUntil(ctx, gate.deps.Redis, g.sale.product, epoch, until, requests)
	gate.stats.calls.Add(1)
	gate.stats.callSeconds.since(start, gate.deps.Now())
	gate.stats.batchSize.observe(float64(len(requests)))
	if err != nil {
		gate.stats.callErrors.Add(1)
		g.sale.breaker.note(err)
		g.sale.lookNow()
	} else if wrote(reply) {
		g.sale.breaker.note(nil)
	}
	return reply, err
}

// wrote says that Redis has reserved something now: it takes writes.
func wrote(reply lua.Batch) bool {
	for _, r := range reply.Results {
		if r.Outcome == lua.Reserved && r.Earlier == nil && !r.Repeat {
			return true
		}
	}
	return false
}

// reserveWithin is how long after a click its order may be reserved at the latest:
// what is left of the promise then is for the way to the database.
func (g *Gate) reserveWithin() time.Duration { return g.cfg.ResolveWithin * 2 / 3 }

// mayHaveRun says whether Redis may have run a call that failed.
func mayHaveRun(err error) bool {
	return !errors.Is(err, errCircuitOpen) && !errors.Is(err, errOtherActivity) && lua.MayHaveRun(err)
}

func isTimeout(err error) bool {
	var timeout net.Error
	return errors.As(err, &timeout) && timeout.Timeout()
}

// sleep waits for d; it returns false at once when the gate stops.
func (g *Gate) sleep(d time.Duration) bool {
	t := time.NewTimer(jitter(d))
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-g.ctx.Done():
		return false
	}
}

// watchdog gives up waiting for Redis on behalf of the clicks.
func (g *Gate) watchdog() {
	tick := time.NewTicker(max(g.cfg.ReserveTimeout/10, time.Millisecond))
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-g.ctx.Done():
			return
		}
		before := g.deps.Now().Add(-g.cfg.ReserveTimeout)
		for _, s := range g.sales.all() {
			s.group.expire(before)
		}
		g.records.expire(before)
	}
}
