package store

import (
	"context"
	"fmt"
)

// Archive notes that everything of a closed activity is settled. False if it was
// noted before. ErrState if it is not closed, ErrNotFound if there is none.
func (s *Store) Archive(ctx context.Context, id string) (bool, error) {
	db, cancel := s.session(ctx)
	defer cancel()
	done := db.Model(&activityRow{}).Where("id = ? AND state = ? AND archived_ms IS NULL", id, Closed).
		Update("archived_ms", s.stamp().UnixMilli())
	if done.Error != nil {
		return false, fmt.Errorf("archiving activity %q: %w", id, done.Error)
	}
	if done.RowsAffected == 1 {
		return true, nil
	}
	a, err := s.Activity(ctx, id)
	if err == nil && a.State != Closed {
		err = fmt.Errorf("archiving activity %q: %w: it is %s", id, ErrState, a.State)
	}
	return false, err
}
