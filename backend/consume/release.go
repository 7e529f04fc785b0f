package consume

import (
	"context"
	"errors"

	"github.com/seckill-edge/seckill/backend/settle"
	"github.com/seckill-edge/seckill/backend/store"
	"github.com/seckill-edge/seckill/internal/order"
)

// refuse gives the units of a dead letter's order back. SQL says "rejected"
// first, and that cannot be taken back: a replay of the letter, or a second copy
// in another backend's hands, finds the row and sells nothing. Redis is told
// after the acknowledgement, beside the next batch; a backend that dies before
// leaves a rejected row whose units are frozen, which the repair pass mends.
//
// An id that was stored before, by a good entry, keeps its row and its units.
// The error says that the message must not be acknowledged yet.
func (c *Consumer) refuse(ctx context.Context, m *message, o order.Order) error {
	var saved store.Saved
	err := c.whenUp(ctx, 1, func() (err error) {
		saved, err = c.Store.RejectOrder(ctx, o, order.ReasonDead)
		return err
	})
	switch {
	case errors.Is(err, errStopping) || ctx.Err() != nil:
		return err
	case err != nil:
		// Units that could be sold a second time are worse than frozen ones.
		c.Log.Error("consume: the units of a dead letter stay frozen: SQL does not take it even as rejected",
			"product", o.ProductID, "order", o.ID, "error", err)
		return nil
	}
	if saved.Foreign {
		c.Log.Error("consume: a dead letter's order has the id of another; no units are given back", "product", o.ProductID, "order", o.ID)
		return nil
	}
	if saved.State == order.Rejected && !saved.Repeat {
		c.Metrics.Rejected(saved.Reason)
	}
	if moved, ok := settle.Of(&o, saved); ok {
		m.refused = append(m.refused, moved)
	}
	return nil
}
