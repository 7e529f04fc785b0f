package store

import (
	"context"
	"errors"
	"fmt"
	"time"

	"gorm.io/gorm"

	"github.com/seckill-edge/seckill/internal/order"
)

// Taken counts what TakeOrders has taken back.
type Taken struct {
	// Stored are orders that had no row, Moved those that stood where they had been
	// before; Odd, those of which nothing was taken, because SQL has another order
	// under the id or an end that the order cannot have had.
	Stored, Moved, Odd int
}

// Add adds what another call has taken.
func (t *Taken) Add(more Taken) {
	t.Stored += more.Stored
	t.Moved += more.Moved
	t.Odd += more.Odd
}

// errDry undoes what was only tried.
var errDry = errors.New("only tried")

// TakeOrders takes back orders of one activity that the database has forgotten, or
// has forgotten moves of, from somebody who was told of them: each with its State,
// Reason, Claim (while it holds stock) and DueAt. What the database knows better
// stays. All of it is one transaction; it is done whatever the tide, and may be
// repeated. dry changes nothing and needs no such activity.
//
// ErrState if the orders hold more than the activity's total.
func (s *Store) TakeOrders(ctx context.Context, activity string, orders []Order, dry bool) (taken Taken, err error) {
	err = s.transact(ctx, func(tx *gorm.DB) error {
		now, _, err := s.readTide(tx)
		if err == nil {
			err = lockActivity(tx, activity)
		}
		if err != nil {
			return err
		}
		if taken, err = s.takeIn(tx, activity, orders, now, dry); err == nil && dry {
			err = errDry
		}
		return err
	})
	if err != nil && !errors.Is(err, errDry) {
		return Taken{}, fmt.Errorf("taking back %d orders of activity %q: %w", len(orders), activity, err)
	}
	return taken, nil
}

func (s *Store) takeIn(tx *gorm.DB, activity string, orders []Order, now time.Time, dry bool) (taken Taken, err error) {
	ids := make([]string, len(orders))
	for i := range orders {
		ids[i] = orders[i].ID
	}
	rows, err := s.rowsByID(tx, ids)
	if err != nil {
		return taken, fmt.Errorf("looking for what is there: %w", err)
	}
	var missing []orderRow
	var units int64
	for i := range orders {
		o := &orders[i]
		row, there := rows[o.ID]
		switch {
		case !there:
			missing = append(missing, takenRow(o, now))
			if o.State.HoldsStock() {
				units += int64(o.Quantity)
			}
		case !row.isFor(&o.Order):
			taken.Odd++
		case row.DueMS != nil && order.Moves(order.State(row.State), o.State):
			if err := takeMove(tx, &row, o, now); err != nil {
				return taken, err
			}
			if taken.Moved++; !o.State.HoldsStock() {
				units -= int64(row.Quantity)
			}
		case row.State != string(o.State) && !order.Moves(o.State, order.State(row.State)):
			taken.Odd++
		}
	}
	taken.Stored = len(missing)
	if dry {
		return taken, nil
	}
	// After the moves, which give claims back.
	if err := insert(tx, missing); err != nil {
		return taken, err
	}
	return taken, takeUnits(tx, activity, units)
}

// takenRow is the row of an order that is taken back.
func takenRow(o *Order, now time.Time) orderRow {
	row := newOrderRow(&o.Order, o.State, o.Reason, now)
	row.CreatedMS = o.ReservedAt.UnixMilli()
	if !o.DueAt.IsZero() {
		due := o.DueAt.UnixMilli()
		row.DueMS = &due
	}
	return row
}

// takeMove moves a row to where its order stood.
func takeMove(tx *gorm.DB, row *orderRow, o *Order, now time.Time) error {
	changes := map[string]any{"state": string(o.State), "reason": string(o.Reason), "updated_ms": now.UnixMilli()}
	if !o.State.HoldsStock() {
		changes["claim"] = nil
	}
	done := tx.Model(&orderRow{}).Where("id = ? AND state = ?", row.ID, row.State).Updates(changes)
	return moved(done, 1, "moving it to "+string(o.State))
}

func takeUnits(tx *gorm.DB, activity string, units int64) error {
	if units == 0 {
		return nil
	}
	done := tx.Exec("UPDATE activities SET reserved = reserved + ? WHERE id = ? AND reserved + ? BETWEEN 0 AND total", units, activity, units)
	if done.Error == nil && done.RowsAffected != 1 {
		return fmt.Errorf("%w: with %d units more than the database has as given away the activity is beyond its total", ErrState, units)
	}
	return done.Error
}

// TakeActivity takes back an activity that the database has forgotten, or whose
// state or total it has forgotten changes of. It is held: whoever knows opens it. An
// earlier sale of the product that seems to be live has been closed before this one
// could begin. made and changed say what was done, or would be if dry.
func (s *Store) TakeActivity(ctx context.Context, a Activity, dry bool) (made, changed bool, err error) {
	err = s.transact(ctx, func(tx *gorm.DB) error {
		made, changed = false, false
		var rows []activityRow
		if err := tx.Where("id = ?", a.ID).Limit(1).Find(&rows).Error; err != nil {
			return err
		}
		var err error
		if len(rows) == 0 {
			made, err = true, s.makeActivity(tx, a)
		} else {
			changed, err = changeActivity(tx, &rows[0], a)
		}
		if err == nil && dry {
			err = errDry
		}
		return err
	})
	if err != nil && !errors.Is(err, errDry) {
		return false, false, fmt.Errorf("taking back activity %q: %w", a.ID, err)
	}
	return made, changed, nil
}

func (s *Store) makeActivity(tx *gorm.DB, a Activity) error {
	made := s.stamp()
	if a.Start.Before(made) {
		made = a.Start // no order of it is older
	}
	row := newActivityRow(&a, made)
	row.Changes = a.Changes
	if a.State != Closed {
		err := tx.Model(&activityRow{}).Where("live = ?", a.ProductID).Updates(map[string]any{"state": string(Closed), "live": nil}).Error
		if err != nil {
			return err
		}
	}
	return tx.Create(&row).Error
}

func changeActivity(tx *gorm.DB, row *activityRow, a Activity) (bool, error) {
	changes := map[string]any{}
	if a.Changes > row.Changes {
		changes["total"], changes["changes"], changes["target"] = a.Total, a.Changes, 0
	}
	if row.State == string(Scheduled) {
		changes["state"] = string(Held)
	}
	if len(changes) == 0 {
		return false, nil
	}
	return true, tx.Model(&activityRow{}).Where("id = ?", a.ID).Updates(changes).Error
}
