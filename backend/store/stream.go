package store

import (
	"context"
	"fmt"
	"time"

	"github.com/seckill-edge/seckill/internal/order"
)

// clockSlack is how far apart the clocks of the machines that make ids and
// activities may be.
const clockSlack = time.Hour

// zeros is the randomness of the lowest id of a millisecond.
type zeros struct{}

func (zeros) Read(p []byte) (int, error) { clear(p); return len(p), nil }

// FirstCursor is an id below those of all orders of an activity, for the first
// call of OrdersAfter: orders of older sales are not even looked at.
func FirstCursor(a Activity) string {
	made := a.CreatedAt.Add(-clockSlack)
	if made.UnixMilli() < 0 {
		return ""
	}
	id, err := order.NewID(made, zeros{})
	if err != nil {
		return "" // zeros does not fail
	}
	return id
}

// OrdersAfter reads the orders of an activity page by page: those with an id
// above after, by id, at most limit of them; the last id of a page is the cursor
// of the next, and a page that is not full is the last. Ids are by time, but an
// order may be stored later than one with a higher id: a page says how things
// stand when it is read.
func (s *Store) OrdersAfter(ctx context.Context, activity, after string, limit int) ([]Order, error) {
	db, cancel := s.session(ctx)
	defer cancel()
	var rows []orderRow
	err := db.Table(s.dialect.ordersBy(indexPrimary)).Where("id > ? AND activity_id = ?", after, activity).
		Order("id").Limit(limit).Find(&rows).Error
	if err != nil {
		return nil, fmt.Errorf("reading the orders of activity %q after %q: %w", activity, after, err)
	}
	orders := make([]Order, len(rows))
	for i := range rows {
		orders[i] = rows[i].order()
	}
	return orders, nil
}
