package activities

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/seckill-edge/seckill/backend/store"
	"github.com/seckill-edge/seckill/internal/killpoint"
	"github.com/seckill-edge/seckill/internal/order"
	"github.com/seckill-edge/seckill/lua"
)

// Open opens the gate of a preheated activity. SQL learns it first: what a crash
// leaves half done is held. A Redis that is not fit to hold a stock is refused, see
// AcceptRedisRisk. A Hold at the same moment comes before it or after it: both
// stores then say the same.
func (s *Service) Open(ctx context.Context, product string, options ...Option) (View, error) {
	pause := firstPause
	for range overtakings {
		view, err := s.open(ctx, product, options)
		if !errors.Is(err, lua.ErrOvertaken) {
			return view, err
		}
		timer := time.NewTimer(pause)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return View{}, fmt.Errorf("opening product %s: %w", product, errors.Join(err, ctx.Err()))
		}
		pause *= 2
	}
	return View{}, fmt.Errorf("opening product %s: %w: somebody holds it again and again; open it when they have done", product, ErrRefused)
}

const (
	// overtakings bounds how often Open and Hold begin again because of each other.
	overtakings = 8
	// firstPause is how long an Open waits before it does; it doubles. A Hold does
	// not wait, and so has its way.
	firstPause = 20 * time.Millisecond
)

// open is lua.ErrOvertaken if the activity was held after its epoch was read; that
// is before SQL is written, so that either SQL or the epoch tells of every hold.
func (s *Service) open(ctx context.Context, product string, options []Option) (View, error) {
	a, err := s.live(ctx, product)
	if err != nil {
		return View{}, err
	}
	return s.openFrom(ctx, a, []store.ActivityState{store.Scheduled, store.Held, store.Open}, options)
}

// openFrom opens an activity that SQL has in one of the states from.
func (s *Service) openFrom(ctx context.Context, a store.Activity, from []store.ActivityState, options []Option) (View, error) {
	product := a.ProductID
	snapshot, err := s.snapshot(ctx, product)
	if err != nil {
		return View{}, fmt.Errorf("opening: %w", err)
	}
	switch {
	case snapshot == nil || snapshot.ID != a.ID:
		return View{}, fmt.Errorf("opening product %s: %w: its stock is not in Redis; preheat it first", product, ErrRefused)
	case snapshot.Damaged:
		return View{}, fmt.Errorf("opening product %s: %w: a key in Redis is missing or damaged; a backend (seckilld serve) rebuilds its stock by itself, open it then", product, ErrRefused)
	case snapshot.Forgetful():
		return View{}, fmt.Errorf("opening product %s: %w: Redis was restarted or failed over; a backend (seckilld serve) proves its stock by itself, open it then", product, ErrRefused)
	}
	if err := s.provenStock(ctx, a); err != nil {
		return View{}, fmt.Errorf("opening product %s: %w", product, err)
	}
	if snapshot.State != lua.Open { // one that sells already goes on
		problems, err := s.fit(ctx, a, snapshot.Available, options)
		if err != nil {
			return View{}, fmt.Errorf("opening product %s: %w", product, err)
		}
		s.warn(ctx, a, problems, options)
	}
	if err := s.Store.SetActivityState(ctx, a.ID, from, store.Open); err != nil {
		return View{}, refusal("opening", product, err)
	}
	killpoint.Here(killpoint.AfterOpen)
	return s.follow(ctx, "opening", a, func() (int64, bool, error) {
		return lua.OpenAt(ctx, s.Redis, product, a.ID, snapshot.Epoch)
	})
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
		snapshot, err := s.snapshot(ctx, a.ProductID)
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

// Resume opens an activity that was held before; see Open.
func (s *Service) Resume(ctx context.Context, product string, options ...Option) (View, error) {
	a, err := s.live(ctx, product)
	if err != nil {
		return View{}, err
	}
	if a.State == store.Scheduled {
		return View{}, fmt.Errorf("resuming product %s: %w: it is scheduled and was never held; open it", product, ErrRefused)
	}
	return s.Open(ctx, product, options...)
}

// Close ends the sale for good. What is reserved is still stored and settled.
// Redis learns it first. A closed activity stays closed: a repeat is a success.
func (s *Service) Close(ctx context.Context, product string) (View, error) {
	a, err := s.find(ctx, product)
	if err != nil {
		return View{}, err
	}
	if err := s.close(ctx, a); err != nil {
		return View{}, err
	}
	return s.Show(ctx, product)
}

func (s *Service) close(ctx context.Context, a store.Activity) error {
	shut := func() error {
		if _, _, err := lua.SetState(ctx, s.Redis, a.ProductID, a.ID, lua.Closed); err != nil && !gone(err) {
			return fmt.Errorf("closing: %w", err)
		}
		return nil
	}
	if err := shut(); err != nil {
		return err
	}
	from := []store.ActivityState{store.Scheduled, store.Held, store.Open, store.Closed}
	if err := s.Store.SetActivityState(ctx, a.ID, from, store.Closed); err != nil {
		return refusal("closing", a.ProductID, err)
	}
	// It may have been preheated between the two.
	if err := shut(); err != nil {
		return err
	}
	s.Log.Info("activity closed", "activity", a.ID, "product", a.ProductID)
	return nil
}

// gone says that Redis has nothing of the activity that could be closed.
func gone(err error) bool {
	return errors.Is(err, lua.ErrNoActivity) || errors.Is(err, lua.ErrOtherActivity)
}

// follow makes Redis do what SQL says.
func (s *Service) follow(ctx context.Context, doing string, a store.Activity, do func() (epoch int64, changed bool, err error)) (View, error) {
	epoch, changed, err := do()
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
		s.Log.Info("activity switched", "activity", a.ID, "product", a.ProductID, "by", doing, "epoch", epoch)
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
