package consume

import (
	"bytes"
	"context"
	"errors"
	"time"

	"github.com/seckill-edge/seckill/backend/settle"
	"github.com/seckill-edge/seckill/backend/store"
	"github.com/seckill-edge/seckill/internal/order"
	"github.com/seckill-edge/seckill/lua"
)

// recordWithin bounds the look at a buyer's record.
const recordWithin = time.Second

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

// orderOf is what a bad entry still says of its order; false if it does not say
// whose it is. What the entry has wrong is taken from the buyer's record, when
// Redis can be asked: the row then says what was reserved.
func (c *Consumer) orderOf(ctx context.Context, body []byte, entry order.BadEntry) (order.Order, bool) {
	fields := bytes.Split(entry.Raw, []byte{'\t'})
	if entry.OrderID == "" || len(fields) < 2 || !order.ValidUser(string(fields[1])) {
		return order.Order{}, false
	}
	product, activity := order.MessageHeader(body)
	at, _ := order.IDTime(entry.OrderID)
	o := order.Order{
		ID: entry.OrderID, ProductID: product, ActivityID: activity, UserID: string(fields[1]), ReservedAt: at,
	}
	ctx, cancel := context.WithTimeout(ctx, recordWithin)
	defer cancel()
	record, err := lua.RecordOf(ctx, c.Redis, o.ProductID, o.UserID)
	if err != nil {
		return o, true
	}
	for _, e := range record {
		if e.OrderID == o.ID {
			o.Quantity, o.ReservedAt = e.Quantity, e.At
		}
	}
	return o, true
}
