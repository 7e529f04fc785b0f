package store

import (
	"context"
	"fmt"
	"time"

	"gorm.io/gorm"
)

// ChangeTotal notes that the total of an activity that is not closed is to become
// another one, and returns the activity with the number of the change. Of two
// stores one has to be changed first: SQL's total rises now and falls with
// EndChange, so that SQL never refuses what Redis grants.
//
// ErrState, which says why, if the activity is closed, if its total
// is not from, or while an earlier change has not ended. ErrNotFound if there is
// none.
func (s *Store) ChangeTotal(ctx context.Context, id string, from, to int64) (Activity, error) {
	a, err := s.changeTotal(ctx, id, from, to)
	if err != nil {
		return Activity{}, fmt.Errorf("changing the total of activity %q from %d to %d: %w", id, from, to, err)
	}
	return a, nil
}

func (s *Store) changeTotal(ctx context.Context, id string, from, to int64) (a Activity, err error) {
	err = s.write(ctx, func(tx *gorm.DB, _ time.Time) error {
		done := tx.Model(&activityRow{}).
			Where("id = ? AND state <> ? AND target = 0 AND total = ?", id, Closed, from).
			Updates(map[string]any{"target": to, "total": max(from, to), "changes": gorm.Expr("changes + 1")})
		if done.Error != nil {
			return done.Error
		}
		var row activityRow
		if err := tx.Where("id = ?", id).Limit(1).Find(&row).Error; err != nil {
			return err
		}
		a = row.activity()
		switch {
		case done.RowsAffected == 1:
			return nil
		case a.ID == "":
			return ErrNotFound
		case a.Target != 0:
			return fmt.Errorf("%w: an earlier change, to %d, has not ended yet", ErrState, a.Target)
		case a.State == Closed:
			return fmt.Errorf("%w: it is %s", ErrState, a.State)
		}
		return fmt.Errorf("%w: its total is %d", ErrState, a.Total)
	})
	return a, err
}

// EndChange ends the change of this number: made says that Redis has the new
// total, otherwise it was refused there and the total stays as it is. A change
// that has ended already changes nothing. ErrState if orders hold more than the
// new total: the stores disagree then, and the change stays.
func (s *Store) EndChange(ctx context.Context, id string, change int64, made bool) error {
	db, cancel := s.session(ctx)
	defer cancel()
	const pending = "id = ? AND changes = ? AND target <> 0"
	var err error
	if made {
		// Two statements, each of which may be repeated: in one, MySQL would take the
		// target as 0 already.
		err = db.Exec("UPDATE activities SET total = target WHERE "+pending+" AND reserved <= target", id, change).Error
	}
	if err == nil {
		err = db.Exec("UPDATE activities SET target = 0 WHERE "+pending+" AND (total = target OR ?)", id, change, !made).Error
	}
	if err != nil {
		return fmt.Errorf("ending change %d of the total of activity %q: %w", change, id, err)
	}
	a, err := s.Activity(ctx, id)
	if err == nil && a.Changes == change && a.Target != 0 {
		err = fmt.Errorf("%w: orders hold %d units of activity %q, its total was to become %d", ErrState, a.Reserved, id, a.Target)
	}
	return err
}
