package promise

import (
	"context"

	"github.com/seckill-edge/seckill/lua"
)

// scanned is about how many entries of the outbox, or records, are read at once.
const scanned = 1000

// outbox stores what has been in the outbox for too long.
func (b *batch) outbox(ctx context.Context) error {
	for cursor := uint64(0); ; {
		entries, next, err := b.scanOutbox(ctx, cursor)
		if err != nil {
			return err
		}
		var ids, users []string
		for id, user := range entries {
			if age(id, b.now) >= b.After {
				ids, users = append(ids, id), append(users, user)
			}
		}
		if err := b.fromRecords(ctx, ids, users); err != nil {
			return err
		}
		if cursor = next; cursor == 0 {
			return b.flush(ctx)
		}
	}
}

func (b *batch) scanOutbox(ctx context.Context, cursor uint64) (map[string]string, uint64, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	return lua.OutboxScan(ctx, b.Redis, b.activity.ProductID, cursor, scanned)
}

// fromRecords takes the orders of the outbox that their buyers' records have as
// queued. What else stands in the outbox is the relay's and the reconciler's.
func (b *batch) fromRecords(ctx context.Context, ids, users []string) error {
	if len(ids) == 0 {
		return nil
	}
	asking, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	records, err := lua.RawRecords(asking, b.Redis, b.activity.ProductID, users)
	if err != nil {
		return err
	}
	for i, id := range ids {
		e, there, err := lua.FindOrder(records[i], id)
		if err != nil || !there || e.Mark != lua.MarkQueued {
			continue
		}
		if err := b.add(ctx, users[i], e); err != nil {
			return err
		}
	}
	return nil
}
