package lua

import (
	"context"
	"fmt"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/seckill-edge/seckill/internal/order"
)

// Confirm takes orders out of the outbox that the broker has confirmed. Orders
// that are not there are no error.
func Confirm(ctx context.Context, c redis.Cmdable, product string, orderIDs []string) error {
	if len(orderIDs) == 0 {
		return nil
	}
	if err := c.HDel(ctx, KeysOf(product).Outbox, orderIDs...).Err(); err != nil {
		return fmt.Errorf("taking %d confirmed orders out of the outbox of product %s: %w", len(orderIDs), product, err)
	}
	return nil
}

// Unsent is an order of the outbox.
type Unsent struct {
	OrderID string
	UserID  string
	// Quantity and Claim are as reserved; 0 if they cannot be read.
	Quantity, Claim int
}

// OutboxScan reads a part of the outbox, order id → user id, of about count
// orders (a small outbox comes whole). Begin with cursor 0 and go on with next
// until it is 0. Orders that are there all the time are seen, some perhaps
// twice.
func OutboxScan(ctx context.Context, c redis.Cmdable, product string, cursor uint64, count int64) (entries map[string]string, next uint64, err error) {
	orders, next, err := OutboxOrders(ctx, c, product, cursor, count)
	if err != nil {
		return nil, 0, err
	}
	entries = make(map[string]string, len(orders))
	for _, o := range orders {
		entries[o.OrderID] = o.UserID
	}
	return entries, next, nil
}

// OutboxOrders is OutboxScan with all that the outbox says of each order.
func OutboxOrders(ctx context.Context, c redis.Cmdable, product string, cursor uint64, count int64) (orders []Unsent, next uint64, err error) {
	pairs, next, err := c.HScan(ctx, KeysOf(product).Outbox, cursor, "", count).Result()
	if err != nil {
		return nil, 0, fmt.Errorf("scanning the outbox of product %s: %w", product, err)
	}
	if len(pairs)%2 != 0 {
		return nil, 0, fmt.Errorf("scanning the outbox of product %s: %w: %d values", product, ErrReply, len(pairs))
	}
	orders = make([]Unsent, 0, len(pairs)/2)
	for i := 0; i < len(pairs); i += 2 {
		orders = append(orders, readUnsent(pairs[i], pairs[i+1]))
	}
	return orders, next, nil
}

// readUnsent reads an entry of the outbox: the user, and behind tabs, which users
// do not have, quantity and claim unless both are 1.
func readUnsent(id, text string) Unsent {
	f := strings.Split(text, "\t")
	switch len(f) {
	case 1:
		return Unsent{id, f[0], 1, 1}
	case 3:
		quantity, ok1 := parseNumber(f[1], order.MaxQuantity)
		claim, ok2 := parseNumber(f[2], order.MaxQuantity)
		if ok1 && ok2 {
			return Unsent{id, f[0], int(quantity), int(claim)}
		}
	}
	return Unsent{OrderID: id, UserID: f[0]}
}
