package store

import (
	"context"
	"errors"
	"fmt"
	"time"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"github.com/seckill-edge/seckill/internal/killpoint"
	"github.com/seckill-edge/seckill/internal/order"
)

// Moved is what became of a move of an order's life: Pay, Cancel.
type Moved struct {
	Result MoveResult
	// Order is as it stands after the call: its State says what has won.
	Order Order
	// PayWindow is its activity's.
	PayWindow time.Duration
	// Payment is what Pay has kept; zero after Cancel, and with NoPaymentStage.
	Payment Payment
	// Repeat says that the very same call had this answer before.
	Repeat bool
}

// MoveResult says whether an order moved. It is a value, not an error.
type MoveResult string

// The results.
const (
	// MoveDone: the order stands where it was to go, by this call or an earlier one.
	MoveDone MoveResult = "done"
	// MoveLost: another move was first, and nothing was changed; a payment is kept
	// as one that is due back.
	MoveLost MoveResult = "lost"
	// NoPaymentStage: the order was sold when it was stored, and stays so.
	NoPaymentStage MoveResult = "no_payment_stage"
)

// Pay moves an order from created to paid, in one conditional statement, and keeps
// the payment. payment is the payment service's reference of 1 to 128 visible
// characters (see order.ValidPayment). An order whose time is up but that nobody
// has expired yet can still be paid.
//
// An order that is cancelled, expired, rejected or paid by another payment never
// moves: the payment is kept as RefundDue. The same payment again has the same
// answer. One that is paid, and whose payment the database has forgotten, takes the
// first that comes. ErrNotFound if there is no such order: one that is not stored yet
// cannot be paid. ErrExists if the reference was used for another order.
func (s *Store) Pay(ctx context.Context, orderID, payment string) (m Moved, err error) {
	err = s.write(ctx, func(tx *gorm.DB, now time.Time) error {
		m, err = s.payIn(tx, orderID, payment, now)
		killpoint.Here(killpoint.BeforeCommit)
		return err
	})
	if err != nil {
		return Moved{}, fmt.Errorf("paying order %q by payment %q: %w", orderID, payment, err)
	}
	return m, nil
}

func (s *Store) payIn(tx *gorm.DB, id, payment string, now time.Time) (Moved, error) {
	// Locked, so that whatever else moves it comes before or after.
	row, window, err := s.orderToMove(tx, id, clause.Locking{Strength: clause.LockingStrengthUpdate})
	if err != nil {
		return Moved{}, err
	}
	var kept paymentRow
	err = tx.Where("id = ?", payment).Take(&kept).Error
	switch {
	case err == nil && kept.OrderID != id:
		return Moved{}, fmt.Errorf("%w: this payment was made for order %s", ErrExists, kept.OrderID)
	case err == nil:
		m := Moved{Result: MoveDone, Order: row.order(), PayWindow: window, Payment: kept.payment(), Repeat: true}
		if m.Payment.Outcome != Applied {
			m.Result = MoveLost
		}
		return m, nil
	case !errors.Is(err, gorm.ErrRecordNotFound):
		return Moved{}, fmt.Errorf("looking for a repeat: %w", err)
	}
	kept = paymentRow{ID: payment, OrderID: id, ActivityID: row.ActivityID, Outcome: string(RefundDue), AtMS: now.UnixMilli()}
	m := Moved{Result: MoveLost, PayWindow: window}
	orphan, err := paidByNobody(tx, &row)
	switch {
	case err != nil:
		return Moved{}, err
	case orphan:
		kept.Outcome, m.Result = string(Applied), MoveDone
	case !order.Moves(order.State(row.State), order.Paid):
	case row.DueMS == nil:
		return Moved{Result: NoPaymentStage, Order: row.order(), PayWindow: window}, nil
	default:
		done := tx.Model(&orderRow{}).Where("id = ? AND state IN ? AND due_ms IS NOT NULL", id, order.Paid.Previous()).
			Updates(map[string]any{"state": string(order.Paid), "updated_ms": now.UnixMilli()})
		if done.Error != nil || done.RowsAffected != 1 {
			return Moved{}, moved(done, 1, "paying it")
		}
		row.State, row.UpdatedMS = string(order.Paid), now.UnixMilli()
		kept.Outcome, m.Result = string(Applied), MoveDone
	}
	if err := tx.Create(&kept).Error; err != nil {
		return Moved{}, fmt.Errorf("keeping the payment: %w", err)
	}
	m.Order, m.Payment = row.order(), kept.payment()
	return m, nil
}

// paidByNobody says that an order is paid and its payment is forgotten, see
// TakeOrders.
func paidByNobody(tx *gorm.DB, row *orderRow) (bool, error) {
	if row.State != string(order.Paid) {
		return false, nil
	}
	var payments int64
	err := tx.Model(&paymentRow{}).Where("order_id = ? AND outcome = ?", row.ID, Applied).Count(&payments).Error
	if err != nil {
		return false, fmt.Errorf("looking for its payment: %w", err)
	}
	return payments == 0, nil
}

// Cancel moves an order from created to cancelled, in one conditional statement,
// and gives its units and its buyer's claim back in the same transaction. reason
// is the caller's word for it (see order.ValidCancelReason).
//
// A cancelled order is Done again, with its first reason. ErrNotFound if there is
// no such order.
func (s *Store) Cancel(ctx context.Context, orderID string, reason order.Reason) (m Moved, err error) {
	err = s.write(ctx, func(tx *gorm.DB, now time.Time) error {
		m, err = s.cancelIn(tx, orderID, reason, now)
		killpoint.Here(killpoint.BeforeCommit)
		return err
	})
	if err != nil {
		return Moved{}, fmt.Errorf("cancelling order %q: %w", orderID, err)
	}
	return m, nil
}

func (s *Store) cancelIn(tx *gorm.DB, id string, reason order.Reason, now time.Time) (Moved, error) {
	// The activity first, as storing does, so that nobody waits crosswise.
	row, _, err := s.orderToMove(tx, id, clause.Locking{})
	if err != nil {
		return Moved{}, err
	}
	if order.Moves(order.State(row.State), order.Cancelled) {
		if err := lockActivity(tx, row.ActivityID); err != nil {
			return Moved{}, err
		}
	}
	row, window, err := s.orderToMove(tx, id, clause.Locking{Strength: clause.LockingStrengthUpdate})
	if err != nil {
		return Moved{}, err
	}
	m := Moved{Result: MoveLost, Order: row.order(), PayWindow: window}
	switch state := order.State(row.State); {
	case state == order.Cancelled:
		m.Result, m.Repeat = MoveDone, true
		return m, nil
	case !order.Moves(state, order.Cancelled):
		return m, nil
	case row.DueMS == nil:
		m.Result = NoPaymentStage
		return m, nil
	}
	rows := []orderRow{row}
	if err := giveBack(tx, row.ActivityID, rows, order.Cancelled, reason, now); err != nil {
		return Moved{}, err
	}
	m.Result, m.Order = MoveDone, rows[0].order()
	return m, nil
}

// orderToMove reads one order and its activity's pay window.
func (s *Store) orderToMove(tx *gorm.DB, id string, lock clause.Locking) (orderRow, time.Duration, error) {
	if !order.ValidID(id) {
		return orderRow{}, 0, ErrNotFound
	}
	read := tx
	if lock.Strength != "" {
		read = tx.Clauses(lock)
	}
	var row orderRow
	err := read.Where("id = ?", id).Take(&row).Error
	if errors.Is(err, gorm.ErrRecordNotFound) {
		return row, 0, ErrNotFound
	}
	if err != nil {
		return row, 0, fmt.Errorf("reading it: %w", err)
	}
	var a activityRow
	err = tx.Where("id = ?", row.ActivityID).Take(&a).Error
	if err != nil && !errors.Is(err, gorm.ErrRecordNotFound) {
		return row, 0, fmt.Errorf("reading activity %q: %w", row.ActivityID, err)
	}
	return row, a.payWindow(), nil
}

// moved says what is wrong with an UPDATE that was to move want orders.
func moved(done *gorm.DB, want int, what string) error {
	if done.Error != nil {
		return fmt.Errorf("%s: %w", what, done.Error)
	}
	if done.RowsAffected != int64(want) {
		return fmt.Errorf("%s: %d of %d orders have moved, though they were locked", what, done.RowsAffected, want)
	}
	return nil
}
