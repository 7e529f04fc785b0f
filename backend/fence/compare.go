package fence

import (
	"context"
	"fmt"
	"time"

	"github.com/seckill-edge/seckill/backend/compare"
	"github.com/seckill-edge/seckill/backend/relay"
	"github.com/seckill-edge/seckill/backend/store"
	"github.com/seckill-edge/seckill/internal/order"
	"github.com/seckill-edge/seckill/lua"
)

// changes are what one comparison has led to.
type changes struct {
	// records is how many were, or were tried to be, rewritten.
	records int
	// lost are frozen orders that neither outbox nor SQL knows.
	lost []order.Order
}

// lostAtOnce bounds the memory for lost orders; the next look finds the rest.
const lostAtOnce = 10_000

// compare looks at all orders once and writes what SQL knows better.
func (r *rebuild) compare(ctx context.Context) (compare.Result, changes, error) {
	var c changes
	result, err := r.sides().Run(ctx, compare.Look{
		Activity: r.activity,
		Found: func(ctx context.Context, found []compare.Difference) error {
			return r.write(ctx, found, &c)
		},
		Progress: func(done float64) {
			// A word that is not heard costs nothing; a fence that is lost is noticed
			// by the next script.
			_ = r.say(ctx, fmt.Sprintf("comparing Redis with SQL, %.0f%%", 100*done))
		},
	})
	return result, c, err
}

// write brings the buyers of these differences into line with SQL.
func (r *rebuild) write(ctx context.Context, found []compare.Difference, c *changes) error {
	rows := map[string][]store.Order{}
	for _, d := range found {
		switch d.Kind {
		case compare.LostAfterPublish:
			if len(c.lost) < lostAtOnce && !r.published[d.OrderID] {
				c.lost = append(c.lost, relay.OrderOf(lua.Activity{ID: r.activity.ID, ProductID: r.activity.ProductID}, d.UserID, *d.Entry))
			}
		case compare.Unpublished, compare.SettledNotStored:
			// The first is on its way, the second SQL's loss: neither is ours to judge.
		case compare.DamagedRecord:
			rows[d.UserID] = append(rows[d.UserID], store.Order{})[:len(rows[d.UserID])]
		default:
			rows[d.UserID] = append(rows[d.UserID], *d.Row)
		}
	}
	if len(rows) == 0 {
		return nil
	}
	users := make([]string, 0, len(rows))
	for user := range rows {
		users = append(users, user)
	}
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	records, err := lua.RawRecords(ctx, r.Redis, r.activity.ProductID, users)
	if err != nil {
		return err
	}
	rewritings := make([]lua.Rewriting, len(users))
	for i, user := range users {
		rewritings[i] = lua.Rewriting{UserID: user, Was: records[i], To: compare.Merge(r.activity, user, records[i], rows[user])}
	}
	c.records += len(rewritings) // one that was not done is looked at again, too
	return r.rewrite(ctx, rewritings)
}

// publishLost publishes orders that only Redis knows, and says whether anything
// is on its way now. Each is published once: what does not arrive within the
// patience stays frozen, for the reconciler.
func (r *rebuild) publishLost(ctx context.Context, lost []order.Order) bool {
	if time.Now().After(r.deadline) {
		return false
	}
	ctx, cancel := context.WithTimeout(ctx, publishWithin)
	defer cancel()
	if err := r.Relay.Publish(ctx, lua.Activity{ID: r.activity.ID, ProductID: r.activity.ProductID}, lost); err != nil {
		r.Log.Debug("fence: lost orders are not published yet", "product", r.activity.ProductID, "orders", len(lost), "error", err)
		return true
	}
	for _, o := range lost {
		r.published[o.ID] = true
	}
	r.proof.Published += len(lost)
	r.quietSince = time.Time{}
	return true
}
