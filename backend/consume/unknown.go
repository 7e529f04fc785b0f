package consume

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/seckill-edge/seckill/backend/duty"
	"github.com/seckill-edge/seckill/backend/store"
	"github.com/seckill-edge/seckill/internal/order"
	"github.com/seckill-edge/seckill/lua"
)

const (
	// lookEvery is how often each activity is looked at for its sighting.
	lookEvery = 2 * time.Second
	// lookWithin bounds the look at one activity that no batch waits for.
	lookWithin = time.Second
	// maxLooked bounds the activities that are looked at before an order of theirs
	// comes: the newest.
	maxLooked = 256
	// askAgain is how long a Redis that has not answered in time is not asked.
	askAgain = time.Second
)

// errUnknown is why an order that nobody reserved is a dead letter.
var errUnknown = errors.New("unknown_reservation: Redis, whose stock is proven, has no such reservation of this buyer, and SQL no such order; nothing was stored")

// setApart takes out of b the orders that nobody has reserved. It asks Redis for a
// bounded time for all of them; one that does not answer, or that cannot be believed
// about an order, sets none apart, and SQL's guard judges it as ever. The error is
// errStopping or the context's.
func (c *Consumer) setApart(ctx context.Context, b *batch) error {
	var missing []*order.Order
	err := duty.Safely(func() (err error) {
		missing, err = c.missing(ctx, b)
		return err
	})
	c.passes.Panicked(duty.Consume, err)
	if err != nil {
		c.Log.Debug("consume: a batch is stored without a look at Redis", "error", err)
		c.askAfter = time.Now().Add(askAgain)
		return ctx.Err()
	}
	if len(missing) == 0 {
		return nil
	}
	ids := make([]string, len(missing))
	for i, o := range missing {
		ids[i] = o.ID
	}
	var rows map[string]store.Order
	err = c.whenUp(ctx, len(ids), func() (err error) {
		rows, err = c.Store.Orders(ctx, ids)
		return err
	})
	switch {
	case errors.Is(err, errStopping) || ctx.Err() != nil:
		return err
	case err != nil:
		return nil //nolint:nilerr // storing finds out what SQL has against them
	}
	unknown := make(map[*order.Order]bool, len(missing))
	for _, o := range missing {
		_, stored := rows[o.ID] // given back, and forgotten by the buyer's record since
		unknown[o] = !stored
	}
	b.setApart(unknown)
	return nil
}

// missing are the orders of b that Redis knows nothing of and would know.
func (c *Consumer) missing(ctx context.Context, b *batch) ([]*order.Order, error) {
	if time.Now().Before(c.askAfter) {
		return nil, nil
	}
	ctx, cancel := context.WithTimeout(ctx, c.RecordWithin)
	defer cancel()
	var missing []*order.Order
	for product, orders := range b.byProduct() {
		absent, err := c.absent(ctx, product, orders)
		if err == nil && len(absent) == 0 && !c.sightings.fresh(product, lookEvery) {
			_, _, _, err = c.sightings.look(ctx, product)
		}
		if err == nil && len(absent) > 0 {
			absent, err = c.confirmed(ctx, product, absent)
		}
		if err != nil {
			return nil, err
		}
		missing = append(missing, absent...)
	}
	return missing, nil
}

// confirmed are those of the absent orders that are absent for sure: they are so in
// two more reads between two looks that find the same proven stock, and were reserved
// after the first such look of this backend, if ever.
func (c *Consumer) confirmed(ctx context.Context, product string, absent []*order.Order) ([]*order.Order, error) {
	now, before, proven, err := c.sightings.look(ctx, product)
	if err != nil || !proven {
		return nil, err
	}
	absent = slices.DeleteFunc(absent, func(o *order.Order) bool { return !before.judges(o, now, c.Margin) })
	for range 2 {
		if absent, err = c.absent(ctx, product, absent); err != nil || len(absent) == 0 {
			return nil, err
		}
	}
	_, after, proven, err := c.sightings.look(ctx, product)
	if err != nil || !proven || after != before {
		return nil, err
	}
	return absent, nil
}

// absent are those of the orders that their buyers' records do not have as they are.
// What cannot be read says nothing.
func (c *Consumer) absent(ctx context.Context, product string, orders []*order.Order) ([]*order.Order, error) {
	users := make([]string, len(orders))
	for i, o := range orders {
		users[i] = o.UserID
	}
	var absent []*order.Order
	if len(users) == 0 {
		return nil, nil
	}
	records, err := lua.RecordTexts(ctx, c.Redis, product, users)
	if err != nil {
		return nil, err
	}
	for i, o := range orders {
		e, there, err := lua.FindOrder(records[i], o.ID)
		if err == nil && (!there || e.Quantity != o.Quantity || e.Claim != o.Claim) {
			absent = append(absent, o)
		}
	}
	return absent, nil
}

// watch looks at the activities that are sold through, so that their sightings are
// older than their first orders. It returns when ctx ends.
func (c *Consumer) watch(ctx context.Context) {
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	for {
		err := duty.Safely(func() error { return c.lookAround(ctx) })
		c.passes.Panicked(duty.Consume, err)
		if err != nil && ctx.Err() == nil {
			c.Log.Debug("consume: the activities were not looked at", "error", err)
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

func (c *Consumer) lookAround(ctx context.Context) error {
	activities, err := c.Store.Unarchived(ctx)
	if err != nil {
		return err
	}
	looked := 0
	for _, a := range activities {
		if a.State != store.Open || looked == maxLooked {
			continue
		}
		looked++
		asking, cancel := context.WithTimeout(ctx, lookWithin)
		_, _, _, err := c.sightings.look(asking, a.ProductID)
		cancel()
		if err != nil {
			return fmt.Errorf("looking at product %s: %w", a.ProductID, err)
		}
	}
	return nil
}
