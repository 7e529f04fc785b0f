package store

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"github.com/seckill-edge/seckill/internal/killpoint"
	"github.com/seckill-edge/seckill/internal/order"
)

// Expire moves created orders whose time was up at now to expired, the longest
// overdue first, at most limit of them (500 at a time are sensible), and returns
// those that have moved. Their units and their buyers' claims are given back in
// the same transaction, one an activity. Orders that somebody else has in hand are
// left out: the next call looks at them again. Several callers may work at once;
// an order is returned to one of them.
//
// With an error it returns what was expired before.
func (s *Store) Expire(ctx context.Context, now time.Time, limit int) ([]Order, error) {
	due, err := s.overdue(ctx, now, limit)
	if err != nil {
		return nil, fmt.Errorf("looking for orders that are due: %w", err)
	}
	var expired []Order
	for _, activity := range slices.Sorted(maps.Keys(due)) {
		for part := range slices.Chunk(due[activity], chunk) {
			orders, err := s.expire(ctx, activity, part)
			if err != nil {
				return expired, fmt.Errorf("expiring %d orders of activity %q: %w", len(part), activity, err)
			}
			expired = append(expired, orders...)
		}
	}
	return expired, nil
}

// overdue finds the ids of orders that are due, by activity. Nothing is locked: it
// reads the index of due times only up to now.
func (s *Store) overdue(ctx context.Context, now time.Time, limit int) (map[string][]string, error) {
	db, cancel := s.session(ctx)
	defer cancel()
	var rows []orderRow
	err := db.Table(s.dialect.ordersBy(indexDue)).Select("id", "activity_id").
		Where("state = ? AND due_ms <= ?", order.Created, now.UnixMilli()).
		Order("due_ms").Limit(limit).Find(&rows).Error
	if err != nil {
		return nil, err
	}
	due := make(map[string][]string)
	for _, r := range rows {
		due[r.ActivityID] = append(due[r.ActivityID], r.ID)
	}
	return due, nil
}

func (s *Store) expire(ctx context.Context, activity string, ids []string) (expired []Order, err error) {
	err = s.write(ctx, func(tx *gorm.DB) error {
		expired = nil
		if err := lockActivity(tx, activity); err != nil {
			return err
		}
		var rows []orderRow
		err := tx.Table(s.dialect.ordersBy(indexPrimary)).Clauses(s.dialect.passing()).
			Where("id IN ? AND state IN ? AND due_ms IS NOT NULL", ids, order.Expired.Previous()).Order("id").Find(&rows).Error
		if err != nil {
			return fmt.Errorf("locking the orders: %w", err)
		}
		if err := s.giveBack(tx, activity, rows, order.Expired, ""); err != nil {
			return err
		}
		for i := range rows {
			expired = append(expired, rows[i].order())
		}
		killpoint.Here(killpoint.BeforeCommit)
		return nil
	})
	if err != nil {
		return nil, err
	}
	return expired, nil
}

// lockActivity makes whoever changes what an activity has reserved wait for each
// other. It comes before any lock on orders.
func lockActivity(tx *gorm.DB, id string) error {
	var row activityRow
	err := tx.Clauses(clause.Locking{Strength: clause.LockingStrengthUpdate}).Where("id = ?", id).Take(&row).Error
	if err != nil && !errors.Is(err, gorm.ErrRecordNotFound) {
		return fmt.Errorf("locking activity %q: %w", id, err)
	}
	return nil
}

// giveBack moves orders of one activity, which are locked with it and stand where
// they may move to from, and gives their claims and units back. It changes rows
// to what is stored then.
func (s *Store) giveBack(tx *gorm.DB, activity string, rows []orderRow, to order.State, reason order.Reason) error {
	if len(rows) == 0 {
		return nil
	}
	slices.SortFunc(rows, func(a, b orderRow) int { return cmp.Compare(a.ID, b.ID) })
	ids := make([]string, len(rows))
	var units int64
	now := s.now().UnixMilli()
	for i := range rows {
		ids[i] = rows[i].ID
		units += int64(rows[i].Quantity)
		rows[i].State, rows[i].Reason, rows[i].Claim, rows[i].UpdatedMS = string(to), string(reason), nil, now
	}
	done := tx.Model(&orderRow{}).Where("id IN ? AND state IN ?", ids, to.Previous()).
		Updates(map[string]any{"state": string(to), "reason": string(reason), "claim": nil, "updated_ms": now})
	if err := moved(done, len(rows), "moving them to "+string(to)); err != nil {
		return err
	}
	done = tx.Exec("UPDATE activities SET reserved = reserved - ? WHERE id = ? AND reserved >= ?", units, activity, units)
	if done.Error != nil {
		return fmt.Errorf("giving back %d units of activity %q: %w", units, activity, done.Error)
	}
	if done.RowsAffected != 1 {
		return fmt.Errorf("giving back %d units of activity %q: it has fewer reserved than its orders hold", units, activity)
	}
	return nil
}
