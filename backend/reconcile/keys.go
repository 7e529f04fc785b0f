package reconcile

import (
	"context"
	"fmt"
	"strings"

	"github.com/seckill-edge/seckill/backend/compare"
	"github.com/seckill-edge/seckill/backend/store"
	"github.com/seckill-edge/seckill/internal/order"
	"github.com/seckill-edge/seckill/internal/queue"
	"github.com/seckill-edge/seckill/lua"
)

const (
	// maxStrays and maxDead bound what is told of strange keys and dead letters;
	// scanned is about how much of the outbox is read at once.
	maxStrays = 100
	maxDead   = 1000
	scanned   = 500
)

func (r *Reconciler) types(ctx context.Context, product string) (map[string]string, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	return lua.KeyTypes(ctx, r.Redis, product)
}

func hashOrNone(kind string) bool { return kind == "hash" || kind == "none" }

// keys looks at a product's keys as such: missing, of a wrong type, unreadable,
// or nobody's. A sale that is closed, or not in Redis yet, needs none.
func (r *Reconciler) keys(ctx context.Context, a store.Activity, report *Report) error {
	asking, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	strays, err := lua.StrayKeys(asking, r.Redis, a.ProductID, maxStrays)
	if err != nil {
		return err
	}
	for _, key := range strays {
		report.add(Finding{Kind: compare.UnknownKey, What: key})
	}
	s, there, err := r.snapshot(ctx, a.ProductID)
	if err != nil || a.State != store.Open && a.State != store.Held {
		return err
	}
	types, err := r.types(ctx, a.ProductID)
	if err != nil {
		return err
	}
	counters, err := lua.ReadCounters(asking, r.Redis, a.ProductID)
	if err != nil {
		return err
	}
	k := lua.KeysOf(a.ProductID)
	before := len(report.Findings)
	for i, key := range []string{k.Stock, k.Frozen, k.Sold} {
		r.key(report, key, types[key], "string")
		if types[key] == "string" && !readable(counters[i]) {
			report.add(Finding{Kind: compare.DamagedCounter, What: fmt.Sprintf("%s is %.40q, no number of units", key, counters[i])})
		}
	}
	r.key(report, k.Activity, types[k.Activity], "hash")
	for _, key := range []string{k.Users, k.Outbox} {
		if !hashOrNone(types[key]) {
			r.key(report, key, types[key], "hash")
		}
	}
	reason := why(a, s, there)
	report.unproven = reason != ""
	switch {
	case reason == "" || len(report.Findings) > before:
	case s.Damaged:
		report.add(Finding{Kind: compare.DamagedCounter, What: fmt.Sprintf("the activity cannot be read, or available %d + frozen %d + sold %d is not its total %d",
			s.Available, s.Frozen, s.Sold, s.Total)})
	default:
		report.add(Finding{Kind: compare.Unproven, What: reason})
	}
	return nil
}

func (r *Reconciler) key(report *Report, key, kind, want string) {
	switch kind {
	case want:
	case "none":
		report.add(Finding{Kind: compare.MissingKey, What: key})
	default:
		report.add(Finding{Kind: compare.DamagedCounter, What: fmt.Sprintf("%s is a %s, not a %s", key, kind, want)})
	}
}

func readable(counter string) bool {
	return counter == "0" || counter != "" && len(counter) <= 15 && counter[0] != '0' && strings.Trim(counter, "0123456789") == ""
}

// strangers are entries of the outbox whose buyers do not have such an order.
// The outbox is read first: one script writes both.
func (r *Reconciler) strangers(ctx context.Context, product string) ([]compare.Difference, error) {
	var found []compare.Difference
	for cursor := uint64(0); ; {
		asking, cancel := context.WithTimeout(ctx, callTimeout)
		entries, next, err := lua.OutboxScan(asking, r.Redis, product, cursor, scanned)
		var some []compare.Difference
		if err == nil {
			some, err = r.strangersAmong(asking, product, entries)
		}
		cancel()
		if err != nil {
			return nil, err
		}
		found = append(found, some...)
		if cursor = next; cursor == 0 || len(found) >= maxDifferences {
			return found, nil
		}
	}
}

func (r *Reconciler) strangersAmong(ctx context.Context, product string, entries map[string]string) ([]compare.Difference, error) {
	var ids, users []string
	for id, user := range entries {
		ids, users = append(ids, id), append(users, user)
	}
	records, err := lua.RawRecords(ctx, r.Redis, product, users)
	if err != nil {
		return nil, err
	}
	var found []compare.Difference
	for i, id := range ids {
		if !strings.Contains(records[i], ":"+id+":") {
			found = append(found, compare.Difference{Kind: compare.UnknownOutboxEntry, OrderID: id, UserID: users[i]})
		}
	}
	return found, nil
}

// dead reports dead letters whose orders are stored all the same, and not as
// rejected, which burying does: replaying them changes nothing, and they may be
// dropped.
func (r *Reconciler) dead(ctx context.Context, a store.Activity, report *Report) error {
	asking, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	if _, dead, err := r.Queue.Depth(asking); err != nil || dead == 0 {
		return err
	}
	var orders []order.Order
	_, err := r.Queue.Judge(asking, maxDead, func(m queue.Message) queue.Verdict {
		good, _, err := order.ParseMessage(m.Body)
		if err == nil && len(good) > 0 && good[0].ActivityID == a.ID {
			orders = append(orders, good...)
		}
		return queue.Keep
	})
	if err != nil {
		return fmt.Errorf("reading the dead letters: %w", err)
	}
	ids := make([]string, len(orders))
	for i := range orders {
		ids[i] = orders[i].ID
	}
	rows, err := r.Store.Orders(ctx, ids)
	if err != nil {
		return err
	}
	for _, o := range orders {
		if row, stored := rows[o.ID]; stored && row.State != order.Rejected {
			report.add(Finding{Kind: compare.StaleDead, OrderID: o.ID, UserID: o.UserID, What: "a dead letter, though SQL has the order as " + string(row.State)})
		}
	}
	return nil
}
