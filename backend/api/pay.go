package api

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/seckill-edge/seckill/backend/store"
	"github.com/seckill-edge/seckill/internal/order"
)

// Payment is a payment in JSON.
type Payment struct {
	ID         string     `json:"payment_id"`
	OrderID    string     `json:"order_id"`
	ActivityID string     `json:"activity_id"`
	Outcome    string     `json:"outcome" enum:"applied,refund_due,refunded" doc:"refund_due: it came too late or twice, and its money is to be given back. refunded: it was given back."`
	At         time.Time  `json:"at"`
	RefundedAt *time.Time `json:"refunded_at,omitempty"`
}

// Paid answers a payment.
type Paid struct {
	Outcome string  `json:"outcome" enum:"applied,refund_due,refunded" doc:"applied: the order is paid. Else the order is as it was: refund_due, the money is due back; refunded, in a repeat only, it has been given back."`
	Repeat  bool    `json:"repeat" doc:"This payment was reported before; the answer is the same, but for a refund that was noted since."`
	Payment Payment `json:"payment"`
	Order   Order   `json:"order" doc:"As it stands now."`
}

// Cancelled answers a cancellation.
type Cancelled struct {
	Repeat bool  `json:"repeat" doc:"It was cancelled before."`
	Order  Order `json:"order"`
}

// Refunds are the payments whose money is due back.
type Refunds struct {
	Total   int64     `json:"total" doc:"How many there are, those not listed included."`
	Refunds []Payment `json:"refunds"`
}

// PaymentOf puts a payment into JSON's shape.
func PaymentOf(p store.Payment) Payment {
	out := Payment{ID: p.ID, OrderID: p.OrderID, ActivityID: p.ActivityID, Outcome: string(p.Outcome), At: instant(p.At)}
	if !p.RefundedAt.IsZero() {
		at := instant(p.RefundedAt)
		out.RefundedAt = &at
	}
	return out
}

// PaymentsOf puts payments into JSON's shape; never nil.
func PaymentsOf(all []store.Payment) []Payment {
	out := make([]Payment, len(all))
	for i, p := range all {
		out[i] = PaymentOf(p)
	}
	return out
}

// PaidOf puts the outcome of a payment into JSON's shape.
func PaidOf(m store.Moved) Paid {
	return Paid{Outcome: string(m.Payment.Outcome), Repeat: m.Repeat, Payment: PaymentOf(m.Payment), Order: OrderOf(m.Order)}
}

// Refusal says in words why a move did not happen; empty if it did, or if it was
// a payment that is kept as one that is due back.
func Refusal(m store.Moved, to order.State) string {
	switch {
	case m.Result == store.NoPaymentStage:
		return fmt.Sprintf("order %s cannot become %s: its activity has no payment stage, it was sold when it was stored", m.Order.ID, to)
	case m.Result == store.MoveLost && to != order.Paid:
		return fmt.Sprintf("order %s cannot become %s: it is %s, for good", m.Order.ID, to, m.Order.State)
	}
	return ""
}

// stateError is a refusal that names the state that has won.
type stateError struct {
	huma.ErrorModel
	State string `json:"state" doc:"Where the order stands."`
}

func refused(m store.Moved, to order.State) error {
	words := Refusal(m, to)
	if words == "" {
		return nil
	}
	return &stateError{
		ErrorModel: huma.ErrorModel{Title: http.StatusText(http.StatusConflict), Status: http.StatusConflict, Detail: words},
		State:      string(m.Order.State),
	}
}

type (
	paidInput struct {
		OrderID string `path:"order_id" maxLength:"26"`
		Body    struct {
			PaymentID string `json:"payment_id" minLength:"1" maxLength:"128" pattern:"^[!-~]+$" doc:"The payment service's reference. The same one again is the same payment."`
		}
	}
	cancelInput struct {
		OrderID string `path:"order_id" maxLength:"26"`
		Body    *struct {
			Reason string `json:"reason,omitempty" maxLength:"32" pattern:"^[a-z0-9_]*$" doc:"A word for why, kept with the order."`
		} `required:"false"`
	}
	refundsInput struct {
		Limit int `query:"limit" default:"100" minimum:"1" maximum:"1000"`
	}
	byPayment struct {
		PaymentID string `path:"payment_id" doc:"Percent-encoded: references may have a slash."`
	}
	paidOutput      struct{ Body Paid }
	cancelledOutput struct{ Body Cancelled }
	refundsOutput   struct{ Body Refunds }
	paymentOutput   struct{ Body Payment }
)

// describePay registers what a payment service calls, and the refunds.
func describePay(api huma.API, h *handlers) {
	register(api, h, http.MethodPost, "/api/orders/{order_id}/paid", "pay-order", "Report a payment; one that comes too late is kept as refund_due", h.paid)
	register(api, h, http.MethodPost, "/api/orders/{order_id}/cancel", "cancel-order", "Cancel an unpaid order; its units and its buyer's right to buy return", h.cancel)
	register(api, h, http.MethodGet, "/api/refunds", "list-refunds", "Payments whose money is due back, the oldest first", h.refunds)
	register(api, h, http.MethodPost, "/api/refunds/{payment_id}/done", "refund-done", "Note that the money was given back", h.refundDone)
}

func (h *handlers) paid(ctx context.Context, in *paidInput) (*paidOutput, error) {
	if !order.ValidID(in.OrderID) {
		return nil, badOrderID()
	}
	m, err := h.Pay.Paid(ctx, in.OrderID, in.Body.PaymentID)
	if err != nil {
		return nil, NoOrder(in.OrderID, err)
	}
	if err := refused(m, order.Paid); err != nil {
		return nil, err
	}
	return &paidOutput{PaidOf(m)}, nil
}

func (h *handlers) cancel(ctx context.Context, in *cancelInput) (*cancelledOutput, error) {
	if !order.ValidID(in.OrderID) {
		return nil, badOrderID()
	}
	var reason order.Reason
	if in.Body != nil {
		reason = order.Reason(in.Body.Reason)
	}
	m, err := h.Pay.Cancel(ctx, in.OrderID, reason)
	if err != nil {
		return nil, NoOrder(in.OrderID, err)
	}
	if err := refused(m, order.Cancelled); err != nil {
		return nil, err
	}
	return &cancelledOutput{Cancelled{Repeat: m.Repeat, Order: OrderOf(m.Order)}}, nil
}

func (h *handlers) refunds(ctx context.Context, in *refundsInput) (*refundsOutput, error) {
	due, total, err := h.Store.Refunds(ctx, in.Limit)
	if err != nil {
		return nil, err
	}
	return &refundsOutput{Refunds{Total: total, Refunds: PaymentsOf(due)}}, nil
}

func (h *handlers) refundDone(ctx context.Context, in *byPayment) (*paymentOutput, error) {
	p, err := h.Store.RefundDone(ctx, in.PaymentID)
	if err != nil {
		return nil, NoPayment(in.PaymentID, err)
	}
	return &paymentOutput{PaymentOf(p)}, nil
}

func badOrderID() error {
	return huma.Error422UnprocessableEntity("order id: must be 26 of 0-9 a-z without i l o u")
}
