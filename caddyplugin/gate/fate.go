package gate

import (
	"context"
	"errors"
	"fmt"

	"github.com/seckill-edge/seckill/internal/order"
	"github.com/seckill-edge/seckill/lua"
)

// Errors of Fate.
var (
	// ErrNoOrder: the buyer has no such order; another buyer's looks the same.
	ErrNoOrder = errors.New("no such order")
	// ErrUnavailable: Redis cannot be asked now.
	ErrUnavailable = errors.New("the order's fate cannot be read now")
)

// states maps the marks of a buyer's record to what he is told.
var states = map[lua.Mark]order.State{
	lua.MarkQueued:    order.Queued,
	lua.MarkCreated:   order.Created,
	lua.MarkSettled:   order.Created,
	lua.MarkPaid:      order.Paid,
	lua.MarkRejected:  order.Rejected,
	lua.MarkCancelled: order.Cancelled,
	lua.MarkExpired:   order.Expired,
}

// Fate tells a buyer what became of his own order. Errors are ErrNoOrder and
// ErrUnavailable, wrapped. It waits for Redis at most ReserveTimeout.
func (g *Gate) Fate(ctx context.Context, product, user, orderID string) (Fate, error) {
	made, ok := order.IDTime(orderID)
	if !ok {
		return Fate{}, ErrNoOrder
	}
	ctx, cancel := context.WithTimeout(ctx, g.cfg.ReserveTimeout)
	defer cancel()
	late, isLate := g.late.get(product, user, orderID)
	entries, err := lua.RecordOf(ctx, g.deps.Redis, product, user)
	if err != nil {
		return Fate{}, fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	for _, e := range entries {
		if e.OrderID == orderID {
			return Fate{OrderID: orderID, State: states[e.Mark], Quantity: e.Quantity, ResolveBy: g.resolveBy(made)}, nil
		}
	}
	if isLate {
		return late.fate(orderID, g.deps.Now(), g.resolveBy(made)), nil
	}
	return Fate{}, ErrNoOrder
}
