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

// errFigures is what only somebody's own hand in the tables can bring about.
var errFigures = errors.New("it has fewer units reserved than its orders hold")

// Expire moves created orders whose time was up at now to expired, the longest
// overdue first, at most limit of them (500 at a time are sensible), and returns
// those that have moved. Their units and their buyers' claims are given back in
// the same transaction, one an activity. Orders that somebody else has in hand are
// left out: the next call looks at them again. Several callers may work at once;
// an order is returned to one of them.
//
// An activity whose orders cannot be expired, because its figures are wrong, keeps
// nobody from the others'. With an error it returns what was expired.
func (s *Store) Expire(ctx context.Context, now time.Time, limit int) (expired []Order, err error) {
	for wrong := []string(nil); ; {
		due, failed := s.overdue(ctx, now, limit-len(expired), wrong)
		if failed != nil {
			return expired, errors.Join(err, fmt.Errorf("looking for orders that are due: %w", failed))
		}
		before := len(wrong)
		for _, activity := range slices.Sorted(maps.Keys(due)) {
			orders, failed := s.expireAll(ctx, activity, due[activity])
			expired = append(expired, orders...)
			if failed == nil {
				continue
			}
			err = errors.Join(err, failed)
			if !errors.Is(failed, errFigures) && IsTransient(failed) {
				return expired, err
			}
			wrong = append(wrong, activity)
		}
		if len(wrong) == before || len(expired) >= limit {
			return expired, err
		}
	}
}

func (s *Store) expireAll(ctx context.Context, activity string, ids []string) (expired []Order, err error) {
	for part := range slices.Chunk(ids, chunk) {
		orders, err := s.expire(ctx, activity, part)
		if err != nil {
			return expired, fmt.Errorf("expiring %d orders of activity %q: %w", len(part), activity, err)
		}
		expired = append(expired, orders...)
	}
	return expired, nil
}

// overdue finds the ids of orders that are due, by activity, but for some. Nothing is locked: it
// reads the index of due times only up to now.
func (s *Store) overdue(ctx context.Context, now time.Time, limit int, but []string) (map[string][]string, error) {
	db, cancel := s.session(ctx)
	defer cancel()
	var rows []orderRow
	query := db.Table(s.dialect.ordersBy(indexDue)).Select("id", "activity_id").
		Where("state = ? AND due_ms <= ?", order.Created, now.UnixMilli())
	if len(but) > 0 {
		query = query.Where("activity_id NOT IN ?", but)
	}
	err := query.Order("due_ms").Limit(limit).Find(&rows).Error
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
	err = s.write(ctx, func(tx *gorm.DB, now time.Time) error {
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
		if err := giveBack(tx, activity, rows, order.Expired, "", now); err != nil {
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
func giveBack(tx *gorm.DB, activity string, rows []orderRow, to order.State, reason order.Reason, now time.Time) error {
	if len(rows) == 0 {
		return nil
	}
	slices.SortFunc(rows, func(a, b orderRow) int { return cmp.Compare(a.ID, b.ID) })
	ids := make([]string, len(rows))
	var units int64
	at := now.UnixMilli()
	for i := range rows {
		ids[i] = rows[i].ID
		units += int64(rows[i].Quantity)
		rows[i].State, rows[i].Reason, rows[i].Claim, rows[i].UpdatedMS = string(to), string(reason), nil, at
	}
	done := tx.Model(&orderRow{}).Where("id IN ? AND state IN ?", ids, to.Previous()).
		Updates(map[string]any{"state": string(to), "reason": string(reason), "claim": nil, "updated_ms": at})
	if err := moved(done, len(rows), "moving them to "+string(to)); err != nil {
		return err
	}
	done = tx.Exec("UPDATE activities SET reserved = reserved - ? WHERE id = ? AND reserved >= ?", units, activity, units)
	if done.Error != nil {
		return fmt.Errorf("giving back %d units of activity %q: %w", units, activity, done.Error)
	}
	if done.RowsAffected != 1 {
		return fmt.Errorf("giving back %d units of activity %q: %w", units, activity, errFigures)
	}
	return nil
}
