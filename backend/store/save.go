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

// SaveOrders stores a batch of orders, of any activities, in one transaction, and
// says of each what it has become; result i belongs to order i. All are stored or
// none. Up to about 2000 orders are a sensible batch; above 500 it is hardly faster.
//
// It is idempotent: an order whose id is stored already changes nothing and is
// answered as the row stands, marked as a repeat. A new order is created if its
// activity has the units left; otherwise it is stored as rejected with the reason,
// so that its buyer can be told:
//
//   - order.ReasonUnknownActivity
//   - order.ReasonInvalid: the activity sells another product, or quantity, claim
//     or the buyer's units together are beyond its limit
//   - order.ReasonDuplicate: the buyer has a live order under this claim
//   - order.ReasonOversold: more than total minus reserved
//
// The orders are served by id, which is by time. An order whose id belongs to
// another order cannot be stored; it is answered as foreign. Copies of one order
// that differ are one order: the first that is stored counts.
//
// While it is not known how high the tide was (see Wary) orders are created and none
// is rejected: ErrUnsure.
//
// Lost races are repeated for about a second. After an error ask IsTransient what
// to do. When the connection broke during the commit, the batch may be stored
// nevertheless: the same call again finds out.
func (s *Store) SaveOrders(ctx context.Context, orders []order.Order) ([]Saved, error) {
	if len(orders) == 0 {
		return nil, nil
	}
	// Rows that come in the order of the primary key fill its pages.
	sorted := make([]int, len(orders))
	for i := range sorted {
		sorted[i] = i
	}
	slices.SortStableFunc(sorted, func(a, b int) int { return cmp.Compare(orders[a].ID, orders[b].ID) })
	batch := make([]*order.Order, len(orders))
	for at, i := range sorted {
		batch[at] = &orders[i]
	}

	var saved []Saved
	err := s.writeUnsure(ctx, func(tx *gorm.DB, now time.Time) error {
		var err error
		saved, err = s.saveIn(tx, batch, now)
		killpoint.Here(killpoint.BeforeCommit)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("saving %d orders: %w", len(orders), err)
	}
	results := make([]Saved, len(orders))
	for at, i := range sorted {
		results[i] = saved[at]
	}
	return results, nil
}

// saveIn locks, decides and writes. The locks make writers of one activity wait
// for each other, so that what was read stays true until the commit, even while
// another backend stores the same message.
//
// Nearly every batch is all new and all fits, and to look for repeats and taken
// claims costs half as much again as to insert. So it inserts first if it may
// hope for that, and the unique indices say whether the hope was right.
func (s *Store) saveIn(tx *gorm.DB, batch []*order.Order, now time.Time) ([]Saved, error) {
	activities, err := lockActivities(tx, batch)
	if err != nil {
		return nil, err
	}
	if d := decide(newLedger(activities, len(batch)), batch, now); hopeful(activities, d) {
		// A transaction in a transaction is a savepoint.
		err := tx.Transaction(func(tx *gorm.DB) error { return insert(tx, d.insert) })
		if err == nil {
			return d.saved, reserve(tx, d.units)
		}
		if !s.dialect.duplicate(err) {
			return nil, err
		}
	}
	l, err := s.look(tx, activities, batch)
	if err != nil {
		return nil, err
	}
	// No index is violated now, unless an id is used in two activities at the same
	// moment; write then starts again.
	d := decide(l, batch, now)
	if d.rejects() && s.tide.unsure() {
		return nil, ErrUnsure
	}
	if err := insert(tx, d.insert); err != nil {
		return nil, err
	}
	return d.saved, reserve(tx, d.units)
}

// hopeful says whether a decision that was made without looking is right if no
// unique index is violated: it rejects nothing, and claims alone keep the limit.
func hopeful(activities map[string]activityRow, d decision) bool {
	for _, a := range activities {
		if a.LimitPerUser > 1 {
			return false
		}
	}
	for i := range d.saved {
		if d.saved[i].State != order.Created {
			return false
		}
	}
	return true
}

func insert(tx *gorm.DB, rows []orderRow) error {
	if len(rows) == 0 {
		return nil // GORM takes it for a mistake
	}
	if err := tx.CreateInBatches(rows, chunk).Error; err != nil {
		return fmt.Errorf("inserting %d rows: %w", len(rows), err)
	}
	return nil
}

// look reads what is stored already of the batch, and what its buyers hold.
func (s *Store) look(tx *gorm.DB, activities map[string]activityRow, batch []*order.Order) (*ledger, error) {
	l := newLedger(activities, len(batch))
	ids := make([]string, len(batch))
	for i, o := range batch {
		ids[i] = o.ID
	}
	var err error
	if l.rows, err = s.rowsByID(tx, slices.Compact(ids)); err != nil {
		return nil, fmt.Errorf("looking for repeats: %w", err)
	}
	if err = s.readHolders(tx, l, batch); err != nil {
		return nil, fmt.Errorf("reading the buyers' live orders: %w", err)
	}
	return l, nil
}

// lockActivities locks one activity after the other, sorted, so that two batches
// never wait for each other crosswise. One statement each: a scan for several
// could wait for activities that are none of ours. Unknown ones are absent.
func lockActivities(tx *gorm.DB, batch []*order.Order) (map[string]activityRow, error) {
	ids := make(map[string]bool)
	for _, o := range batch {
		ids[o.ActivityID] = order.ValidProduct(o.ActivityID)
	}
	found := make(map[string]activityRow, len(ids))
	for _, id := range slices.Sorted(maps.Keys(ids)) {
		if !ids[id] {
			continue
		}
		var row activityRow
		err := tx.Clauses(clause.Locking{Strength: clause.LockingStrengthUpdate}).Where("id = ?", id).Take(&row).Error
		switch {
		case errors.Is(err, gorm.ErrRecordNotFound):
		case err != nil:
			return nil, fmt.Errorf("locking activity %q: %w", id, err)
		default:
			found[id] = row
		}
	}
	return found, nil
}

// readHolders notes the claims and units that the buyers of the batch hold.
func (s *Store) readHolders(tx *gorm.DB, l *ledger, batch []*order.Order) error {
	users := make(map[string][]string)
	for _, o := range batch {
		if _, known := l.activities[o.ActivityID]; !known {
			continue
		}
		if _, repeat := l.rows[o.ID]; !repeat {
			users[o.ActivityID] = append(users[o.ActivityID], o.UserID)
		}
	}
	for activity, all := range users {
		slices.Sort(all)
		for part := range slices.Chunk(slices.Compact(all), chunk) {
			var rows []orderRow
			err := tx.Table(s.dialect.ordersBy(indexClaim)).Select("user_id", "claim", "quantity").
				Where("activity_id = ? AND user_id IN ? AND claim IS NOT NULL", activity, part).Find(&rows).Error
			if err != nil {
				return err
			}
			for _, r := range rows {
				l.take(buyer{activity, r.UserID}, *r.Claim, r.Quantity)
			}
		}
	}
	return nil
}

// reserve is SQL's guard of the total, once per activity.
func reserve(tx *gorm.DB, units map[string]int64) error {
	for _, id := range slices.Sorted(maps.Keys(units)) {
		done := tx.Exec("UPDATE activities SET reserved = reserved + ? WHERE id = ? AND reserved + ? <= total",
			units[id], id, units[id])
		if done.Error != nil {
			return fmt.Errorf("reserving %d units of activity %q: %w", units[id], id, done.Error)
		}
		if done.RowsAffected != 1 {
			return fmt.Errorf("reserving %d units of activity %q: fewer are left than a moment ago, under its lock",
				units[id], id)
		}
	}
	return nil
}
