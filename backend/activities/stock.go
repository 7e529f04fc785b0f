package activities

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/seckill-edge/seckill/backend/rails"
	"github.com/seckill-edge/seckill/backend/store"
	"github.com/seckill-edge/seckill/internal/killpoint"
	"github.com/seckill-edge/seckill/internal/order"
	"github.com/seckill-edge/seckill/lua"
)

// Change is how the total of an activity is to change. One of Add and Withdraw is
// set, in units.
type Change struct {
	Add, Withdraw int64
	// IfTotal, if not 0, refuses the change unless the total is this one: so a
	// repeat after a lost answer does not change it twice.
	IfTotal int64
}

// check returns *Invalid or nil.
func (c Change) check() error {
	var wrong []Field
	both := (c.Add == 0) == (c.Withdraw == 0) // or neither
	for _, f := range []struct {
		name    string
		value   int64
		oneOnly bool
	}{
		{"add", c.Add, both}, {"withdraw", c.Withdraw, both}, {"if_total", c.IfTotal, false},
	} {
		switch {
		case f.value < 0 || f.value > order.MaxUnits:
			wrong = append(wrong, Field{f.name, strconv.FormatInt(f.value, 10), "must be 1 to 1000000000 units"})
		case f.oneOnly:
			wrong = append(wrong, Field{f.name, strconv.FormatInt(f.value, 10), "one of add and withdraw must be given, and only one"})
		}
	}
	if wrong != nil {
		return &Invalid{wrong}
	}
	return nil
}

// ChangeStock adds units to an activity, or withdraws units that are available. One
// that is not in Redis yet is preheated with what SQL has then. Edges that are sold out sell again within a second. SQL notes what is
// intended, then the store changes first that may have the greater total: so SQL
// never refuses what Redis has granted. A crash or a store that is away in between
// leaves a pending change, which a backend finishes by itself, and which the view
// shows as Target. One change at a time.
func (s *Service) ChangeStock(ctx context.Context, product string, c Change) (View, error) {
	if err := c.check(); err != nil {
		return View{}, err
	}
	a, err := s.live(ctx, product)
	if err != nil {
		return View{}, err
	}
	if err := s.changeStock(ctx, a, c); err != nil {
		return View{}, fmt.Errorf("changing the stock of product %s: %w", product, err)
	}
	return s.Show(ctx, product)
}

func (s *Service) changeStock(ctx context.Context, a store.Activity, c Change) error {
	to := a.Total + c.Add - c.Withdraw
	switch {
	case a.Target != 0:
		return fmt.Errorf("%w: an earlier change, to %d, is not finished yet; a backend (seckilld serve) does that by itself", ErrRefused, a.Target)
	case c.IfTotal != 0 && c.IfTotal != a.Total:
		return fmt.Errorf("%w: its total is %d, not %d", ErrRefused, a.Total, c.IfTotal)
	case to < 1:
		return fmt.Errorf("%w: of its %d units at least one must stay; close it to end the sale", ErrRefused, a.Total)
	case to > order.MaxUnits:
		return fmt.Errorf("%w: its total would be %d, more than %d", ErrRefused, to, int64(order.MaxUnits))
	}
	there, err := s.snapshot(ctx, a.ProductID)
	loaded := there != nil && there.ID == a.ID
	switch {
	case err != nil:
		return err
	case a.State == store.Scheduled && !loaded:
		return s.noteChange(ctx, a, to)
	case !loaded || there.Forgetful():
		return fmt.Errorf("%w: Redis does not have its stock for certain; a backend (seckilld serve) rebuilds it by itself, change it then", ErrRefused)
	case there.Available < c.Withdraw:
		return tooFew(there.Available)
	}
	if c.Add > 0 {
		if err := s.hasRoom(ctx, a, there.Available+c.Add); err != nil {
			return err
		}
	}
	return s.noteChange(ctx, a, to)
}

// noteChange begins a change, and finishes it.
func (s *Service) noteChange(ctx context.Context, a store.Activity, to int64) error {
	noted, err := s.Store.ChangeTotal(ctx, a.ID, a.Total, to)
	if errors.Is(err, store.ErrState) {
		return fmt.Errorf("%w: %w", ErrRefused, err)
	}
	if err != nil {
		return err
	}
	killpoint.Here(killpoint.AfterChange)
	return s.finishChange(ctx, noted)
}

func tooFew(available int64) error {
	return fmt.Errorf("%w: only %d units are available; what is reserved or sold cannot be withdrawn", ErrRefused, available)
}

// hasRoom refuses more units than Redis has memory for. What else may be wrong with
// it was accepted when the sale began.
func (s *Service) hasRoom(ctx context.Context, a store.Activity, units int64) error {
	problems, err := rails.Inspect(ctx, s.Redis, map[string]int64{a.ProductID: units})
	if err != nil {
		return err
	}
	for _, p := range rails.Refusable(problems) {
		if p.Kind == rails.Memory {
			return fmt.Errorf("%w: %s", ErrRefused, p)
		}
	}
	return nil
}

// finishChange brings the change under way to its end in both stores. It may be
// repeated, also by several at once.
func (s *Service) finishChange(ctx context.Context, a store.Activity) error {
	asking, cancel := context.WithTimeout(ctx, 3*time.Second)
	defer cancel()
	r, err := lua.Resize(asking, s.Redis, a.ProductID, a.ID, a.Changes, a.Target)
	missing := err != nil && gone(err)
	over := missing && a.State == store.Closed
	if missing && a.State == store.Scheduled {
		// Whoever preheats it at this moment looks again afterwards, see catchUp.
		r, err = lua.Resized{Done: true, Total: a.Target, Available: a.Target}, nil
	}
	if err != nil && !over {
		return fmt.Errorf("the change is noted, and a backend (seckilld serve) finishes it by itself: %w", err)
	}
	killpoint.Here(killpoint.AfterResize)
	if err := s.Store.EndChange(ctx, a.ID, a.Changes, r.Done); err != nil {
		return fmt.Errorf("a backend (seckilld serve) finishes the change by itself: %w", err)
	}
	if !r.Done && !over {
		return tooFew(r.Available)
	}
	s.Log.Info("activity's total changed", "activity", a.ID, "product", a.ProductID, "total", r.Total, "available", r.Available)
	return nil
}

// catchUp makes a change in Redis that has ended in SQL and that Redis does not
// know: it ended while the activity was being preheated, or Redis has forgotten it.
func (s *Service) catchUp(ctx context.Context, a store.Activity, there lua.Snapshot) error {
	if a.Target != 0 || there.Changes >= a.Changes || there.Forgetful() {
		return nil
	}
	asking, cancel := context.WithTimeout(ctx, 3*time.Second)
	defer cancel()
	r, err := lua.Resize(asking, s.Redis, a.ProductID, a.ID, a.Changes, a.Total)
	if err != nil {
		return err
	}
	if !r.Done {
		return fmt.Errorf("%w: Redis sells %d units of the %d that SQL has, and has only %d left; hold it and run seckilld reconcile",
			ErrRefused, r.Total, a.Total, r.Available)
	}
	s.Log.Warn("activity: Redis has caught up with a change of the total", "activity", a.ID, "product", a.ProductID, "total", r.Total)
	return nil
}
