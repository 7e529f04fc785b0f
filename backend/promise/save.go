package promise

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/seckill-edge/seckill/backend/settle"
	"github.com/seckill-edge/seckill/backend/store"
	"github.com/seckill-edge/seckill/internal/killpoint"
	"github.com/seckill-edge/seckill/internal/order"
	"github.com/seckill-edge/seckill/lua"
)

const (
	// batchOrders bounds one transaction, saveWithin its time.
	batchOrders = 1000
	saveWithin  = 10 * time.Second
)

// errStore is what fails because of SQL.
var errStore = errors.New("orders that are due cannot be stored")

// batch gathers due orders of one activity and stores them.
type batch struct {
	*Keeper
	activity lua.Activity
	now      time.Time // Redis's
	// counting says that SQL is away: orders are counted only.
	counting bool
	orders   []order.Order
	// late is the orders whose time is over and that could not be stored; left says
	// that there are orders which are due and could not.
	late int
	left bool
	// from is the age from which a walk takes orders; oldest, that of the oldest one
	// it has seen below that.
	from, oldest time.Duration
	// storing is how long flush has taken altogether.
	storing time.Duration
}

// add takes one order, and stores what has gathered when that is enough. A name that
// no buyer can have owns nothing.
func (b *batch) add(ctx context.Context, user string, e lua.Entry) error {
	if !order.ValidUser(user) {
		return nil
	}
	b.orders = append(b.orders, order.Order{
		ID: e.OrderID, ActivityID: b.activity.ID, ProductID: b.activity.ProductID, UserID: user,
		Quantity: e.Quantity, Claim: e.Claim, ReservedAt: e.At,
	})
	if len(b.orders) < batchOrders {
		return nil
	}
	return b.flush(ctx)
}

// flush stores what has gathered and tells Redis.
func (b *batch) flush(ctx context.Context) error {
	orders := b.orders
	b.orders = nil
	if len(orders) == 0 {
		return nil
	}
	if b.counting {
		b.broken(orders)
		return nil
	}
	defer func(began time.Time) { b.storing += time.Since(began) }(time.Now())
	b.inHand.Add(int64(len(orders)))
	defer b.inHand.Add(-int64(len(orders)))
	// The records were read after the activity was: if it is still there they are its
	// own, and not those of the product's next sale.
	if _, ours, err := b.audit(ctx, store.Activity{ID: b.activity.ID, ProductID: b.activity.ProductID}); err != nil || !ours {
		return err
	}
	moves, left, err := b.store(ctx, orders)
	b.broken(left)
	if len(moves) == 0 {
		return err
	}
	killpoint.Here(killpoint.AfterDirect)
	done, tellErr := b.Settler.Now(ctx, moves)
	if done > 0 {
		b.Metrics.Direct(done)
		b.Log.Warn("promise: stored orders that the broker has not delivered in time", "product", b.activity.ProductID,
			"activity", b.activity.ID, "orders", done)
	}
	return errors.Join(err, tellErr)
}

// broken notes orders that could not be stored, and counts those whose time is over.
func (b *batch) broken(orders []order.Order) {
	b.left = b.left || len(orders) > 0
	for i := range orders {
		if age(orders[i].ID, b.now) > b.Within {
			b.late++
		}
	}
}

// store stores orders and returns what Redis is to be told, and which are left. One
// that SQL does not take is found by halving.
func (b *batch) store(ctx context.Context, orders []order.Order) (moves []settle.Order, left []order.Order, err error) {
	saving, cancel := context.WithTimeout(ctx, saveWithin)
	defer cancel()
	saved, err := b.Store.SaveOrders(saving, orders)
	switch {
	case err == nil:
		return b.Settler.Saved(byID(orders), saved), nil, nil
	case store.IsTransient(err) || b.Store.SchemaReady(saving) != nil:
		return nil, orders, fmt.Errorf("%w: %w", errStore, err)
	case len(orders) == 1:
		return b.refuse(ctx, orders[0], err)
	}
	moves, left, err = b.store(ctx, orders[:len(orders)/2])
	if err != nil {
		return moves, append(left, orders[len(orders)/2:]...), err
	}
	more, leftToo, err := b.store(ctx, orders[len(orders)/2:])
	return append(moves, more...), append(left, leftToo...), err
}

// refuse rejects an order that SQL does not take, when it has been tried for half
// of the time there was: its buyer is to know by then.
func (b *batch) refuse(ctx context.Context, o order.Order, reason error) ([]settle.Order, []order.Order, error) {
	if age(o.ID, b.now) < (b.After+b.Within)/2 {
		return nil, []order.Order{o}, nil
	}
	ctx, cancel := context.WithTimeout(ctx, saveWithin)
	defer cancel()
	row, err := b.Store.RejectOrder(ctx, o, order.ReasonInvalid)
	if err != nil {
		return nil, []order.Order{o}, fmt.Errorf("%w: %w", errStore, err)
	}
	b.Log.Error("promise: the database does not take an order; it is rejected", "product", o.ProductID, "order", o.ID, "error", reason)
	return b.Settler.Saved(byID([]order.Order{o}), []store.Saved{row}), nil, nil
}

func byID(orders []order.Order) map[string]*order.Order {
	out := make(map[string]*order.Order, len(orders))
	for i := range orders {
		out[orders[i].ID] = &orders[i]
	}
	return out
}
