package gate

import (
	"context"
	"errors"
	"net"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/seckill-edge/seckill/lua"
)

// errNotExecuted marks a failed call of which Redis has certainly run nothing.
var errNotExecuted = errors.New("not executed")

// errOtherActivity refuses a batch in the moment in which the product's next
// activity has taken the place of the one that a click is meant for.
var errOtherActivity = errors.New("the activity has changed")

func notExecuted(err error) bool { return errors.Is(err, errNotExecuted) }

// call reserves for a batch. A call whose outcome is unknown (time-out, lost
// connection) is repeated with the same order ids, which has no second effect,
// until Redis says or half of ResolveWithin is over. The entrance is shut
// meanwhile, so that nobody queues up behind it. resent says that there was such
// a call before the one that was answered.
//
// A call that reaches Redis too late to keep its promise, because this process or
// the network stood still, reserves nothing there: another edge may have told the
// buyer that his order is lost.
func (g *group) call(batch []*ticket) (reply lua.Batch, resent bool, err error) {
	gate := g.sale.gate
	view := g.sale.view.Load()
	requests := make([]lua.Request, len(batch))
	for i, t := range batch {
		requests[i] = t.request
		if t.activity != "" && t.activity != view.ID {
			return lua.Batch{}, false, errors.Join(errNotExecuted, errOtherActivity)
		}
	}
	epoch := view.Epoch
	deadline := gate.deps.Now().Add(gate.cfg.ResolveWithin / 2)
	renewed, unknown := false, false // unknown: the outcome of a call
	// The first try goes through the breaker and may trip it. Later ones go beside
	// it: they finish what may have been begun.
	reply, err = g.sale.breaker.reserve(func() (lua.Batch, error) { return g.callOnce(epoch, batch[0].joined, requests) })
	for wait := 20 * time.Millisecond; ; wait = min(2*wait, time.Second) {
		if err == nil {
			if !renewed && reply.State == lua.Open && reply.Epoch != epoch && reply.ActivityID == view.ID {
				// The activity was held and opened again since the last look; these
				// clicks came under the new epoch. Clicks on another activity did not.
				renewed, epoch = true, reply.Epoch
				g.sale.lookNow()
				reply, err = g.callOnce(epoch, batch[0].joined, requests)
				continue
			}
			return reply, unknown, nil
		}
		g.sale.lookNow()
		unknown = unknown || !notSent(err)
		if !unknown {
			return lua.Batch{}, false, errors.Join(errNotExecuted, err)
		}
		if gate.deps.Now().After(deadline) || !gate.sleep(wait) {
			return lua.Batch{}, false, err
		}
		reply, err = g.callOnce(epoch, batch[0].joined, requests)
	}
}

// callOnce calls for clicks of which the first came at the time first.
func (g *group) callOnce(epoch int64, first time.Time, requests []lua.Request) (lua.Batch, error) {
	gate := g.sale.gate
	ctx, cancel := context.WithTimeout(gate.ctx, callTimeout)
	defer cancel()
	start := gate.deps.Now()
	until := g.sale.view.Load().serverNow(first).Add(gate.reserveWithin())
	reply, err := lua.ReserveUntil(ctx, gate.deps.Redis, g.sale.product, epoch, until, requests)
	gate.stats.calls.Add(1)
	gate.stats.callSeconds.since(start, gate.deps.Now())
	gate.stats.batchSize.observe(float64(len(requests)))
	if err != nil {
		gate.stats.callErrors.Add(1)
	}
	return reply, err
}

// reserveWithin is how long after a click its order may be reserved at the latest:
// what is left of the promise then is for the way to the database.
func (g *Gate) reserveWithin() time.Duration { return g.cfg.ResolveWithin * 2 / 3 }

// notSent says whether err proves that Redis has run nothing: the breaker was
// open, it could not be dialled, no connection was free, or it answered with an error (LOADING,
// READONLY, OOM …; the scripts check first and write last).
func notSent(err error) bool {
	var op *net.OpError
	if errors.As(err, &op) && op.Op == "dial" {
		return true
	}
	var reply redis.Error
	return errors.Is(err, redis.ErrPoolTimeout) || errors.As(err, &reply) || breakerOpen(err)
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
