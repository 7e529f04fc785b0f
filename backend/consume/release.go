package consume

import (
	"context"
	"errors"
	"time"

	"github.com/seckill-edge/seckill/backend/store"
	"github.com/seckill-edge/seckill/lua"
)

// free gives the unit of a buried order back, if the order waits for being
// stored and for nothing else. An id that also stands in a good entry is that
// order's, and its row says what holds. A failure leaves the unit frozen; the
// audit shows it.
func (c *Consumer) free(ctx context.Context, product string, move lua.Move) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	_, err := c.Store.Order(ctx, move.OrderID)
	if err == nil {
		return
	}
	if errors.Is(err, store.ErrNotFound) {
		err = c.release(ctx, product, move)
	}
	if err != nil {
		c.Log.Error("consume: the unit of a dead letter stays frozen", "product", product, "order", move.OrderID, "error", err)
	}
}

func (c *Consumer) release(ctx context.Context, product string, move lua.Move) error {
	record, err := lua.RecordOf(ctx, c.Redis, product, move.UserID)
	if err != nil {
		return err
	}
	for _, e := range record {
		if e.OrderID == move.OrderID && e.Mark == lua.MarkQueued {
			_, err = lua.Release(ctx, c.Redis, product, lua.MarkRejected, []lua.Move{move})
			return err
		}
	}
	return nil
}
