package reconcile_test

import (
	"context"
	"maps"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/seckill-edge/seckill/backend/compare"
	"github.com/seckill-edge/seckill/backend/reconcile"
	"github.com/seckill-edge/seckill/internal/order"
	"github.com/seckill-edge/seckill/internal/queue"
	"github.com/seckill-edge/seckill/internal/servicetest"
	"github.com/seckill-edge/seckill/lua"
)

// difference is one way in which the stores can disagree about a sale of 100
// units of which 10 orders of 2 units are sold and settled.
type difference struct {
	name string
	// make makes it; sold are the ten orders.
	make func(w *world, sold []order.Order)
	// found is what an inspection says, ways what is done about it.
	found map[compare.Kind]int
	// left are kinds that are for people, and stay.
	left []compare.Kind
	// right are the units afterwards, with a backend that stores what is published.
	right lua.Units
	// after looks at more than units.
	after func(w *world, sold []order.Order)
}

func set(w *world, pairs ...any) { require.NoError(w, w.redis.MSet(w.Context(), pairs...).Err()) }

func differences() []difference {
	settled := lua.Units{Available: 80, Sold: 20}
	var extra []order.Order
	return []difference{
		{name: "unpublished", make: func(w *world, _ []order.Order) {
			w.age(w.reserve(3, 1))
		}, found: map[compare.Kind]int{compare.Unpublished: 3}, right: lua.Units{Available: 77, Sold: 23}},

		{name: "lost after publish", make: func(w *world, _ []order.Order) {
			orders := w.reserve(3, 1)
			w.confirm(orders)
			w.age(orders)
		}, found: map[compare.Kind]int{compare.LostAfterPublish: 3}, right: lua.Units{Available: 77, Sold: 23}},

		{name: "stored not settled", make: func(w *world, _ []order.Order) {
			orders := w.reserve(3, 1)
			w.confirm(orders)
			w.save(orders)
			w.age(orders)
		}, found: map[compare.Kind]int{compare.StoredNotSettled: 3}, right: lua.Units{Available: 77, Sold: 23}},

		{name: "rejected not released", make: func(w *world, _ []order.Order) {
			orders := w.reserve(1, 1)
			w.confirm(orders)
			wrong := orders[0]
			wrong.Claim = 9 // SQL refuses it
			saved, err := w.store.SaveOrders(w.Context(), []order.Order{wrong})
			require.NoError(w, err)
			require.Equal(w, order.Rejected, saved[0].State)
			w.age(orders)
		}, found: map[compare.Kind]int{compare.StoredNotSettled: 1}, right: settled},

		{
			name: "settled not stored", make: func(w *world, _ []order.Order) {
				orders := w.reserve(3, 1)
				w.confirm(orders)
				w.settle(orders, lua.MarkSettled)
				w.age(orders)
			}, found: map[compare.Kind]int{compare.SettledNotStored: 3}, left: []compare.Kind{compare.SettledNotStored},
			right: lua.Units{Available: 77, Sold: 23},
		},

		{name: "missing in Redis", make: func(w *world, sold []order.Order) {
			for _, o := range sold[:4] {
				require.NoError(w, w.redis.HDel(w.Context(), w.keys().Users, o.UserID).Err())
			}
			set(w, w.keys().Stock, 88, w.keys().Sold, 12)
		}, found: map[compare.Kind]int{compare.MissingInRedis: 4}, right: settled, after: func(w *world, sold []order.Order) {
			for _, o := range sold {
				require.Equal(w, "s", w.mark(o))
			}
		}},

		{name: "given back in Redis, live in SQL", make: func(w *world, sold []order.Order) {
			rewrite(w, sold[0], func(e *lua.Entry) { e.Mark = lua.MarkCancelled })
			set(w, w.keys().Stock, 82, w.keys().Sold, 18)
		}, found: map[compare.Kind]int{compare.StateConflict: 1}, right: settled, after: func(w *world, sold []order.Order) {
			require.Equal(w, "s", w.mark(sold[0]))
		}},

		{name: "another quantity", make: func(w *world, sold []order.Order) {
			rewrite(w, sold[0], func(e *lua.Entry) { e.Quantity = 1 })
			set(w, w.keys().Stock, 81, w.keys().Sold, 19)
		}, found: map[compare.Kind]int{compare.StateConflict: 1}, right: settled},

		{name: "another buyer's", make: func(w *world, sold []order.Order) {
			text, err := w.redis.HGet(w.Context(), w.keys().Users, sold[0].UserID).Result()
			require.NoError(w, err)
			require.NoError(w, w.redis.HSet(w.Context(), w.keys().Users, "a thief", text).Err())
			set(w, w.keys().Stock, 78, w.keys().Sold, 22)
		}, found: map[compare.Kind]int{compare.StateConflict: 1}, right: settled, after: func(w *world, _ []order.Order) {
			require.False(w, w.redis.HExists(w.Context(), w.keys().Users, "a thief").Val())
		}},

		{name: "released twice", make: func(w *world, _ []order.Order) {
			set(w, w.keys().Stock, 83, w.keys().Sold, 17)
		}, found: map[compare.Kind]int{compare.ReleasedTwice: 2}, right: settled},

		{name: "counter drift", make: func(w *world, _ []order.Order) {
			set(w, w.keys().Stock, 79, w.keys().Frozen, 1)
		}, found: map[compare.Kind]int{compare.CounterDrift: 2}, right: settled},

		{name: "damaged record", make: func(w *world, sold []order.Order) {
			require.NoError(w, w.redis.HSet(w.Context(), w.keys().Users, sold[0].UserID, "nonsense").Err())
			text, err := w.redis.HGet(w.Context(), w.keys().Users, sold[1].UserID).Result()
			require.NoError(w, err)
			require.NoError(w, w.redis.HSet(w.Context(), w.keys().Users, sold[1].UserID, text+",x").Err())
		}, found: map[compare.Kind]int{compare.DamagedRecord: 2, compare.MissingInRedis: 1}, right: settled, after: func(w *world, sold []order.Order) {
			require.Equal(w, "s", w.mark(sold[0]))
			require.Equal(w, "s", w.mark(sold[1]))
		}},

		{name: "damaged counter", make: func(w *world, _ []order.Order) {
			set(w, w.keys().Frozen, "1.5")
		}, found: map[compare.Kind]int{compare.DamagedCounter: 1}, right: settled},

		{name: "sum is not the total", make: func(w *world, _ []order.Order) {
			set(w, w.keys().Stock, 90)
		}, found: map[compare.Kind]int{compare.DamagedCounter: 1}, right: settled},

		{name: "missing key", make: func(w *world, _ []order.Order) {
			require.NoError(w, w.redis.Del(w.Context(), w.keys().Sold).Err())
		}, found: map[compare.Kind]int{compare.MissingKey: 1}, right: settled},

		{name: "unproven", make: func(w *world, _ []order.Order) {
			require.NoError(w, w.redis.HSet(w.Context(), w.keys().Activity, "run", "another server").Err())
		}, found: map[compare.Kind]int{compare.Unproven: 1}, right: settled},

		{name: "unknown key", make: func(w *world, _ []order.Order) {
			set(w, "seckill:stok:{"+w.product+"}", 1)
		}, found: map[compare.Kind]int{compare.UnknownKey: 1}, left: []compare.Kind{compare.UnknownKey}, right: settled},

		{name: "unknown outbox entry", make: func(w *world, sold []order.Order) {
			require.NoError(w, w.redis.HSet(w.Context(), w.keys().Outbox, "nobody's", "nobody", "01kb0c3v9t4z6q8w2x5y7a1d3f", sold[0].UserID).Err())
		}, found: map[compare.Kind]int{compare.UnknownOutboxEntry: 2}, right: settled, after: func(w *world, _ []order.Order) {
			require.Zero(w, w.snapshot().Outbox)
		}},

		{name: "stale dead letter", make: func(w *world, sold []order.Order) {
			p := w.broker.Publisher(queue.Options{})
			defer func() { require.NoError(w, p.Close(context.Background())) }()
			for name, body := range map[string]string{
				"dead": string(order.AppendMessage(nil, sold[:2])),
				// What is usually there: nothing of it can be read.
				"no order": "seckill/1\t" + w.product + "\t" + w.activity.ID + "\none\tx\t1",
				"nothing":  "",
				"noise":    "\xff\x00{\"v\":1}",
			} {
				m := queue.Message{ID: name, Body: []byte(body), Headers: map[string]string{queue.HeaderReason: "test"}}
				servicetest.Eventually(w, func() bool { return p.Publish(w.Context(), queue.Dead, m) == nil })
			}
		}, found: map[compare.Kind]int{compare.StaleDead: 2}, left: []compare.Kind{compare.StaleDead}, right: settled},

		{name: "nothing", make: func(w *world, _ []order.Order) {
			extra = w.reserve(3, 1) // young, in the outbox: on their way
		}, found: map[compare.Kind]int{}, right: lua.Units{Available: 77, Sold: 23}, after: func(w *world, _ []order.Order) {
			require.Len(w, extra, 3)
		}},
	}
}

// rewrite changes the first entry of a buyer's record.
func rewrite(w *world, o order.Order, change func(*lua.Entry)) {
	entries, err := lua.RecordOf(w.Context(), w.redis, w.product, o.UserID)
	require.NoError(w, err)
	change(&entries[0])
	require.NoError(w, w.redis.HSet(w.Context(), w.keys().Users, o.UserID, lua.FormatRecord(entries)).Err())
}

// Every kind is found under its name and with its figures, nothing else is, and a
// dry run changes nothing. After mending, and with a backend that stores what was
// published, everything is exactly right, and only what is for people is found
// again.
func TestEveryKind(t *testing.T) {
	reached := map[compare.Kind]bool{}
	for _, d := range differences() {
		maps.Copy(reached, counted(d.found))
		t.Run(d.name, func(t *testing.T) {
			t.Parallel()
			onEach(t, func(t *testing.T, w *world) {
				w.sale(100, 5, 0)
				sold := w.sold(10, 2)
				w.age(sold)
				d.make(w, sold)
				r, _ := w.parts(w.redis)
				before := w.dump()
				dry := servicetest.InTime(t, func() (reconcile.Report, error) { return r.Reconcile(t.Context(), w.activity, true) })
				require.Equal(t, d.found, dry.Counts, "%+v", dry.Findings)
				require.True(t, dry.Idle)
				require.Equal(t, len(d.found) == 0, dry.Clean())
				require.Equal(t, before, w.dump())

				report, err := r.Reconcile(t.Context(), w.activity, false)
				require.NoError(t, err)
				require.Equal(t, d.found, report.Counts)
				require.Equal(t, len(d.left) == 0, report.Clean(), "%+v", report)
				w.backend()
				servicetest.Eventually(t, func() bool {
					s := w.snapshot()
					return d.right == lua.Units{Available: s.Available, Frozen: s.Frozen, Sold: s.Sold}
				})
				if d.after != nil {
					d.after(w, sold)
				}
				again := servicetest.InTime(t, func() (reconcile.Report, error) { return r.Inspect(t.Context(), w.activity) })
				require.Len(t, again.Counts, len(d.left), "%+v", again.Findings)
				for _, kind := range d.left {
					require.Equal(t, d.found[kind], again.Counts[kind])
				}
				require.Equal(t, lua.Open, w.snapshot().State)
			})
		})
	}
	require.Len(t, reached, len(compare.Kinds()), "a kind without a test")
}

func counted(found map[compare.Kind]int) map[compare.Kind]bool {
	out := map[compare.Kind]bool{}
	for kind := range found {
		out[kind] = true
	}
	return out
}

// dump is everything that Redis has of the product.
func (w *world) dump() map[string]any {
	all := map[string]any{}
	k := w.keys()
	for _, key := range []string{k.Activity, k.Users, k.Outbox} {
		all[key] = w.redis.HGetAll(w.Context(), key).Val()
	}
	for _, key := range []string{k.Stock, k.Frozen, k.Sold} {
		all[key] = w.redis.Get(w.Context(), key).Val()
	}
	return all
}

// While a sale runs, what is on its way is nobody's finding, and nothing is held.
func TestQuietUnderLoad(t *testing.T) {
	onEach(t, func(t *testing.T, w *world) {
		w.sale(1_000_000, 1, 0)
		b := w.backend()
		ctx, stop := context.WithCancel(t.Context())
		n := 0
		var selling sync.WaitGroup
		defer selling.Wait()
		defer stop()
		selling.Go(func() {
			again := time.NewTicker(servicetest.Scaled(100 * time.Millisecond))
			defer again.Stop()
			for ; ctx.Err() == nil; n += 20 {
				w.publish(w.reserve(20, 1))
				<-again.C
			}
		})
		for range 3 {
			report := servicetest.InTime(t, func() (reconcile.Report, error) { return b.Reconcile(t.Context(), w.product, false) })
			require.Empty(t, report.Findings, "%+v", report)
		}
		stop()
		selling.Wait()
		require.Positive(t, n)
		servicetest.Eventually(t, func() bool { return w.snapshot().Sold == int64(n) })
		require.Equal(t, int64(2), w.snapshot().Epoch, "it was never held")
		w.agree()
	})
}

// publish does what an edge does after its answer.
func (w *world) publish(orders []order.Order) {
	p := w.broker.Publisher(queue.Options{})
	defer func() { require.NoError(w, p.Close(context.Background())) }()
	m := queue.Message{ID: orders[0].ID, Body: order.AppendMessage(nil, orders)}
	servicetest.Eventually(w, func() bool { return p.Publish(w.Context(), queue.Orders, m) == nil })
	w.confirm(orders)
}
