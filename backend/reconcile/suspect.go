package reconcile

import (
	"context"
	"fmt"
	"time"

	"github.com/seckill-edge/seckill/backend/relay"
	"github.com/seckill-edge/seckill/backend/store"
	"github.com/seckill-edge/seckill/internal/order"
	"github.com/seckill-edge/seckill/lua"
)

// A crash between SQL and Redis leaves a move that Redis has not been told of. With
// a pay window nothing shows it at once: units are frozen all the time. What gives
// it away, or makes it likely, is looked for here, so that the inspection comes soon.
const (
	// calm is how long two sums must stand and differ: longer than Redis is told in.
	calm = 1500 * time.Millisecond
	// afterCrash is how long after a crash all of its orders are old enough to be
	// judged.
	afterCrash = relay.Patience + time.Second
)

// sums are what SQL and Redis say of all units that are given away, or paid for.
type sums struct{ sql, redis int64 }

// suspicion is what speaks for a move that Redis has not been told of.
type suspicion struct {
	// crash is when a backend has died that may have left something, or when the
	// watch began and cannot know; zero once that was inspected.
	crash time.Time
	// given is a difference that stands since then; inspected is the last one that an
	// inspection has seen.
	given, inspected sums
	since            time.Time
	// paid is the units that SQL had as paid at paidAt; ask is when to ask again.
	paid, paidInspected int64
	paidAt, ask         time.Time
	// next is the earliest time for an inspection that is due to all this.
	next time.Time
}

// stands says that there is something to inspect at once.
func (u *suspicion) stands(a store.Activity, s lua.Snapshot, now time.Time) bool {
	if s.Outbox > 0 {
		u.given = sums{}
		return false
	}
	if s.Frozen == 0 {
		u.crash = time.Time{} // every move begins there
	}
	given := sums{a.Reserved, s.Frozen + s.Sold}
	if given != u.given {
		u.given, u.since = given, now
	}
	differs := given.sql != given.redis && given != u.inspected && now.Sub(u.since) >= calm
	// What SQL had as paid a while ago is sold in Redis by now.
	unpaid := s.Sold < u.paid && u.paid != u.paidInspected && now.Sub(u.paidAt) >= calm
	return (differs || unpaid || !u.crash.IsZero()) && !now.Before(u.next)
}

// asks says that it is time to ask SQL what is paid: not before Redis has caught up
// with the last answer, or an inspection has seen why it does not.
func (u *suspicion) asks(a store.Activity, s lua.Snapshot, now time.Time) bool {
	return (s.Sold >= u.paid || u.paid == u.paidInspected) && a.PayWindow > 0 && s.Frozen > 0 && s.Outbox == 0 && !now.Before(u.ask)
}

// settled notes that an inspection which began then has seen what there was.
func (u *suspicion) settled(began time.Time) {
	u.inspected, u.paidInspected = u.given, u.paid
	if began.Sub(u.crash) >= afterCrash {
		u.crash = time.Time{}
	}
}

// askPaid asks SQL how many units of an activity are paid for. On a large one that
// takes a moment; it takes a small part of the time only.
func (w *Watch) askPaid(ctx context.Context, a store.Activity, p *plan) {
	began := time.Now()
	asking, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	units, err := w.Store.Units(asking, a.ID, order.Paid)
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	if err == nil {
		p.paid, p.paidAt = units, now
	}
	p.ask = now.Add(max(listEvery, share*now.Sub(began)))
}

// deaths looks for backends that have gone silent since the last look without having
// said good-bye: what they had moved in SQL they may not have told Redis. The first
// look knows no one: every plan begins with a crash.
func (w *Watch) deaths(ctx context.Context, now time.Time) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	backends, err := lua.Backends(ctx, w.Redis)
	if err != nil {
		return err
	}
	clock, err := w.Redis.Time(ctx).Result()
	if err != nil {
		return fmt.Errorf("asking Redis for the time: %w", err)
	}
	silent := make(map[string]bool, len(backends))
	died := false
	for _, b := range backends {
		if !b.Silent(clock) {
			continue
		}
		silent[b.ID] = true
		died = died || w.silent != nil && !w.silent[b.ID]
	}
	w.silent = silent
	if !died {
		return nil
	}
	for _, p := range w.plans {
		p.mu.Lock()
		p.crash, p.rest = now, time.Time{}
		p.mu.Unlock()
	}
	return nil
}
