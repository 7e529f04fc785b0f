package activities

import (
	"context"
	"errors"
	"fmt"

	"github.com/seckill-edge/seckill/backend/store"
	"github.com/seckill-edge/seckill/lua"
)

// Preheat loads the stock of product's live activity into Redis, held: it sells
// after Open. It never touches a sale that is there already, and refuses an
// activity that has orders, whose stock is not its total any more. It may be
// repeated. A Redis that is not fit to hold a stock is refused, see AcceptRedisRisk.
func (s *Service) Preheat(ctx context.Context, product string, options ...Option) (View, error) {
	a, err := s.live(ctx, product)
	if err != nil {
		return View{}, err
	}
	loaded, err := s.preheat(ctx, a, options)
	if err != nil {
		return View{}, fmt.Errorf("preheating product %s: %w", product, err)
	}
	if a.State == store.Scheduled {
		if err := s.Store.SetActivityState(ctx, a.ID, []store.ActivityState{store.Scheduled}, store.Held); err != nil &&
			!errors.Is(err, store.ErrState) { // somebody else was quicker
			return View{}, fmt.Errorf("preheated product %s in Redis; preheat again to tell SQL: %w", product, err)
		}
	}
	if err := s.changedMeanwhile(ctx, a); err != nil {
		return View{}, fmt.Errorf("preheating product %s: %w", product, err)
	}
	view, err := s.Show(ctx, product)
	if !loaded && err == nil {
		view.Why += "; it was in Redis already, and preheat has changed nothing there"
	}
	return view, err
}

// changedMeanwhile makes Redis follow what SQL was told before Redis had the
// activity: a change of its total, or a Close, found nothing there to change.
func (s *Service) changedMeanwhile(ctx context.Context, a store.Activity) error {
	now, err := s.Store.Activity(ctx, a.ID)
	if err != nil {
		return err
	}
	if now.State != store.Closed {
		there, err := s.snapshot(ctx, a.ProductID)
		if err != nil || there == nil || there.ID != a.ID {
			return err
		}
		return s.catchUp(ctx, now, *there)
	}
	if _, _, err := lua.SetState(ctx, s.Redis, a.ProductID, a.ID, lua.Closed); err != nil && !gone(err) {
		return err
	}
	return fmt.Errorf("%w: activity %s was closed meanwhile, which is final; create a new one", ErrRefused, a.ID)
}

// preheat is false if the activity was in Redis before.
func (s *Service) preheat(ctx context.Context, a store.Activity, options []Option) (loaded bool, err error) {
	snapshot, err := s.snapshot(ctx, a.ProductID)
	if err != nil {
		return false, err
	}
	if snapshot != nil && snapshot.ID == a.ID {
		return false, nil // nothing to do, whatever it has sold since
	}
	if a.Target != 0 { // whoever was to change its total has died
		if err := s.finishChange(ctx, a); err != nil {
			return false, err
		}
		if a, err = s.Store.Activity(ctx, a.ID); err != nil {
			return false, err
		}
	}
	if snapshot, err = s.clearAway(ctx, a.ProductID, snapshot); err != nil {
		return false, err
	}
	if err := s.mayPreheat(ctx, a, snapshot, options); err != nil {
		return false, err
	}
	preheated, err := lua.Preheat(ctx, s.Redis, lua.Activity{
		ID:        a.ID,
		ProductID: a.ProductID,
		Title:     a.Title,
		Start:     a.Start,
		End:       a.End,
		Total:     a.Total,
		Changes:   a.Changes,
		Limit:     a.Limit,
		PayWindow: a.PayWindow,
		State:     lua.OnHold,
	})
	switch {
	case err != nil:
		return false, err
	case preheated == lua.Refused:
		return false, blockedBy(Predecessor, whyRefused(snapshot))
	case preheated == lua.Loaded: // else somebody else was quicker
		s.Log.Info("activity preheated, held", "activity", a.ID, "product", a.ProductID, "units", a.Total)
	}
	return preheated == lua.Loaded, nil
}

// mayPreheat says why the stock of an activity must not be loaded into Redis, which
// has there instead. The error is *blocked or a failure.
func (s *Service) mayPreheat(ctx context.Context, a store.Activity, there *lua.Snapshot, options []Option) error {
	if there != nil && !settled(*there) {
		return blockedBy(Predecessor, whyRefused(there))
	}
	totals, err := s.Store.Totals(ctx, a.ID)
	if err != nil {
		return err
	}
	for state, total := range totals {
		if total.Orders > 0 {
			return blockedBy(Orders, fmt.Sprintf("SQL holds %d %s orders of activity %s and Redis has nothing of it; its stock must be rebuilt from SQL, not preheated: a backend (seckilld serve) does so by itself once the activity is held or open, or run seckilld reconcile",
				total.Orders, state, a.ID))
		}
	}
	_, err = s.fit(ctx, a, a.Total, options) // Open warns
	return err
}

// settled says that nothing of an activity is on its way and that it makes room for
// the next one.
func settled(s lua.Snapshot) bool {
	return s.State == lua.Closed && !s.Damaged && s.Frozen == 0 && s.Outbox == 0
}

// clearAway makes Redis follow SQL in what has become of the activity that it has
// of the product, and returns what is there now.
func (s *Service) clearAway(ctx context.Context, product string, there *lua.Snapshot) (*lua.Snapshot, error) {
	if there == nil || settled(*there) {
		return there, nil
	}
	other, err := s.Store.Activity(ctx, there.ID)
	if errors.Is(err, store.ErrNotFound) || err == nil && other.State != store.Closed {
		return there, nil
	}
	if err != nil {
		return nil, err
	}
	if there.State != lua.Closed {
		if _, _, err := lua.SetState(ctx, s.Redis, product, there.ID, lua.Closed); err != nil && !gone(err) && !errors.Is(err, lua.ErrDamaged) {
			return nil, err
		}
	}
	if !other.ArchivedAt.IsZero() {
		// Redis has forgotten how it ended, or was restored from before.
		if _, err := lua.Expire(ctx, s.Redis, product, there.ID, 0); err != nil && !gone(err) {
			return nil, err
		}
	}
	return s.snapshot(ctx, product)
}

// whyRefused says what stands in the way, from the reading before.
func whyRefused(there *lua.Snapshot) string {
	switch {
	case there == nil:
		return "Redis has keys of this product and no activity; look at them before you remove them"
	case there.State != lua.Closed:
		return fmt.Sprintf("Redis has another activity of this product, %s, which is %s; close it first", there.ID, there.State)
	}
	return fmt.Sprintf("activity %s of this product is closed but not settled yet: %d units frozen, %d orders in the outbox; wait, or audit it",
		there.ID, there.Frozen, there.Outbox)
}
