package consume

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/seckill-edge/seckill/backend/duty"
	"github.com/seckill-edge/seckill/backend/store"
	"github.com/seckill-edge/seckill/internal/order"
)

const (
	// saveTimeout ends one try. A try that takes as long as slow is told of as a
	// database that is away; it may come back within the same try.
	saveTimeout = 30 * time.Second
	slow        = 2 * time.Second
	firstPause  = 50 * time.Millisecond
	longPause   = 2 * time.Second
)

// errSlow is what is known of a database that has not answered yet.
var errSlow = fmt.Errorf("it has not answered for %v: %w", slow, context.DeadlineExceeded)

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

// saveWhenUp stores orders in one transaction.
func (c *Consumer) saveWhenUp(ctx context.Context, orders []order.Order) (saved []store.Saved, err error) {
	err = c.whenUp(ctx, len(orders), func() error {
		saved, err = c.saveOnce(ctx, orders)
		return err
	})
	return saved, err
}

// whenUp runs one transaction of so many orders and waits while the database is
// away: that is no order's fault, and neither is a schema that is not there yet.
// Meanwhile nothing is taken from the queue, because the batch in hand is the
// only one. The error is errStopping, the context's or the data's.
func (c *Consumer) whenUp(ctx context.Context, orders int, try func() error) error {
	defer c.pause(nil)
	for wait := firstPause; ; wait = min(wait*2, longPause) {
		err := duty.Safely(try)
		switch {
		case c.passes.Panicked(duty.Consume, err):
			return err // one of the orders is to blame: halving finds it
		case err == nil && c.Paused():
			c.Log.Info("consume: the database takes orders again")
			return nil
		case err == nil:
			return nil
		case ctx.Err() == nil && !store.IsTransient(err) && c.Store.SchemaReady(ctx) == nil:
			return err
		case wait == firstPause:
			c.Log.Warn("consume: storing waits for the database; nothing is lost", "orders", orders, "cause", store.CauseOf(err), "error", err)
		}
		c.pause(err)
		timer := time.NewTimer(wait)
		select {
		case <-timer.C:
		case <-c.stopping:
			timer.Stop()
			return errStopping
		case <-ctx.Done():
			timer.Stop()
			return ctx.Err()
		}
	}
}

func (c *Consumer) saveOnce(ctx context.Context, orders []order.Order) ([]store.Saved, error) {
	ctx, cancel := context.WithTimeout(ctx, saveTimeout)
	defer cancel()
	told := make(chan struct{})
	late := time.AfterFunc(slow, func() { c.pause(errSlow); close(told) })
	defer func() {
		if !late.Stop() {
			<-told // or it would come after the news that all is well
		}
	}()
	began := time.Now()
	saved, err := c.Store.SaveOrders(ctx, orders)
	if err == nil {
		c.Metrics.Batch(len(orders), time.Since(began))
	}
	return saved, err
}

// pause notes why storing waits for the database, nil if it does not.
func (c *Consumer) pause(why error) {
	if why == nil {
		c.paused.Store(nil)
	} else {
		c.paused.Store(&why)
	}
	c.Metrics.Paused(why != nil)
}
