package consume

import (
	"context"
	"errors"
	"time"

	"github.com/seckill-edge/seckill/backend/store"
	"github.com/seckill-edge/seckill/internal/order"
)

const (
	saveTimeout = 30 * time.Second
	firstPause  = 50 * time.Millisecond
	longPause   = 2 * time.Second
)

// errStopping: the database is away and Stop does not wait for it.
var errStopping = errors.New("stopping")

// save stores orders, and returns what became of them and which the database
// does not take. The error is errStopping or the context's.
func (c *Consumer) save(ctx context.Context, orders []order.Order) ([]store.Saved, []failure, error) {
	if len(orders) == 0 {
		return nil, nil, nil
	}
	saved, err := c.saveWhenUp(ctx, orders)
	if err == nil || ctx.Err() != nil || errors.Is(err, errStopping) {
		return saved, nil, err
	}
	if len(orders) == 1 {
		return nil, []failure{{orders[0], err}}, nil
	}
	c.Log.Warn("consume: a batch cannot be stored; looking for the order that is wrong", "orders", len(orders), "error", err)
	middle := len(orders) / 2
	saved, failed, err := c.save(ctx, orders[:middle])
	if err != nil {
		return nil, nil, err
	}
	saved2, failed2, err := c.save(ctx, orders[middle:])
	if err != nil {
		return nil, nil, err
	}
	return append(saved, saved2...), append(failed, failed2...), nil
}

// saveWhenUp runs one transaction and waits while the database is away: that is
// no order's fault, and neither is a schema that is not there yet. Meanwhile
// nothing is taken from the queue, because the batch in hand is the only one.
func (c *Consumer) saveWhenUp(ctx context.Context, orders []order.Order) ([]store.Saved, error) {
	defer c.pause(false)
	for wait := firstPause; ; wait = min(wait*2, longPause) {
		began := time.Now()
		attempt, cancel := context.WithTimeout(ctx, saveTimeout)
		saved, err := c.Store.SaveOrders(attempt, orders)
		late := attempt.Err() != nil
		cancel()
		if err == nil {
			c.Metrics.Batch(len(orders), time.Since(began))
			return saved, nil
		}
		if !late && !store.IsTransient(err) && c.Store.SchemaReady(ctx) == nil {
			return nil, err
		}
		if wait == firstPause {
			c.Log.Warn("consume: database is away; storing waits for it, nothing is lost", "orders", len(orders), "error", err)
		}
		c.pause(true)
		timer := time.NewTimer(wait)
		select {
		case <-timer.C:
		case <-c.stopping:
			timer.Stop()
			return nil, errStopping
		case <-ctx.Done():
			timer.Stop()
			return nil, ctx.Err()
		}
	}
}

func (c *Consumer) pause(paused bool) {
	if c.paused.Swap(paused) != paused {
		c.Metrics.Paused(paused)
		if !paused {
			c.Log.Info("consume: database is back, storing goes on")
		}
	}
}
