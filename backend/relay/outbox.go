package relay

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/seckill-edge/seckill/backend/compare"
	"github.com/seckill-edge/seckill/backend/duty"
	"github.com/seckill-edge/seckill/internal/killpoint"
	"github.com/seckill-edge/seckill/internal/order"
	"github.com/seckill-edge/seckill/internal/queue"
	"github.com/seckill-edge/seckill/lua"
)

const (
	// inFlight is how many messages wait for their confirm at once.
	inFlight = 8
	// scanned is about how many entries of the outbox are read at once.
	scanned = 1024
)

// found is what a part of the outbox turned out to be.
type found struct {
	orders []order.Order
	// done are orders that need no publishing, because they are settled or
	// released; unknown are those that their buyers do not have.
	done    []string
	unknown []lua.Stranger
}

// PublishOutbox goes once through the outbox of an activity and publishes what
// is at least as old as patience. What the broker confirms leaves the outbox. It
// is safe for concurrent use.
func (r *Relay) PublishOutbox(ctx context.Context, s lua.Snapshot, patience time.Duration) error {
	var cursor uint64
	var relayed atomic.Int64
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(inFlight)
	for {
		part, next, err := r.scan(ctx, s, patience, cursor)
		if err != nil {
			// A publish that failed has ended the scan: it is the reason.
			return cmp.Or(group.Wait(), err)
		}
		r.drop(ctx, s, part)
		for orders := part.orders; len(orders) > 0; {
			n := min(len(orders), order.MaxPerMessage)
			message := orders[:n]
			orders = orders[n:]
			group.Go(func() error {
				return duty.Safely(func() error {
					if err := r.publish(ctx, s, message); err != nil {
						return err
					}
					relayed.Add(int64(n))
					return nil
				})
			})
		}
		if cursor = next; cursor == 0 {
			break
		}
	}
	err := group.Wait()
	if n := relayed.Load(); n > 0 {
		r.Metrics.Relayed(int(n))
		r.Log.Info("relay: published orders that were left behind", "product", s.ProductID, "activity", s.ID, "orders", n)
	}
	return err
}

// scan reads a part of the outbox and sorts it by the buyers' records.
func (r *Relay) scan(ctx context.Context, s lua.Snapshot, patience time.Duration, cursor uint64) (found, uint64, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	entries, next, err := lua.OutboxScan(ctx, r.Redis, s.ProductID, cursor, scanned)
	if err != nil {
		return found{}, 0, err
	}
	var out found
	ids, users := make([]string, 0, len(entries)), make([]string, 0, len(entries))
	for id, user := range entries {
		ids, users = append(ids, id), append(users, user)
	}
	records, err := lua.RawRecords(ctx, r.Redis, s.ProductID, users)
	if err != nil {
		return found{}, 0, err
	}
	for i, id := range ids {
		record, ok := compare.Read(users[i], records[i])
		switch at := slices.IndexFunc(record, func(e lua.Entry) bool { return e.OrderID == id }); {
		case !ok: // the reconciler mends it
		case at < 0:
			out.unknown = append(out.unknown, lua.Stranger{UserID: users[i], OrderID: id, Record: records[i]})
		case record[at].Mark != lua.MarkQueued:
			out.done = append(out.done, id)
		case record[at].Aged(s.Now, patience):
			out.orders = append(out.orders, OrderOf(s.Activity, users[i], record[at]))
		}
	}
	return out, next, nil
}

// OrderOf is the order that an entry of a buyer's record stands for.
func OrderOf(a lua.Activity, user string, e lua.Entry) order.Order {
	return order.Order{
		ID: e.OrderID, ActivityID: a.ID, ProductID: a.ProductID, UserID: user,
		Quantity: e.Quantity, Claim: e.Claim, ReservedAt: e.At,
	}
}

// drop removes what needs no publishing. Redis decides at that moment whether an
// order is nobody's: while the stock is not proven, the outbox may be all that is
// left of it.
func (r *Relay) drop(ctx context.Context, s lua.Snapshot, part found) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	gone, _, err := lua.Forget(ctx, r.Redis, s.ProductID, part.unknown)
	if gone > 0 {
		r.Log.Warn("relay: outbox entries without an order in the buyer's record; removed",
			"product", s.ProductID, "activity", s.ID, "entries", gone)
	}
	if err = errors.Join(err, lua.Confirm(ctx, r.Redis, s.ProductID, part.done)); err != nil && !errors.Is(err, context.Canceled) {
		r.Log.Warn("relay: finished entries stay in the outbox until the next pass", "product", s.ProductID, "error", err)
	}
}

// Publish publishes orders of one activity and takes them out of the outbox. It
// is safe for concurrent use.
func (r *Relay) Publish(ctx context.Context, a lua.Activity, orders []order.Order) error {
	for part := range slices.Chunk(orders, order.MaxPerMessage) {
		if err := r.publish(ctx, lua.Snapshot{Activity: a}, part); err != nil {
			return err
		}
	}
	return nil
}

// publish sends one message and takes its orders out of the outbox once the
// broker has confirmed it.
func (r *Relay) publish(ctx context.Context, s lua.Snapshot, orders []order.Order) error {
	message := queue.Message{ID: "relay/" + orders[0].ID, Body: order.AppendMessage(nil, orders)}
	if err := r.Publisher.Publish(ctx, queue.Orders, message); err != nil {
		return fmt.Errorf("publishing %d orders that were left behind: %w", len(orders), err)
	}
	killpoint.Here(killpoint.AfterRelay)
	ids := make([]string, len(orders))
	for i := range orders {
		ids[i] = orders[i].ID
	}
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	return lua.Confirm(ctx, r.Redis, s.ProductID, ids)
}
