// Package pay leads stored orders through the rest of their life: paid, cancelled
// or expired. SQL moves first, by one conditional update, and whoever is second is
// told what has won. Redis follows; what a crash leaves between the two the
// reconciler finds, and a repeat of the call mends at once, for each side may be
// told twice.
package pay

import (
	"context"
	"log/slog"
	"time"

	"github.com/seckill-edge/seckill/backend/metrics"
	"github.com/seckill-edge/seckill/backend/settle"
	"github.com/seckill-edge/seckill/backend/store"
	"github.com/seckill-edge/seckill/internal/killpoint"
	"github.com/seckill-edge/seckill/internal/order"
	"github.com/seckill-edge/seckill/lua"
)

// Deps are what the service works with. All are required.
type Deps struct {
	Store *store.Store
	// Tell hands moves to Redis, now or soon. An error means that the reconciler
	// must find them.
	Tell    func(context.Context, []settle.Order) error
	Metrics *metrics.Metrics
	Log     *slog.Logger
}

// Service moves orders. It is safe for concurrent use, also by many processes.
type Service struct{ Deps }

// New makes a service.
func New(d Deps) *Service { return &Service{d} }

// Paid notes a payment; see store.Pay for what becomes of it. It returns when SQL
// has it.
func (s *Service) Paid(ctx context.Context, orderID, payment string) (store.Moved, error) {
	m, err := s.Store.Pay(ctx, orderID, payment)
	if err != nil {
		return m, err
	}
	if !m.Repeat && m.Payment.ID != "" {
		s.Metrics.Payment(string(m.Payment.Outcome))
		if m.Payment.Outcome == store.RefundDue {
			s.Log.Info("pay: a payment came too late; its money is due back", "order", orderID, "payment", payment, "state", m.Order.State)
		}
	}
	s.follow(ctx, m)
	return m, nil
}

// Cancel gives an order's units back before it is paid; see store.Cancel.
func (s *Service) Cancel(ctx context.Context, orderID string, reason order.Reason) (store.Moved, error) {
	m, err := s.Store.Cancel(ctx, orderID, reason)
	if err != nil {
		return m, err
	}
	if m.Result == store.MoveDone && !m.Repeat {
		s.Metrics.Ended(order.Cancelled, 1)
	}
	s.follow(ctx, m)
	return m, nil
}

// follow tells Redis where an order stands, also after a repeat: the first call
// may have died between the two stores.
func (s *Service) follow(ctx context.Context, m store.Moved) {
	if m.Result != store.NoPaymentStage {
		s.tell(ctx, []store.Order{m.Order}, m.PayWindow)
	}
}

func (s *Service) tell(ctx context.Context, orders []store.Order, payWindow time.Duration) {
	killpoint.Here(killpoint.AfterMove)
	moves := make([]settle.Order, 0, len(orders))
	for _, o := range orders {
		if mark, ok := settle.MarkOf(o.State, payWindow); ok {
			moves = append(moves, settle.Order{ProductID: o.ProductID, ActivityID: o.ActivityID, Move: lua.Move{UserID: o.UserID, OrderID: o.ID}, To: mark})
		}
	}
	if err := s.Tell(ctx, moves); err != nil {
		s.Log.Warn("pay: Redis has not been told; left to the reconciler", "orders", len(orders), "error", err)
	}
}
