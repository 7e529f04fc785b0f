package promise

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/seckill-edge/seckill/backend/compare"
	"github.com/seckill-edge/seckill/backend/store"
	"github.com/seckill-edge/seckill/lua"
)

const (
	// share bounds the walks over one activity's buyers to a tenth of the time.
	share = 10
	// countEvery is how often broken promises are counted while SQL is away.
	countEvery = 10 * time.Second
)

// walkIfDue looks through the buyers' records where the outbox does not tell: while
// the broker is away for orders to store, while SQL is away to count what is broken.
func (k *Keeper) walkIfDue(ctx context.Context, a store.Activity, now time.Time) error {
	// A short absence is told from a long one by a fraction of what is left to act in.
	away := k.broker.away(now, k.After/3)
	if !away && k.able {
		delete(k.late, a.ID)
		return nil
	}
	if now.Before(k.walks[a.ID]) {
		return nil
	}
	pause := countEvery
	if k.able {
		missing, err := k.missing(ctx, a)
		if err != nil {
			return err
		}
		if !missing {
			delete(k.late, a.ID)
			return nil
		}
		pause = k.After / 3
	}
	began := time.Now()
	late, err := k.walk(ctx, a)
	k.late[a.ID] = late
	k.walks[a.ID] = now.Add(max(pause, share*time.Since(began)))
	return err
}

// missing says that Redis has given away more than SQL has stored.
func (k *Keeper) missing(ctx context.Context, a store.Activity) (bool, error) {
	s, ours, err := k.audit(ctx, a)
	if err != nil || !ours {
		return false, err
	}
	asking, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	stored, err := k.Store.Activity(asking, a.ID)
	return stored.Reserved != s.Frozen+s.Sold, err
}

// walk goes through all buyers' records, stores what is due, and returns how many
// orders are overdue and could not be.
func (k *Keeper) walk(ctx context.Context, a store.Activity) (late int, err error) {
	s, ours, err := k.audit(ctx, a)
	if err != nil || !ours {
		return 0, err
	}
	b := &batch{Keeper: k, activity: s.Activity, now: s.Now, counting: !k.able}
	for cursor := uint64(0); ; {
		records, next, err := b.scanBuyers(ctx, cursor)
		if err != nil {
			return b.late, err
		}
		for user, record := range records {
			if err := b.fromRecord(ctx, user, record); err != nil {
				return b.late, err
			}
		}
		if cursor = next; cursor == 0 {
			return b.late, b.flush(ctx)
		}
	}
}

func (b *batch) scanBuyers(ctx context.Context, cursor uint64) (map[string]string, uint64, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	records, next, err := lua.BuyersScan(ctx, b.Redis, b.activity.ProductID, cursor, scanned)
	if err != nil {
		return nil, 0, fmt.Errorf("looking for orders that the broker does not deliver: %w", err)
	}
	return records, next, nil
}

// fromRecord takes the orders of one record that are queued and due. One that
// cannot be read is the reconciler's.
func (b *batch) fromRecord(ctx context.Context, user, record string) error {
	if !strings.Contains(record, string(lua.MarkQueued)+":") {
		return nil
	}
	entries, ok := compare.Read(user, record)
	if !ok {
		return nil
	}
	for _, e := range entries {
		if e.Mark != lua.MarkQueued || age(e.OrderID, b.now) < b.After {
			continue
		}
		if err := b.add(ctx, user, e); err != nil {
			return err
		}
	}
	return nil
}
