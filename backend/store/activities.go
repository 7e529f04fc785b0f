package store

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"gorm.io/gorm"

	"github.com/seckill-edge/seckill/internal/order"
)

// CreateActivity stores a new activity. CreatedAt is set from the clock; Reserved,
// Changes, Target and ArchivedAt are not read; the rest is stored as it comes, times in whole milliseconds.
// ErrExists if its id is taken or its product has an activity that is not closed.
func (s *Store) CreateActivity(ctx context.Context, a Activity) error {
	db, cancel := s.session(ctx)
	defer cancel()
	row := newActivityRow(&a, s.stamp())
	err := db.Create(&row).Error
	if s.dialect.duplicate(err) {
		err = s.whyExists(ctx, a)
	}
	if err != nil {
		return fmt.Errorf("creating activity %q: %w", a.ID, err)
	}
	return nil
}

// whyExists words ErrExists; a violated index is named differently by every server.
func (s *Store) whyExists(ctx context.Context, a Activity) error {
	if other, err := s.LiveActivity(ctx, a.ProductID); err == nil && other.ID != a.ID {
		return fmt.Errorf("%w: product %q has the live activity %q; close it first", ErrExists, a.ProductID, other.ID)
	}
	return fmt.Errorf("%w: choose another id", ErrExists)
}

// Activity returns one activity, or ErrNotFound.
func (s *Store) Activity(ctx context.Context, id string) (Activity, error) {
	a, err := s.oneActivity(ctx, "id", id)
	if err != nil {
		return Activity{}, fmt.Errorf("reading activity %q: %w", id, err)
	}
	return a, nil
}

// LiveActivity returns the one activity of a product that is not closed, or
// ErrNotFound.
func (s *Store) LiveActivity(ctx context.Context, product string) (Activity, error) {
	a, err := s.oneActivity(ctx, "live", product)
	if err != nil {
		return Activity{}, fmt.Errorf("reading the live activity of product %q: %w", product, err)
	}
	return a, nil
}

func (s *Store) oneActivity(ctx context.Context, column, id string) (Activity, error) {
	if !order.ValidProduct(id) {
		return Activity{}, ErrNotFound
	}
	db, cancel := s.session(ctx)
	defer cancel()
	var row activityRow
	err := db.Where(column+" = ?", id).Take(&row).Error
	if errors.Is(err, gorm.ErrRecordNotFound) {
		return Activity{}, ErrNotFound
	}
	return row.activity(), err
}

// Activities returns all activities, the newest first.
func (s *Store) Activities(ctx context.Context) ([]Activity, error) {
	return s.activities(ctx, "")
}

// Unarchived returns the activities of which something may still have to be done,
// the newest first.
func (s *Store) Unarchived(ctx context.Context) ([]Activity, error) {
	return s.activities(ctx, "archived_ms IS NULL")
}

func (s *Store) activities(ctx context.Context, where string) ([]Activity, error) {
	db, cancel := s.session(ctx)
	defer cancel()
	var rows []activityRow
	if err := db.Where(where).Order("created_ms DESC, id DESC").Find(&rows).Error; err != nil {
		return nil, fmt.Errorf("listing activities: %w", err)
	}
	all := make([]Activity, len(rows))
	for i := range rows {
		all[i] = rows[i].activity()
	}
	return all, nil
}

// SetActivityState moves an activity from one of the states from to the state to,
// in one statement, so that of two callers one wins. ErrState if it stands
// elsewhere, ErrNotFound if there is none. An activity that leaves Closed may
// find its product taken: ErrExists.
func (s *Store) SetActivityState(ctx context.Context, id string, from []ActivityState, to ActivityState) error {
	if err := s.setActivityState(ctx, id, from, to); err != nil {
		return fmt.Errorf("setting activity %q %s: %w", id, to, err)
	}
	return nil
}

func (s *Store) setActivityState(ctx context.Context, id string, from []ActivityState, to ActivityState) error {
	db, cancel := s.session(ctx)
	defer cancel()
	changes := map[string]any{"state": string(to), "live": gorm.Expr("product_id")}
	if to == Closed {
		changes["live"] = nil
	}
	for {
		done := db.Model(&activityRow{}).Where("id = ? AND state IN ?", id, from).Updates(changes)
		if s.dialect.duplicate(done.Error) {
			return fmt.Errorf("%w: its product has another live activity; close that first", ErrExists)
		}
		if done.Error != nil || done.RowsAffected > 0 {
			return done.Error
		}
		a, err := s.oneActivity(ctx, "id", id)
		switch {
		case err != nil:
			return err
		case a.State == to && slices.Contains(from, to):
			return nil // MySQL does not count a row that has the value already
		case !slices.Contains(from, a.State):
			return fmt.Errorf("%w: it is %s", ErrState, a.State)
		}
		// It had the value, and somebody has moved it since.
	}
}
