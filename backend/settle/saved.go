package settle

import (
	"time"

	"github.com/seckill-edge/seckill/backend/store"
	"github.com/seckill-edge/seckill/internal/order"
	"github.com/seckill-edge/seckill/lua"
)

// Saved counts what has become of orders that were given to SQL, and says what
// Redis is to be told of them. sent are those orders, by id.
func (s *Settler) Saved(sent map[string]*order.Order, saved []store.Saved) []Order {
	out := make([]Order, 0, len(saved))
	for _, row := range saved {
		if row.Foreign {
			s.log.Error("settle: an order comes under the id of another; it is not stored, and its units stay frozen", "order", row.OrderID)
			continue
		}
		if row.State == order.Rejected && !row.Repeat {
			s.metrics.Rejected(row.Reason)
		} else {
			s.metrics.Stored(row.Repeat)
		}
		moved, ok := Of(sent[row.OrderID], row)
		if !ok {
			s.log.Error("settle: the store answers with an order nobody sent", "order", row.OrderID, "state", row.State)
			continue
		}
		out = append(out, moved)
	}
	return out
}

// Of is what Redis is to be told of one stored order; false if there is no order,
// or its row is another's or in no state of a row.
func Of(o *order.Order, row store.Saved) (Order, bool) {
	mark, ok := MarkOf(row.State, row.PayWindow)
	if !ok || o == nil || row.Foreign {
		return Order{}, false
	}
	return Order{
		ProductID:  o.ProductID,
		ActivityID: o.ActivityID,
		Move:       lua.Move{UserID: o.UserID, OrderID: o.ID, Reason: row.Reason},
		To:         mark,
		First:      !row.Repeat || row.State == order.Created || row.State == order.Rejected,
	}, true
}

// promised counts the promises to buyers that one call has kept, in time or late.
func (s *Settler) promised(p part, moved []lua.Moved, again bool) {
	now := time.Now()
	for i, m := range moved {
		if !p.first[i] || m != lua.Done && (m != lua.Already || !again) {
			continue
		}
		if made, ok := order.IDTime(p.moves[i].OrderID); ok {
			s.metrics.Promised(now.Sub(made) <= s.Within)
		}
	}
}
