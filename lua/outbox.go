package lua

import (
	"context"
	"fmt"

	"github.com/redis/go-redis/v9"
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

// OutboxScan reads a part of the outbox, order id → user id, of about count
// orders (a small outbox comes whole). Begin with cursor 0 and go on with next
// until it is 0. Orders that are there all the time are seen, some perhaps
// twice.
func OutboxScan(ctx context.Context, c redis.Cmdable, product string, cursor uint64, count int64) (entries map[string]string, next uint64, err error) {
	pairs, next, err := c.HScan(ctx, KeysOf(product).Outbox, cursor, "", count).Result()
	if err != nil {
		return nil, 0, fmt.Errorf("scanning the outbox of product %s: %w", product, err)
	}
	if len(pairs)%2 != 0 {
		return nil, 0, fmt.Errorf("scanning the outbox of product %s: %w: %d values", product, ErrReply, len(pairs))
	}
	entries = make(map[string]string, len(pairs)/2)
	for i := 0; i < len(pairs); i += 2 {
		entries[pairs[i]] = pairs[i+1]
	}
	return entries, next, nil
}
