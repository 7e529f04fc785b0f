package activities

import (
	"context"
	"errors"
	"fmt"

	"github.com/seckill-edge/seckill/backend/store"
	"github.com/seckill-edge/seckill/internal/killpoint"
	"github.com/seckill-edge/seckill/internal/order"
	"github.com/seckill-edge/seckill/lua"
)

// end closes an activity whose time has passed, by Redis's clock, once every order
// is stored. While anything is missing the stock can still be proven and mended;
// once it is closed nobody does that any more.
func (s *Service) end(ctx context.Context, a store.Activity, there lua.Snapshot, t *traffic) error {
	if there.Now.Before(a.End) || there.Forgetful() {
		return nil
	}
	got, err := s.once(ctx, a, t)
	if err != nil || !got.exact() {
		return err
	}
	return s.close(ctx, a)
}

// once is one reading of all stores.
func (s *Service) once(ctx context.Context, a store.Activity, t *traffic) (reading, error) {
	t.forget()
	return s.read(ctx, a, t)
}

// exact says that SQL has every order that Redis has given a unit, and no other:
// nothing is on its way, whatever else waits in the broker.
func (a Audit) exact() bool {
	given := a.Frozen + a.Sold
	return a.Known && !a.Damaged && a.Consistent && a.Outbox == 0 &&
		a.Units[order.Created]+a.Units[order.Paid] == given && a.Available+given == a.Total
}

// archive notes that everything of a closed activity is settled, and lets its keys
// in Redis expire. SQL learns it first; the Follower finishes what a crash leaves.
func (s *Service) archive(ctx context.Context, a store.Activity, t *traffic) error {
	there, err := s.snapshot(ctx, a.ProductID)
	if err != nil {
		return err
	}
	ours := there != nil && there.ID == a.ID
	if ours && (there.State != lua.Closed || there.Frozen+there.Outbox > 0) {
		return nil // on its way; the reconciler looks after what is not
	}
	got, err := s.once(ctx, a, t)
	if err != nil {
		return err
	}
	switch {
	case a.PayWindow > 0 && got.Orders[order.Created] > 0:
		return nil // waits for a payment
	case ours && !there.Forgetful():
		if !got.exact() || got.Frozen > 0 {
			return nil
		}
	case there == nil || ours:
		// Redis has lost it, or may have forgotten some: SQL is right as soon as
		// nothing is on its way to it.
		if !got.QueueKnown || got.Queued > 0 || got.unheard {
			return nil
		}
	}
	archived, err := s.Store.Archive(ctx, a.ID)
	if err != nil {
		return err
	}
	if archived {
		s.Log.Info("activity archived", "activity", a.ID, "product", a.ProductID, "orders", got.Orders, "units", got.Units)
	}
	killpoint.Here(killpoint.AfterArchive)
	return s.expire(ctx, a)
}

// expire lets the keys of an archived activity expire.
func (s *Service) expire(ctx context.Context, a store.Activity) error {
	began, err := lua.Expire(ctx, s.Redis, a.ProductID, a.ID, s.KeepKeys)
	if err != nil && !gone(err) {
		return fmt.Errorf("archiving activity %s: %w", a.ID, err)
	}
	if began {
		s.Log.Info("activity's keys expire", "activity", a.ID, "product", a.ProductID, "in", s.KeepKeys)
	}
	return nil
}

// forgetArchived lets expire what Redis has of an activity that is archived in SQL.
func (s *Service) forgetArchived(ctx context.Context, a store.Activity, there lua.Snapshot) error {
	if a.ArchivedAt.IsZero() || there.State != lua.Closed {
		return nil
	}
	err := s.expire(ctx, a)
	if errors.Is(err, lua.ErrNotClosed) {
		return nil
	}
	return err
}
