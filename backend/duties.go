package backend

import (
	"context"
	"sync"
	"time"

	"github.com/seckill-edge/seckill/backend/activities"
	"github.com/seckill-edge/seckill/backend/duty"
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

// work is what one backend does for all of them, while it has the lease and the
// database remembers all.
func (b *Backend) work(ctx context.Context) {
	var watching sync.WaitGroup
	defer watching.Wait()
	watching.Go(func() { b.keepActivities(ctx) })
	watching.Go(func() { b.reconciler.NewWatch().Run(ctx, b.teller(ctx, duty.Fence)) })
	watching.Go(func() { b.pay.RunExpiry(ctx, b.teller(ctx, duty.Expiry)) })
	watching.Go(func() { b.promise.Run(ctx, b.teller(ctx, duty.Promise)) })
	tick := time.NewTicker(relayEvery)
	defer tick.Stop()
	for n := 0; ; n++ {
		_ = b.passes.Pass(ctx, duty.Relay, func() error { return b.relay.Pass(ctx) })
		if n%followEvery == 0 { // also while the broker is away
			_ = b.passes.Pass(ctx, duty.Activities, func() error { return b.follower.Pass(ctx) })
		}
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
	for {
		_ = b.passes.Pass(ctx, duty.Keeper, func() error { return keeper.Pass(ctx) })
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// teller notes how each pass of a duty ends.
func (b *Backend) teller(ctx context.Context, name duty.Name) func(error) {
	return func(err error) { b.passes.Tell(ctx, name, "", err) }
}

// present tells whoever proves a stock what this backend has in hand, until ctx
// ends. A Redis that does not hear it is nobody's to prove.
func (b *Backend) present(ctx context.Context) {
	tick := time.NewTicker(presentEvery)
	defer tick.Stop()
	for {
		_ = b.passes.Pass(ctx, duty.Presence, func() error {
			call, cancel := context.WithTimeout(ctx, time.Second)
			defer cancel()
			_ = lua.PresentBackend(call, b.deps.Redis, b.id, b.inHand, b.health.now()) // health says why it cannot
			return nil
		})
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
			if err := duty.Safely(func() error { return lua.AbsentBackends(call, b.deps.Redis, b.id) }); err != nil {
				b.deps.Log.Debug("backend not taken off the list; it counts as dead soon", "error", err)
			}
			return
		}
	}
}

// Reconcile compares Redis, queue and SQL for the activity that product sells
// through, else its newest, and mends what has one right answer unless dry.
func (b *Backend) Reconcile(ctx context.Context, product string, dry bool) (reconcile.Report, error) {
	if err := b.tide.Wait(ctx); err != nil {
		return reconcile.Report{}, err
	}
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
		err := b.passes.Pass(ctx, duty.Migrate, func() error {
			applied, err := b.deps.Store.Migrate(ctx)
			if err == nil {
				b.deps.Log.Info("database schema is up to date", "applied", applied)
			}
			return err
		})
		if err == nil || ctx.Err() != nil {
			return
		}
		timer := time.NewTimer(pause)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return
		}
	}
}
