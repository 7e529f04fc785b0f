package store

import (
	"context"
	"errors"
	"fmt"
	"time"

	"gorm.io/gorm"

	"github.com/seckill-edge/seckill/internal/order"
)

// PaymentOutcome is what became of a payment.
type PaymentOutcome string

// The outcomes. A payment is applied to the one order it is for, or its money is
// due back, because the order was gone or paid already; an operator notes when it
// was given back.
const (
	Applied   PaymentOutcome = "applied"
	RefundDue PaymentOutcome = "refund_due"
	Refunded  PaymentOutcome = "refunded"
)

// Payment is one payment that was reported, kept for ever.
type Payment struct {
	// ID is the payment service's reference.
	ID         string
	OrderID    string
	ActivityID string
	Outcome    PaymentOutcome
	At         time.Time
	// RefundedAt is zero unless Outcome is Refunded.
	RefundedAt time.Time
}

// paymentRow is a row of payments.
type paymentRow struct {
	ID         string `gorm:"column:id;primaryKey"`
	OrderID    string `gorm:"column:order_id"`
	ActivityID string `gorm:"column:activity_id"`
	Outcome    string `gorm:"column:outcome"`
	AtMS       int64  `gorm:"column:at_ms"`
	RefundedMS *int64 `gorm:"column:refunded_ms"`
}

// TableName tells GORM where payments are.
func (paymentRow) TableName() string { return "payments" }

func (r *paymentRow) payment() Payment {
	p := Payment{
		ID: r.ID, OrderID: r.OrderID, ActivityID: r.ActivityID,
		Outcome: PaymentOutcome(r.Outcome), At: instant(r.AtMS),
	}
	if r.RefundedMS != nil {
		p.RefundedAt = instant(*r.RefundedMS)
	}
	return p
}

// Payments returns the payments of an order, the oldest first.
func (s *Store) Payments(ctx context.Context, orderID string) ([]Payment, error) {
	db, cancel := s.session(ctx)
	defer cancel()
	var rows []paymentRow
	if err := db.Where("order_id = ?", orderID).Order("at_ms, id").Find(&rows).Error; err != nil {
		return nil, fmt.Errorf("reading the payments of order %q: %w", orderID, err)
	}
	return payments(rows), nil
}

// Refunds returns the payments whose money is due back, the oldest first, at most
// limit of them, and how many there are in all.
func (s *Store) Refunds(ctx context.Context, limit int) (due []Payment, total int64, err error) {
	db, cancel := s.session(ctx)
	defer cancel()
	var rows []paymentRow
	err = db.Where("outcome = ?", RefundDue).Order("at_ms, id").Limit(limit).Find(&rows).Error
	if err == nil {
		total, err = refundsDue(db)
	}
	if err != nil {
		return nil, 0, fmt.Errorf("reading the refunds that are due: %w", err)
	}
	return payments(rows), total, nil
}

// RefundsDue counts the payments whose money is due back.
func (s *Store) RefundsDue(ctx context.Context) (int64, error) {
	db, cancel := s.session(ctx)
	defer cancel()
	total, err := refundsDue(db)
	if err != nil {
		return 0, fmt.Errorf("counting the refunds that are due: %w", err)
	}
	return total, nil
}

func refundsDue(db *gorm.DB) (total int64, err error) {
	err = db.Model(&paymentRow{}).Where("outcome = ?", RefundDue).Count(&total).Error
	return total, err
}

// RefundDone notes that the money of a payment was given back. Noting it again
// changes nothing. ErrNotFound if there is no such payment, ErrState if it was
// applied to its order.
func (s *Store) RefundDone(ctx context.Context, paymentID string) (Payment, error) {
	p, err := s.refundDone(ctx, paymentID)
	if err != nil {
		return Payment{}, fmt.Errorf("noting payment %q as refunded: %w", paymentID, err)
	}
	return p, nil
}

func (s *Store) refundDone(ctx context.Context, id string) (Payment, error) {
	if !order.ValidPayment(id) {
		return Payment{}, ErrNotFound
	}
	db, cancel := s.session(ctx)
	defer cancel()
	err := db.Model(&paymentRow{}).Where("id = ? AND outcome = ?", id, RefundDue).
		Updates(map[string]any{"outcome": string(Refunded), "refunded_ms": s.stamp().UnixMilli()}).Error
	if err != nil {
		return Payment{}, err
	}
	var row paymentRow
	err = db.Where("id = ?", id).Take(&row).Error
	switch {
	case errors.Is(err, gorm.ErrRecordNotFound):
		return Payment{}, ErrNotFound
	case err != nil:
		return Payment{}, err
	case PaymentOutcome(row.Outcome) != Refunded:
		return Payment{}, fmt.Errorf("%w: it is %s to order %s; no refund is due", ErrState, row.Outcome, row.OrderID)
	}
	return row.payment(), nil
}

func payments(rows []paymentRow) []Payment {
	all := make([]Payment, len(rows))
	for i := range rows {
		all[i] = rows[i].payment()
	}
	return all
}
