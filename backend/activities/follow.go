package activities

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/seckill-edge/seckill/backend/store"
	"github.com/seckill-edge/seckill/lua"
)

// Follower finishes what a crash has left half done between SQL and Redis. It
// only ever shuts: opening is the operator's and the Keeper's. It is not safe for concurrent use.
type Follower struct {
	*Service
	// seen are the disagreements of the last pass. One that stands in two passes
	// is nobody's step in progress.
	seen map[string]bool
}

// NewFollower makes a follower.
func NewFollower(s *Service) *Follower { return &Follower{Service: s} }

// Pass compares all activities that Redis has once. Passes are seconds apart.
func (f *Follower) Pass(ctx context.Context) error {
	all, err := f.Store.Activities(ctx)
	if err != nil {
		return fmt.Errorf("comparing activities: %w", err)
	}
	rows, products := map[string]store.Activity{}, map[string]bool{}
	for _, a := range all {
		rows[a.ID], products[a.ProductID] = a, true
	}
	seen := map[string]bool{}
	for _, product := range slices.Sorted(maps.Keys(products)) {
		snapshot, err := f.snapshot(ctx, product)
		if err != nil {
			return fmt.Errorf("comparing activities: %w", err)
		}
		if snapshot == nil {
			continue
		}
		// The one that Redis has need not be the newest.
		a, known := rows[snapshot.ID]
		if !known || a.ProductID != product {
			continue
		}
		if err := f.forgetArchived(ctx, a, *snapshot); err != nil {
			return fmt.Errorf("comparing activities: %w", err)
		}
		mend := f.mend(a, snapshot.State)
		if mend == nil {
			continue
		}
		seen[a.ID] = true
		if !f.seen[a.ID] {
			continue
		}
		f.Log.Warn("activity: finishing what was left half done", "activity", a.ID, "product", a.ProductID,
			"sql", a.State, "redis", snapshot.State)
		if err := mend(ctx); err != nil {
			return fmt.Errorf("finishing activity %s: %w", a.ID, err)
		}
	}
	f.seen = seen
	return nil
}

// mend returns what brings both to the same state, nil if nothing has to be done.
func (f *Follower) mend(a store.Activity, inRedis lua.ActivityState) func(context.Context) error {
	sql := func(to store.ActivityState) func(context.Context) error {
		return func(ctx context.Context) error {
			return f.Store.SetActivityState(ctx, a.ID, []store.ActivityState{a.State}, to)
		}
	}
	redis := func(to lua.ActivityState) func(context.Context) error {
		return func(ctx context.Context) error {
			_, _, err := lua.SetState(ctx, f.Redis, a.ProductID, a.ID, to)
			return err
		}
	}
	switch {
	case a.State == store.Closed && inRedis != lua.Closed:
		return redis(lua.Closed)
	case a.State != store.Closed && inRedis == lua.Closed:
		return sql(store.Closed)
	case a.State == store.Scheduled && a.Manual: // else the Keeper goes on
		return sql(store.Held)
	case a.State == store.Held && inRedis == lua.Open:
		return redis(lua.OnHold)
	}
	return nil
}
