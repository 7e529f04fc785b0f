package backend

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/seckill-edge/seckill/backend/activities"
	"github.com/seckill-edge/seckill/backend/metrics"
	"github.com/seckill-edge/seckill/backend/reconcile"
	"github.com/seckill-edge/seckill/backend/settle"
	"github.com/seckill-edge/seckill/lua"
)

const (
	relayEvery   = time.Second
	keepEvery    = time.Second
	followEvery  = 10 // relay passes
	presentEvery = 250 * time.Millisecond
)

// work is what one backend does for all of them, while it has the lease.
func (b *Backend) work(ctx context.Context, _ int64) {
	var watching sync.WaitGroup
	defer watching.Wait()
	watching.Go(func() { b.keepActivities(ctx) })
	watching.Go(func() {
		failing := ""
		b.reconciler.NewWatch().Run(ctx, func(err error) { failing = b.tell(ctx, "fence", failing, err) })
	})
	watching.Go(func() {
		failing := ""
		b.pay.RunExpiry(ctx, func(err error) { failing = b.tell(ctx, "expiry", failing, err) })
	})
	watching.Go(func() {
		failing := ""
		b.promise.Run(ctx, func(err error) { failing = b.tell(ctx, "promise", failing, err) })
	})
	tick := time.NewTicker(relayEvery)
	defer tick.Stop()
	failing := ""
	for n := 0; ; n++ {
		err := b.relay.Pass(ctx)
		if n%followEvery == 0 { // also while the broker is away
			err = errors.Join(err, b.follower.Pass(ctx))
		}
		failing = b.tell(ctx, "relay", failing, err)
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// keepActivities does what has its time in the activities' lives.
func (b *Backend) keepActivities(ctx context.Context) {
	keeper := activities.NewKeeper(b.activities)
	tick := time.NewTicker(keepEvery)
	defer tick.Stop()
	for failing := ""; ; {
		failing = b.tell(ctx, "activities", failing, keeper.Pass(ctx))
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// tell logs a failure when it begins, when it turns into another, and when it
// is over: once, not each second.
func (b *Backend) tell(ctx context.Context, who, before string, err error) string {
	if ctx.Err() != nil {
		return before
	}
	now := ""
	if err != nil {
		now = err.Error()
	}
	switch {
	case now == before:
	case err != nil:
		b.deps.Log.Warn(who+": pass failed; trying again and again", "error", err)
	default:
		b.deps.Log.Info(who + ": works again")
	}
	return now
}

// present tells whoever proves a stock what this backend has in hand, until ctx
// ends. A Redis that does not hear it is nobody's to prove.
func (b *Backend) present(ctx context.Context) {
	tick := time.NewTicker(presentEvery)
	defer tick.Stop()
	for {
		call, cancel := context.WithTimeout(ctx, time.Second)
		_ = lua.PresentBackend(call, b.deps.Redis, b.id, b.inHand)
		cancel()
		select {
		case <-tick.C:
		case <-ctx.Done():
			if b.settler.Pending() > 0 {
				// It ends like one that has died: whoever reconciles then looks for what
				// Redis has not been told of.
				return
			}
			call, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
			defer cancel()
			if err := lua.AbsentBackends(call, b.deps.Redis, b.id); err != nil {
				b.deps.Log.Debug("backend not taken off the list; it counts as dead soon", "error", err)
			}
			return
		}
	}
}

// Reconcile compares Redis, queue and SQL for the activity that product sells
// through, else its newest, and mends what has one right answer unless dry.
func (b *Backend) Reconcile(ctx context.Context, product string, dry bool) (reconcile.Report, error) {
	view, err := b.activities.Show(ctx, product)
	if err != nil {
		return reconcile.Report{}, err
	}
	return b.reconciler.Reconcile(ctx, view.Activity, dry)
}

// tellWithin is how long a payment's answer waits for room among what Redis is to
// be told.
const tellWithin = 250 * time.Millisecond

// tellRedis hands moves of stored orders to the settler. It does not end with the
// request that has caused them.
func (b *Backend) tellRedis(ctx context.Context, moves []settle.Order) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), tellWithin)
	defer cancel()
	return b.settler.Put(ctx, moves)
}

// migrate brings the schema up to date once the database answers.
func (b *Backend) migrate(ctx context.Context) {
	for pause := 250 * time.Millisecond; ; pause = min(pause*2, 5*time.Second) {
		applied, err := b.deps.Store.Migrate(ctx)
		if err == nil {
			b.deps.Log.Info("database schema is up to date", "applied", applied)
			return
		}
		if ctx.Err() != nil {
			return
		}
		b.deps.Log.Warn("database schema not brought up to date; trying for ever", "error", err, "again_in", pause)
		timer := time.NewTimer(pause)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return
		}
	}
}

// NotReady names what keeps orders from being stored, with the reason; empty
// when all is well. It asks each server within ctx.
func (b *Backend) NotReady(ctx context.Context) map[string]error {
	type check struct {
		name string
		err  error
	}
	checks := []func() check{
		func() check { return check{"redis", b.deps.Redis.Ping(ctx).Err()} },
		func() check { return check{"database", b.deps.Store.SchemaReady(ctx)} },
		func() check { return check{"queue", b.publisher.Ready()} },
		func() check { return check{"consumer", b.consumer.Ready()} },
	}
	answers := make(chan check, len(checks))
	for _, ask := range checks {
		go func() { answers <- ask() }()
	}
	missing := map[string]error{}
	for range checks {
		if c := <-answers; c.err != nil {
			missing[c.name] = c.err
		}
	}
	return missing
}

// source is what a scrape shows of the stores.
type source struct{ *Backend }

func (s source) Unsettled() int { return s.settler.Pending() }

func (s source) Depth(ctx context.Context) (waiting, dead int, err error) {
	return s.deps.Broker.Depth(ctx)
}

func (s source) RefundsDue(ctx context.Context) (int64, error) { return s.deps.Store.RefundsDue(ctx) }

// Unready counts the activities that are due and not ready.
func (s source) Unready(ctx context.Context) (map[string]int, error) {
	found, err := s.activities.Unready(ctx)
	if err != nil {
		return nil, err
	}
	counts := map[string]int{}
	for _, o := range activities.Obstacles {
		counts[string(o)] = found[o]
	}
	return counts, nil
}

// Stocks audits each live activity.
func (s source) Stocks(ctx context.Context) ([]metrics.Stock, error) {
	audits, err := s.activities.AuditAll(ctx)
	if err != nil {
		err = fmt.Errorf("auditing for a scrape: %w", err)
	}
	stocks := make([]metrics.Stock, len(audits))
	for i, a := range audits {
		stocks[i] = metrics.Stock{
			Product: a.ProductID, Total: a.Total, Available: a.Available, Frozen: a.Frozen, Sold: a.Sold, Outbox: a.Outbox, Drift: a.Drift,
			DriftUnknown: !a.QueueKnown,
		}
	}
	return stocks, err
}
