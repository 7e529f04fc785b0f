package store

import (
	"context"
	"errors"
	"fmt"
	"time"

	"gorm.io/gorm"

	"github.com/seckill-edge/seckill/internal/order"
)

// RejectOrder stores an order as rejected, whatever it asks for, so that no later
// delivery of it can be created: whoever gives an order's units back calls this
// first. A row that is there already stays as it is and is answered as a repeat,
// so the answer and not the call says what has become of the order.
//
// Only the ids and the user of o need be known; a quantity that is not counts as 1,
// which buyers' records can hold. An order that the database refuses is stored with
// nothing but its ids, and SaveOrders answers whatever comes under this id as a
// repeat of it.
func (s *Store) RejectOrder(ctx context.Context, o order.Order, reason order.Reason) (Saved, error) {
	o.Quantity = max(1, o.Quantity)
	saved, err := s.rejectOrder(ctx, o, reason)
	if err != nil && blamesData(err) {
		bare := order.Order{ID: o.ID, ActivityID: o.ActivityID, ProductID: o.ProductID, Quantity: 1, ReservedAt: o.ReservedAt}
		var again error
		if saved, again = s.rejectOrder(ctx, bare, reason); again != nil {
			err = errors.Join(err, again)
		} else {
			err = nil
		}
	}
	if err != nil {
		return Saved{}, fmt.Errorf("storing order %q as rejected: %w", o.ID, err)
	}
	return saved, nil
}

// rejectOrder inserts a row if there is none of its id. It takes no lock on the
// activity: the primary key alone decides who was first.
func (s *Store) rejectOrder(ctx context.Context, o order.Order, reason order.Reason) (saved Saved, err error) {
	err = s.write(ctx, func(tx *gorm.DB, now time.Time) error {
		row := newOrderRow(&o, order.Rejected, reason, now)
		rows, err := s.rowsByID(tx, []string{row.ID})
		if err != nil {
			return fmt.Errorf("looking for a repeat: %w", err)
		}
		there, repeat := rows[row.ID]
		if !repeat {
			there = row
			if err := insert(tx, []orderRow{row}); err != nil {
				return err
			}
		}
		var a activityRow
		err = tx.Where("id = ?", row.ActivityID).Take(&a).Error
		if err != nil && !errors.Is(err, gorm.ErrRecordNotFound) {
			return fmt.Errorf("reading activity %q: %w", row.ActivityID, err)
		}
		saved = Saved{
			OrderID: row.ID, State: order.State(there.State), Reason: order.Reason(there.Reason),
			Repeat: repeat, PayWindow: a.payWindow(),
		}
		bare := there.UserID == "" || row.UserID == ""
		if there.ActivityID != row.ActivityID || there.UserID != row.UserID && !bare {
			saved = Saved{OrderID: row.ID, Foreign: true}
		}
		return nil
	})
	return saved, err
}
