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
	// share bounds the walks over one activity's buyers, without the storing of what
	// they find, to a tenth of the time.
	share = 10
	// countEvery is how often broken promises are counted while SQL is away.
	countEvery = 10 * time.Second
)

// walkIfDue looks through the buyers' records for what the outbox does not tell: an
// order that the broker has confirmed, and has not delivered or has lost. While SQL
// is away it counts what is broken.
//
// An order can be due only if it was made before the last moment at which SQL had
// stored all that Redis has given away, plus after; and not before the oldest one
// that the last walk has seen is due. So a sale that is stored as it is sold is
// gone through once in After at most, and an order that is lost is found when it
// is due, whatever else is sold.
func (k *Keeper) walkIfDue(ctx context.Context, a store.Activity, s lua.Snapshot, now time.Time) error {
	if k.able && a.Reserved == s.Frozen+s.Sold { // a is older than s
		delete(k.late, a.ID)
		k.walks[a.ID] = k.listed.Add(k.After)
		return nil
	}
	if now.Before(k.walks[a.ID]) {
		return nil
	}
	began := time.Now()
	b, err := k.walk(ctx, a)
	if b == nil {
		return err
	}
	k.took[a.ID] = time.Since(began) - b.storing
	if k.late[a.ID] = b.late; k.able && b.late == 0 {
		delete(k.late, a.ID)
	}
	pause := min(k.After, b.from-b.oldest)
	switch {
	case !k.able:
		pause = countEvery
	case err != nil || b.left:
		pause = min(pause, k.After/3)
	}
	k.walks[a.ID] = now.Add(max(pause, share*k.took[a.ID]))
	return err
}

// leaveUntil is the age up to which a walk leaves an order to a broker that delivers,
// if the last walk has taken so long. What waits in the queue comes by itself, and to
// store it here, too, would make a backlog longer: a third of the time that is left is
// the consumer's. It is less if the next walk would come so late that not a sixth of
// the promised time was left to store what this one leaves.
func (k *Keeper) leaveUntil(took time.Duration) time.Duration {
	next := every + max(every, share*took)
	return max(k.After, min(k.After+(k.Within-k.After)/3, k.Within*5/6-next))
}

// walk goes through all buyers' records and stores what is due; nil if Redis does
// not have the activity.
func (k *Keeper) walk(ctx context.Context, a store.Activity) (*batch, error) {
	s, ours, err := k.audit(ctx, a)
	if err != nil || !ours {
		return nil, err
	}
	b := &batch{Keeper: k, activity: s.Activity, now: s.Now, counting: !k.able, from: k.After}
	if k.broker.delivers() {
		b.from = k.leaveUntil(k.took[a.ID])
	}
	for cursor := uint64(0); ; {
		records, next, err := b.scanBuyers(ctx, cursor)
		if err != nil {
			return b, err
		}
		for user, record := range records {
			if err := b.fromRecord(ctx, user, record); err != nil {
				return b, err
			}
		}
		if cursor = next; cursor == 0 {
			return b, b.flush(ctx)
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
		if e.Mark != lua.MarkQueued {
			continue
		}
		if old := age(e.OrderID, b.now); old < b.from {
			b.oldest = max(b.oldest, old)
			continue
		}
		if err := b.add(ctx, user, e); err != nil {
			return err
		}
	}
	return nil
}
