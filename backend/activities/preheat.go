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
	if err := s.preheat(ctx, a, options); err != nil {
		return View{}, fmt.Errorf("preheating product %s: %w", product, err)
	}
	if a.State == store.Scheduled {
		if err := s.Store.SetActivityState(ctx, a.ID, []store.ActivityState{store.Scheduled}, store.Held); err != nil &&
			!errors.Is(err, store.ErrState) { // somebody else was quicker
			return View{}, fmt.Errorf("preheated product %s in Redis; preheat again to tell SQL: %w", product, err)
		}
	}
	if err := s.closedMeanwhile(ctx, a); err != nil {
		return View{}, fmt.Errorf("preheating product %s: %w", product, err)
	}
	return s.Show(ctx, product)
}

// closedMeanwhile closes in Redis what SQL has closed: a Close that came before
// Redis had the activity found nothing there to close.
func (s *Service) closedMeanwhile(ctx context.Context, a store.Activity) error {
	now, err := s.Store.Activity(ctx, a.ID)
	if err != nil || now.State != store.Closed {
		return err
	}
	if _, _, err := lua.SetState(ctx, s.Redis, a.ProductID, a.ID, lua.Closed); err != nil && !gone(err) {
		return err
	}
	return fmt.Errorf("%w: activity %s was closed meanwhile, which is final; create a new one", ErrRefused, a.ID)
}

func (s *Service) preheat(ctx context.Context, a store.Activity, options []Option) error {
	snapshot, err := s.snapshot(ctx, a.ProductID)
	if err != nil {
		return err
	}
	if snapshot != nil && snapshot.ID == a.ID {
		return nil // nothing to do, whatever it has sold since
	}
	if snapshot, err = s.closeLeftBehind(ctx, a.ProductID, snapshot); err != nil {
		return err
	}
	totals, err := s.Store.Totals(ctx, a.ID)
	if err != nil {
		return err
	}
	for state, total := range totals {
		if total.Orders > 0 {
			return fmt.Errorf("%w: SQL holds %d %s orders of activity %s and Redis has nothing of it; its stock must be rebuilt from SQL, not preheated: a backend (seckilld serve) does so by itself once the activity is held or open, or run seckilld reconcile",
				ErrRefused, total.Orders, state, a.ID)
		}
	}
	if err := s.fit(ctx, a, a.Total, options); err != nil {
		return err
	}
	preheated, err := lua.Preheat(ctx, s.Redis, lua.Activity{
		ID:        a.ID,
		ProductID: a.ProductID,
		Title:     a.Title,
		Start:     a.Start,
		End:       a.End,
		Total:     a.Total,
		Limit:     a.Limit,
		PayWindow: a.PayWindow,
		State:     lua.OnHold,
	})
	if err != nil {
		return err
	}
	if preheated == lua.Refused {
		return fmt.Errorf("%w: %s", ErrRefused, whyRefused(snapshot))
	}
	s.Log.Info("activity preheated, held", "activity", a.ID, "product", a.ProductID, "units", a.Total)
	return nil
}

// closeLeftBehind closes in Redis the activity that is there, if SQL has closed
// it, and returns what is there now.
func (s *Service) closeLeftBehind(ctx context.Context, product string, there *lua.Snapshot) (*lua.Snapshot, error) {
	if there == nil || there.State == lua.Closed {
		return there, nil
	}
	other, err := s.Store.Activity(ctx, there.ID)
	if errors.Is(err, store.ErrNotFound) || err == nil && other.State != store.Closed {
		return there, nil
	}
	if err != nil {
		return nil, err
	}
	if _, _, err := lua.SetState(ctx, s.Redis, product, there.ID, lua.Closed); err != nil && !gone(err) && !errors.Is(err, lua.ErrDamaged) {
		return nil, err
	}
	now, err := s.snapshot(ctx, product)
	return now, err
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
