package fence

import (
	"context"
	"slices"

	"github.com/seckill-edge/seckill/backend/compare"
	"github.com/seckill-edge/seckill/internal/order"
	"github.com/seckill-edge/seckill/lua"
)

// restoreFromOutbox gives orders that only the outbox still names their records
// back. Nothing is missing but their times, which are in their ids, and their keys.
// A buyer's orders come back together: a record that can be read is whole. It ends
// when it finds nothing more to restore, and needs memory for what it restores.
func (r *rebuild) restoreFromOutbox(ctx context.Context) error {
	for {
		bare, err := r.bareBuyers(ctx)
		if err != nil || len(bare) == 0 {
			return err
		}
		for some := range slices.Chunk(bare, lua.MaxPerCall) {
			if err := r.rewrite(ctx, some); err != nil {
				return err
			}
		}
	}
}

func (r *rebuild) rewrite(ctx context.Context, records []lua.Rewriting) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	done, err := lua.Rewrite(ctx, r.Redis, r.activity.ProductID, r.activity.ID, r.epoch, records)
	for _, ok := range done {
		if ok {
			r.proof.Rewritten++
		}
	}
	return err
}

// bareBuyers are those whose records lack orders that the outbox has.
func (r *rebuild) bareBuyers(ctx context.Context) ([]lua.Rewriting, error) {
	unsent, records := map[string][]lua.Unsent{}, map[string]string{}
	for cursor := uint64(0); ; {
		asking, cancel := context.WithTimeout(ctx, callTimeout)
		next, err := r.unsentOf(asking, cursor, unsent, records)
		cancel()
		if err != nil {
			return nil, err
		}
		if cursor = next; cursor == 0 {
			break
		}
	}
	var bare []lua.Rewriting
	for user, orders := range unsent {
		if to := restore(user, records[user], orders); to != records[user] {
			bare = append(bare, lua.Rewriting{UserID: user, Was: records[user], To: to})
		}
	}
	return bare, nil
}

// unsentOf notes the orders of a part of the outbox whose buyers' records are lost
// or damaged, and these records.
func (r *rebuild) unsentOf(ctx context.Context, cursor uint64, unsent map[string][]lua.Unsent, records map[string]string) (uint64, error) {
	orders, next, err := lua.OutboxOrders(ctx, r.Redis, r.activity.ProductID, cursor, lua.MaxPerCall)
	if err != nil {
		return 0, err
	}
	users := make([]string, len(orders))
	for i, o := range orders {
		users[i] = o.UserID
	}
	texts, err := lua.RawRecords(ctx, r.Redis, r.activity.ProductID, users)
	if err != nil {
		return 0, err
	}
	for i, user := range users {
		if _, ok := compare.Read(user, texts[i]); !ok || texts[i] == "" {
			unsent[user], records[user] = append(unsent[user], orders[i]), texts[i]
		}
	}
	return next, nil
}

// restore adds the orders to a record that is lost or damaged.
func restore(user, record string, unsent []lua.Unsent) string {
	if !order.ValidUser(user) {
		return record
	}
	entries, _ := compare.Read(user, record)
	for _, o := range unsent {
		at, valid := order.IDTime(o.OrderID)
		known := slices.ContainsFunc(entries, func(e lua.Entry) bool { return e.OrderID == o.OrderID })
		if !valid || known || o.Quantity == 0 || o.Claim == 0 {
			continue
		}
		entries = append(entries, lua.Entry{Mark: lua.MarkQueued, OrderID: o.OrderID, Quantity: o.Quantity, Claim: o.Claim, At: at})
	}
	if len(entries) == 0 {
		return record
	}
	return lua.FormatRecord(entries)
}
