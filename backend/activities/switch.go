package activities

import (
	"context"
	"errors"
	"fmt"

	"github.com/seckill-edge/seckill/backend/store"
	"github.com/seckill-edge/seckill/internal/order"
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
	return s.Show(ctx, product)
}

func (s *Service) preheat(ctx context.Context, a store.Activity, options []Option) error {
	snapshot, _, err := s.snapshot(ctx, a.ProductID)
	if err != nil {
		return err
	}
	if snapshot != nil && snapshot.ID == a.ID {
		return nil // nothing to do, whatever it has sold since
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

// Open opens the gate of a preheated activity. SQL learns it first: what a crash
// leaves half done is held. A Redis that is not fit to hold a stock is refused, see
// AcceptRedisRisk.
func (s *Service) Open(ctx context.Context, product string, options ...Option) (View, error) {
	a, err := s.live(ctx, product)
	if err != nil {
		return View{}, err
	}
	snapshot, _, err := s.snapshot(ctx, product)
	if err != nil {
		return View{}, fmt.Errorf("opening: %w", err)
	}
	switch {
	case snapshot == nil || snapshot.ID != a.ID:
		return View{}, fmt.Errorf("opening product %s: %w: its stock is not in Redis; preheat it first", product, ErrRefused)
	case snapshot.Damaged:
		return View{}, fmt.Errorf("opening product %s: %w: a key in Redis is missing or damaged; a backend (seckilld serve) rebuilds its stock by itself, open it then", product, ErrRefused)
	case unproven(*snapshot):
		return View{}, fmt.Errorf("opening product %s: %w: Redis was restarted or failed over; a backend (seckilld serve) proves its stock by itself, open it then", product, ErrRefused)
	}
	if err := s.provenStock(ctx, a); err != nil {
		return View{}, fmt.Errorf("opening product %s: %w", product, err)
	}
	if snapshot.State != lua.Open { // one that sells already goes on
		if err := s.fit(ctx, a, snapshot.Available, options); err != nil {
			return View{}, fmt.Errorf("opening product %s: %w", product, err)
		}
	}
	from := []store.ActivityState{store.Scheduled, store.Held, store.Open}
	if err := s.Store.SetActivityState(ctx, a.ID, from, store.Open); err != nil {
		return View{}, refusal("opening", product, err)
	}
	return s.follow(ctx, "opening", a, lua.Open)
}

// provenStock refuses to open a sale of which SQL holds more than Redis has given
// away: Redis would sell those units a second time. The broker is not asked: a
// sale may open while it is away.
func (s *Service) provenStock(ctx context.Context, a store.Activity) error {
	var beyond int64
	for range readings {
		totals, err := s.Store.Totals(ctx, a.ID)
		if err != nil {
			return err
		}
		// Redis after SQL: what is stored in between Redis has given away before.
		snapshot, _, err := s.snapshot(ctx, a.ProductID)
		if err != nil {
			return err
		}
		beyond = totals[order.Created].Units + totals[order.Paid].Units
		if snapshot != nil {
			beyond -= snapshot.Frozen + snapshot.Sold
		}
		if beyond <= 0 {
			return nil
		}
	}
	return fmt.Errorf("%w: SQL holds %d units that Redis would sell again; audit it, its stock must be rebuilt first", ErrRefused, beyond)
}

// Hold shuts the gate. Redis learns it first: from the answer on nothing is sold.
// An activity that Redis has lost, or whose stock is being proven, is held by
// SQL's word.
func (s *Service) Hold(ctx context.Context, product string) (View, error) {
	a, err := s.live(ctx, product)
	if err != nil {
		return View{}, err
	}
	if a.State == store.Scheduled {
		return View{}, fmt.Errorf("holding product %s: %w: it is scheduled and sells nothing; preheat it first", product, ErrRefused)
	}
	if _, err := s.follow(ctx, "holding", a, lua.OnHold); err != nil && !sellsNothing(err) {
		return View{}, err
	}
	from := []store.ActivityState{store.Held, store.Open}
	if err := s.Store.SetActivityState(ctx, a.ID, from, store.Held); err != nil {
		return View{}, refusal("holding", product, err)
	}
	// A stock that was being proven may have been opened between the two.
	view, err := s.follow(ctx, "holding", a, lua.OnHold)
	if err != nil && sellsNothing(err) {
		return s.Show(ctx, product)
	}
	return view, err
}

// sellsNothing says that Redis has nothing that could be sold; what is rebuilt
// will be what SQL says.
func sellsNothing(err error) bool {
	return errors.Is(err, lua.ErrNoActivity) || errors.Is(err, lua.ErrDamaged)
}

// Close ends the sale for good. What is reserved is still stored and settled.
// Redis learns it first. A closed activity stays closed: a repeat is a success.
func (s *Service) Close(ctx context.Context, product string) (View, error) {
	a, err := s.find(ctx, product)
	if err != nil {
		return View{}, err
	}
	if _, _, err := lua.SetState(ctx, s.Redis, product, a.ID, lua.Closed); err != nil && !gone(err) {
		return View{}, fmt.Errorf("closing: %w", err)
	}
	from := []store.ActivityState{store.Scheduled, store.Held, store.Open, store.Closed}
	if err := s.Store.SetActivityState(ctx, a.ID, from, store.Closed); err != nil {
		return View{}, refusal("closing", product, err)
	}
	s.Log.Info("activity closed", "activity", a.ID, "product", product)
	return s.Show(ctx, product)
}

// gone says that Redis has nothing of the activity that could be closed.
func gone(err error) bool {
	return errors.Is(err, lua.ErrNoActivity) || errors.Is(err, lua.ErrOtherActivity)
}

// follow makes Redis do what SQL says.
func (s *Service) follow(ctx context.Context, doing string, a store.Activity, to lua.ActivityState) (View, error) {
	epoch, changed, err := lua.SetState(ctx, s.Redis, a.ProductID, a.ID, to)
	switch {
	case errors.Is(err, lua.ErrClosed):
		return View{}, fmt.Errorf("%s product %s: %w: it is closed, which is final; create a new activity", doing, a.ProductID, ErrRefused)
	case errors.Is(err, lua.ErrUnproven):
		return View{}, fmt.Errorf("%s product %s: %w: %w, which opens it by itself", doing, a.ProductID, ErrRefused, err)
	case err != nil && (gone(err) || errors.Is(err, lua.ErrDamaged)):
		return View{}, fmt.Errorf("%s product %s: %w: %w", doing, a.ProductID, ErrRefused, err)
	case err != nil:
		return View{}, fmt.Errorf("%s: %w", doing, err)
	}
	if changed {
		s.Log.Info("activity switched", "activity", a.ID, "product", a.ProductID, "state", string(to), "epoch", epoch)
	}
	return s.Show(ctx, a.ProductID)
}

// live returns the activity that product sells through; a product whose sales
// are all closed is refused.
func (s *Service) live(ctx context.Context, product string) (store.Activity, error) {
	a, err := s.find(ctx, product)
	if err == nil && a.State == store.Closed {
		err = fmt.Errorf("%w: activity %s of product %s is closed, which is final; create a new one", ErrRefused, a.ID, product)
	}
	return a, err
}

func refusal(doing, product string, err error) error {
	if errors.Is(err, store.ErrState) {
		return fmt.Errorf("%s product %s: %w: %w", doing, product, ErrRefused, err)
	}
	return fmt.Errorf("%s product %s: %w", doing, product, err)
}
