package relay

import (
	"context"
	"fmt"
	"time"

	"github.com/seckill-edge/seckill/backend/settle"
	"github.com/seckill-edge/seckill/backend/store"
	"github.com/seckill-edge/seckill/lua"
)

const (
	// buyersScanned is about how many records are read at once.
	buyersScanned = 500
	// A pass over all buyers that found nothing is repeated after repairPause,
	// then ever more rarely up to longRepairPause: an activity with a pay window
	// has frozen units all the time.
	repairPause     = 5 * time.Second
	longRepairPause = time.Minute
)

// repair remembers how often the buyers of one activity were gone through.
type repair struct {
	next  time.Time
	pause time.Duration
}

// settleForgotten goes through the buyers' records when nothing is on its way
// and units are frozen all the same, and moves orders that SQL has and whose
// record does not know it. The scan costs Redis about a millisecond each
// thousand buyers, so it is done when idle only.
func (r *Relay) settleForgotten(ctx context.Context, a store.Activity, s lua.Snapshot) error {
	now := time.Now()
	plan := r.repairs[a.ID]
	if plan == nil {
		plan = &repair{pause: repairPause}
		r.repairs[a.ID] = plan
	}
	if now.Before(plan.next) {
		return nil
	}
	if idle, err := r.idle(ctx); err != nil || !idle {
		return err
	}
	moved, err := r.settleAll(ctx, a, s)
	if moved > 0 {
		r.Metrics.Repaired(moved)
		r.Log.Warn("relay: settled stored orders that Redis had not been told of", "product", a.ProductID, "activity", a.ID, "orders", moved)
		plan.pause = repairPause
	}
	plan.next = now.Add(plan.pause)
	plan.pause = min(plan.pause*2, longRepairPause)
	return err
}

func (r *Relay) idle(ctx context.Context) (bool, error) {
	if r.InHand() > 0 {
		return false, nil
	}
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	waiting, _, err := r.Queue.Depth(ctx)
	if err != nil {
		return false, fmt.Errorf("asking the broker for its depth: %w", err)
	}
	return waiting == 0, nil
}

func (r *Relay) settleAll(ctx context.Context, a store.Activity, s lua.Snapshot) (moved int, err error) {
	var cursor uint64
	for {
		queued, next, err := r.queued(ctx, s, cursor)
		if err != nil {
			return moved, err
		}
		n, err := r.settleStored(ctx, a, queued)
		moved += n
		if err != nil {
			return moved, err
		}
		if cursor = next; cursor == 0 {
			return moved, nil
		}
	}
}

// queued reads a part of the buyers' records and returns whose orders are marked
// as not stored.
func (r *Relay) queued(ctx context.Context, s lua.Snapshot, cursor uint64) (users map[string]string, next uint64, err error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	pairs, next, err := r.Redis.HScan(ctx, lua.KeysOf(s.ProductID).Users, cursor, "", buyersScanned).Result()
	if err != nil {
		return nil, 0, fmt.Errorf("scanning the buyers of product %s: %w", s.ProductID, err)
	}
	users = map[string]string{}
	for i := 0; i+1 < len(pairs); i += 2 {
		record, err := lua.ParseRecord(pairs[i+1])
		if err != nil {
			r.Log.Error("relay: a buyer's record is damaged", "product", s.ProductID, "error", err)
			continue
		}
		for _, e := range record {
			// A young one may be in another backend's hands.
			if e.Mark == lua.MarkQueued && s.Now.Sub(e.At) >= patience {
				users[e.OrderID] = pairs[i]
			}
		}
	}
	return users, next, nil
}

// settleStored moves those of the queued orders that SQL has.
func (r *Relay) settleStored(ctx context.Context, a store.Activity, users map[string]string) (int, error) {
	if len(users) == 0 {
		return 0, nil
	}
	ids := make([]string, 0, len(users))
	for id := range users {
		ids = append(ids, id)
	}
	rows, err := r.Store.Orders(ctx, ids)
	if err != nil {
		return 0, err
	}
	moves := make([]settle.Order, 0, len(rows))
	for id, row := range rows {
		mark, ok := settle.MarkOf(row.State, a.PayWindow)
		if !ok || row.UserID != users[id] || row.ActivityID != a.ID {
			r.Log.Error("relay: SQL has another order under this id", "order", id, "product", a.ProductID, "state", row.State)
			continue
		}
		moves = append(moves, settle.Order{ProductID: a.ProductID, Move: lua.Move{UserID: users[id], OrderID: id}, To: mark})
	}
	return r.Settler.Now(ctx, moves)
}
