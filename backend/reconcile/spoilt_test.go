package reconcile_test

import (
	"crypto/rand"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/seckill-edge/seckill/backend/compare"
	"github.com/seckill-edge/seckill/internal/order"
	"github.com/seckill-edge/seckill/internal/servicetest"
	"github.com/seckill-edge/seckill/lua"
)

// again reserves once more for the buyer of an order.
func (w *world) again(o order.Order, quantity int) order.Order {
	id, err := order.NewID(time.Now(), rand.Reader)
	require.NoError(w, err)
	batch, err := lua.Reserve(w.Context(), w.redis, w.product, w.snapshot().Epoch,
		[]lua.Request{{OrderID: id, UserID: o.UserID, Quantity: quantity}})
	require.NoError(w, err)
	require.Equal(w, lua.Reserved, batch.Results[0].Outcome)
	o.ID, o.Quantity, o.Claim = id, quantity, batch.Results[0].Claim
	return o
}

// Orders of which nothing is left but the outbox are stored as they were reserved,
// whatever has become of their buyers' records.
func TestTheOutboxBringsOrdersBack(t *testing.T) {
	spoils := map[string]func(w *world, orders []order.Order){
		"the buyers are lost": func(w *world, _ []order.Order) {
			require.NoError(w, w.redis.Del(w.Context(), w.keys().Users).Err())
		},
		"records are damaged": func(w *world, orders []order.Order) {
			for _, o := range orders {
				require.NoError(w, w.redis.HSet(w.Context(), w.keys().Users, o.UserID, "nonsense").Err())
			}
		},
		"records are cut": func(w *world, orders []order.Order) {
			for _, o := range orders {
				text := w.redis.HGet(w.Context(), w.keys().Users, o.UserID).Val()
				require.NoError(w, w.redis.HSet(w.Context(), w.keys().Users, o.UserID, text[:len(text)-14]).Err())
			}
		},
	}
	for name, spoil := range spoils {
		for _, limit := range []int{1, 5} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				onEachOf(t, limit > 1, func(t *testing.T, w *world) {
					w.sale(2000, limit, 0)
					w.sold(10, 1)
					orders := w.reserve(300, 1)
					if limit > 1 {
						for _, o := range orders[:100] {
							orders = append(orders, w.again(o, 3))
						}
					}
					spoil(w, orders)
					w.backend()
					units := int64(10)
					for _, o := range orders {
						units += int64(o.Quantity)
					}
					servicetest.Eventually(t, func() bool { return w.snapshot().Sold == units })
					w.proven(lua.Open)
					for _, o := range orders {
						row, err := w.store.Order(t.Context(), o.ID)
						require.NoError(t, err)
						require.Equal(t, [2]int{o.Quantity, o.Claim}, [2]int{row.Quantity, row.Claim})
						require.Equal(t, order.Created, row.State)
					}
					require.Zero(t, w.snapshot().Outbox)
					w.agree()
				})
			})
		}
	}
}

// A pass of the relay that began before Redis lost the buyers takes nothing out of
// the outbox: it is all that is left of their orders.
func TestRelayKeepsWhatIsNotProven(t *testing.T) {
	onEach(t, func(t *testing.T, w *world) {
		w.sale(100, 1, 0)
		w.reserve(10, 1)
		r, _ := w.parts(w.redis)
		before := w.snapshot()
		require.True(t, before.Proven())
		require.NoError(t, w.redis.Del(t.Context(), w.keys().Users).Err())
		require.NoError(t, r.Relay.PublishOutbox(t.Context(), before, 0))
		require.EqualValues(t, 10, w.snapshot().Outbox)
	})
}

// After the server's clock has gone back nobody waits until it has caught up.
func TestOrdersFromTheFuture(t *testing.T) {
	onEach(t, func(t *testing.T, w *world) {
		w.sale(100, 1, 0)
		for _, o := range w.reserve(10, 1) {
			rewrite(w, o, func(e *lua.Entry) { e.At = e.At.Add(time.Hour) })
		}
		r, _ := w.parts(w.redis)
		report, err := r.Inspect(t.Context(), w.activity)
		require.NoError(t, err)
		require.Equal(t, map[compare.Kind]int{compare.Unpublished: 10}, report.Counts)
		w.backend()
		servicetest.Eventually(t, func() bool { return w.snapshot().Sold == 10 })
		w.agree()
	})
}

// What stands under a name that no buyer can have is none's: it never gets into a
// message, where it would harm its neighbours.
func TestBuyersThatCannotBe(t *testing.T) {
	onEach(t, func(t *testing.T, w *world) {
		w.sale(100, 1, 0)
		orders := w.reserve(10, 1)
		for i, name := range []string{"a\tb", "a\nb\nc", "", "\xff", "a\u0085"} {
			id, err := order.NewID(time.Now(), rand.Reader)
			require.NoError(t, err)
			text := lua.FormatRecord([]lua.Entry{{Mark: lua.MarkQueued, OrderID: id, Quantity: 1, Claim: 1, At: orders[0].ReservedAt}})
			require.NoError(t, w.redis.HSet(t.Context(), w.keys().Users, name, text).Err())
			if i < 3 {
				require.NoError(t, w.redis.HSet(t.Context(), w.keys().Outbox, id, name).Err())
			}
		}
		set(w, w.keys().Stock, 85, w.keys().Frozen, 15)
		require.NoError(t, w.redis.HSet(t.Context(), w.keys().Users, "shut out", "").Err())
		r, _ := w.parts(w.redis)
		b := w.backend()
		servicetest.Eventually(t, func() bool { return w.snapshot().Sold == 10 })
		report, err := b.Reconcile(t.Context(), w.product, false)
		require.NoError(t, err)
		require.NoError(t, r.Relay.Pass(t.Context()))
		servicetest.Eventually(t, func() bool {
			s := w.snapshot()
			return s.Available == 90 && s.Outbox == 0 && s.Users == 10
		}, "%+v %+v", w.snapshot(), report.Findings)
		_, dead, err := w.broker.Depth(t.Context())
		require.NoError(t, err)
		require.Zero(t, dead)
		w.agree()
	})
}

// However many there are, they are mended in one go.
func TestManyDifferences(t *testing.T) {
	onEach(t, func(t *testing.T, w *world) {
		w.sale(10_000, 1, 0)
		lost, untold := w.reserve(1500, 1), w.reserve(1500, 1)
		w.confirm(lost)
		w.confirm(untold)
		w.save(untold)
		w.age(lost)
		w.age(untold)
		r, _ := w.parts(w.redis)
		report, err := r.Reconcile(t.Context(), w.activity, false)
		require.NoError(t, err)
		want := map[compare.Kind]int{compare.LostAfterPublish: 1500, compare.StoredNotSettled: 1500}
		require.Equal(t, want, report.Counts)
		require.Equal(t, want, report.Mended)
		require.Len(t, report.Findings, 1000)
		require.True(t, report.Clean())
		w.backend()
		servicetest.Eventually(t, func() bool { return w.snapshot().Sold == 3000 })
		w.agree()
	})
}

// Words of edges and backends that are dead since before the server's clock went
// back keep no stock from being proven.
func TestWordsFromTheFuture(t *testing.T) {
	onEach(t, func(t *testing.T, w *world) {
		w.sale(100, 1, 0)
		w.sold(10, 1)
		later := w.snapshot().Now.Add(time.Hour)
		for _, id := range []string{"one", "other"} {
			require.NoError(t, lua.Present(t.Context(), w.redis, w.product, lua.Edge{ID: id, Epoch: 1, Carried: 5, At: later}))
			require.NoError(t, w.redis.HSet(t.Context(), "seckill:backends", id, fmt.Sprint("7:", later.UnixMilli())).Err())
		}
		require.NoError(t, w.redis.Del(t.Context(), w.keys().Stock).Err())
		_, f := w.parts(w.redis)
		proof, err := f.Rebuild(t.Context(), w.activity, "test")
		require.NoError(t, err)
		require.Less(t, proof.Took, 10*time.Second)
		require.Equal(t, lua.Units{Available: 90, Sold: 10}, proof.Units)
		words, err := lua.Presence(t.Context(), w.redis, w.product)
		require.NoError(t, err)
		require.Empty(t, words)
		w.agree()
	})
}
