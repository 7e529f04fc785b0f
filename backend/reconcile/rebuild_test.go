package reconcile_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/seckill-edge/seckill/backend/activities"
	"github.com/seckill-edge/seckill/internal/order"
	"github.com/seckill-edge/seckill/internal/servicetest"
	"github.com/seckill-edge/seckill/lua"
)

// losses are ways in which a running sale's Redis loses what it needs. All end
// with the same stock, by themselves.
func losses() map[string]func(w *world) {
	all := map[string]func(w *world){
		"FLUSHALL": func(w *world) { require.NoError(w, w.redis.FlushAll(w.Context()).Err()) },
	}
	keys := map[string]func(lua.Keys) string{
		"activity": func(k lua.Keys) string { return k.Activity }, "stock": func(k lua.Keys) string { return k.Stock },
		"frozen": func(k lua.Keys) string { return k.Frozen }, "sold": func(k lua.Keys) string { return k.Sold },
		"users": func(k lua.Keys) string { return k.Users },
	}
	wrong := map[string]func(lua.Keys) string{"outbox": func(k lua.Keys) string { return k.Outbox }}
	for name, key := range keys {
		wrong[name] = key
		all["DEL "+name] = func(w *world) { require.NoError(w, w.redis.Del(w.Context(), key(w.keys())).Err()) }
	}
	for name, key := range wrong {
		all["wrong type "+name] = func(w *world) {
			require.NoError(w, w.redis.Del(w.Context(), key(w.keys())).Err())
			require.NoError(w, w.redis.RPush(w.Context(), key(w.keys()), "1").Err())
		}
	}
	for name, value := range map[string]string{"negative": "-5", "huge": "99999999999999999999", "letters": "many", "empty": ""} {
		all["garbage "+name] = func(w *world) {
			set(w, w.keys().Stock, value, w.keys().Frozen, value, w.keys().Sold, value)
		}
	}
	for _, field := range []string{"id", "total", "state", "epoch", "limit", "start", "end"} {
		all["field "+field] = func(w *world) { require.NoError(w, w.redis.HSet(w.Context(), w.keys().Activity, field, "?").Err()) }
	}
	delete(all, "field id") // that is another activity, which nobody knows
	return all
}

// Whatever Redis loses, nothing is sold until a backend has brought it back, which
// it does by itself; then stock, buyers and orders are exactly what SQL says.
func TestRebuild(t *testing.T) {
	for name, lose := range losses() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ofAKind := slices.Contains([]string{"FLUSHALL", "DEL users", "wrong type outbox", "garbage letters", "field epoch"}, name)
			onEachOf(t, ofAKind, func(t *testing.T, w *world) {
				w.sale(1000, 2, time.Hour)
				w.backend()
				orders := w.reserve(300, 2)
				w.publish(orders[:150])
				w.publish(orders[150:])
				servicetest.Eventually(t, func() bool { return w.mark(orders[0]) == "c" && w.mark(orders[299]) == "c" })
				_, err := w.store.SaveOrders(t.Context(), nil)
				require.NoError(t, err)
				before := w.snapshot().Epoch
				lose(w)
				s := w.proven(lua.Open)
				require.Greater(t, s.Epoch, before)
				require.Equal(t, [3]int64{400, 600, 0}, [3]int64{s.Available, s.Frozen, s.Sold})
				require.Equal(t, int64(300), s.Users)
				require.Equal(t, lua.Units{Available: 400, Frozen: 600}, w.agree())
				// Who has bought stays so.
				id, err := order.NewID(time.Now(), zeros{})
				require.NoError(t, err)
				b, err := lua.Reserve(t.Context(), w.redis, w.product, s.Epoch, []lua.Request{{OrderID: id, UserID: orders[7].UserID, Quantity: 1}})
				require.NoError(t, err)
				require.Equal(t, lua.AlreadyBought, b.Results[0].Outcome)
				require.Equal(t, orders[7].ID, b.Results[0].OrderID)
				w.reserve(1, 1)
			})
		})
	}
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { clear(p); return len(p), nil }

// A rebuild leaves a held sale held, and an operator's hold in the middle of one
// holds.
func TestOperatorsHoldStays(t *testing.T) {
	onEach(t, func(t *testing.T, w *world) {
		w.sale(100, 1, 0)
		w.sold(10, 1)
		_, err := w.service().Hold(t.Context(), w.product)
		require.NoError(t, err)
		w.backend()
		require.NoError(t, w.redis.FlushAll(t.Context()).Err())
		s := w.proven(lua.OnHold)
		require.Equal(t, [3]int64{90, 0, 10}, [3]int64{s.Available, s.Frozen, s.Sold})

		_, err = w.service().Open(t.Context(), w.product)
		require.NoError(t, err)
		require.NoError(t, w.redis.Del(t.Context(), w.keys().Stock).Err())
		servicetest.Eventually(t, func() bool { return w.snapshot().RunID == lua.Unproven })
		_, err = w.service().Open(t.Context(), w.product)
		require.ErrorContains(t, err, "by itself")
		view, err := w.service().Hold(t.Context(), w.product)
		require.NoError(t, err)
		require.Contains(t, view.Why, "unavailable until its stock is proven")
		w.proven(lua.OnHold)
		w.agree()
	})
}

// A total that has changed since the activity was listed: what is proven is what
// SQL has now.
func TestRebuildReadsTheTotalAnew(t *testing.T) {
	for name, c := range map[string]activities.Change{"add": {Add: 20}, "withdraw": {Withdraw: 20}} {
		t.Run(name, func(t *testing.T) {
			onEach(t, func(t *testing.T, w *world) {
				w.sale(100, 1, 0)
				w.sold(10, 1)
				_, err := w.service().ChangeStock(t.Context(), w.product, c)
				require.NoError(t, err)
				require.NoError(t, w.redis.Del(t.Context(), w.keys().Stock).Err())
				_, f := w.parts(w.redis)
				_, err = f.Rebuild(t.Context(), w.activity, "test") // as it was before
				require.NoError(t, err)
				s := w.proven(lua.Open)
				require.Equal(t, 100+c.Add-c.Withdraw, s.Total)
				require.Equal(t, int64(1), s.Changes)
				w.agree()
			})
		})
	}
}

// Two that prove at once: one does it, the other leaves it to him.
func TestTwoAtOnce(t *testing.T) {
	onEach(t, func(t *testing.T, w *world) {
		w.sale(100, 1, 0)
		w.sold(10, 1)
		require.NoError(t, w.redis.FlushAll(t.Context()).Err())
		_, one := w.parts(w.redis)
		_, other := w.parts(w.client())
		var both sync.WaitGroup
		errs := make([]error, 2)
		both.Go(func() { _, errs[0] = one.Rebuild(t.Context(), w.activity, "test") })
		both.Go(func() { _, errs[1] = other.Rebuild(t.Context(), w.activity, "test") })
		both.Wait()
		require.NotEqual(t, (errs[0] == nil), (errs[1] == nil), "%v", errs)
		s := w.proven(lua.Open)
		require.Equal(t, [3]int64{90, 0, 10}, [3]int64{s.Available, s.Frozen, s.Sold})
		w.agree()
	})
}

// A Redis that ends cleanly, or is killed, and comes back: what it has forgotten
// comes back from SQL, and it sells again.
func TestRestart(t *testing.T) {
	cases := map[string]func(t *testing.T, w *world){
		"nothing lost": func(t *testing.T, w *world) {
			w.sale(1_000_000, 1, 0)
			w.sold(5_000, 1)
			w.backend()
			before := w.redis.HGetAll(t.Context(), w.keys().Users).Val()
			require.NoError(t, w.server.Stop())
			require.NoError(t, w.server.Restart(t.Context()))
			s := w.proven(lua.Open)
			require.Equal(t, [3]int64{995_000, 0, 5_000}, [3]int64{s.Available, s.Frozen, s.Sold})
			require.Equal(t, before, w.redis.HGetAll(t.Context(), w.keys().Users).Val(), "nothing was rewritten")
			w.agree()
		},
		"away for ten seconds": func(t *testing.T, w *world) {
			w.sale(1000, 1, 0)
			w.backend()
			w.backend()
			w.publish(w.reserve(100, 1))
			servicetest.Eventually(t, func() bool { return w.snapshot().Sold == 100 })
			require.NoError(t, w.server.Kill())
			away := time.NewTimer(10 * time.Second)
			<-away.C // leases and words run out
			require.NoError(t, w.server.Restart(t.Context()))
			w.proven(lua.Open)
			w.agree()
		},
		"the tail is lost": func(t *testing.T, w *world) {
			w.sale(300, 1, 0)
			w.backend()
			w.publish(w.reserve(100, 1))
			servicetest.Eventually(t, func() bool { return w.snapshot().Sold == 100 })
			old := filepath.Join(w.dir, "appendonlydir")
			copied := filepath.Join(t.TempDir(), "copy")
			require.NoError(t, exec.Command("cp", "-a", old, copied).Run())
			w.publish(w.reserve(150, 1))
			servicetest.Eventually(t, func() bool { return w.snapshot().Sold == 250 })
			onlyInRedis := w.reserve(10, 1) // answered 202, and forgotten with Redis and its edge
			require.NoError(t, w.server.Kill())
			require.NoError(t, os.RemoveAll(old))
			require.NoError(t, exec.Command("cp", "-a", copied, old).Run())
			require.NoError(t, w.server.Restart(t.Context()))
			s := w.proven(lua.Open)
			require.Equal(t, [3]int64{50, 0, 250}, [3]int64{s.Available, s.Frozen, s.Sold})
			require.Empty(t, w.mark(onlyInRedis[0]))
			w.agree()
			// Every unit is sold once.
			w.publish(w.reserve(50, 1))
			servicetest.Eventually(t, func() bool { return w.snapshot().Sold == 300 })
			w.agree()
		},
		"with an edge that carries orders": func(t *testing.T, w *world) {
			w.sale(300, 1, 0)
			w.backend()
			orders := w.reserve(20, 1)
			word := lua.Edge{ID: "edge", Epoch: w.snapshot().Epoch, Carried: 20, At: w.snapshot().Now}
			require.NoError(t, lua.Present(t.Context(), w.redis, w.product, word))
			require.NoError(t, w.redis.FlushAll(t.Context()).Err())
			servicetest.Eventually(t, func() bool { return w.snapshot().RunID == lua.Unproven })
			speak := func(carried int64) {
				s := w.snapshot()
				require.NoError(t, lua.Present(t.Context(), w.redis, w.product, lua.Edge{ID: "edge", Epoch: s.Epoch, Carried: carried, At: s.Now}))
			}
			begun := time.Now()
			servicetest.Eventually(t, func() bool { speak(20); return time.Since(begun) > 3*time.Second })
			require.Equal(t, lua.Unproven, w.snapshot().RunID, "it waits for the edge")
			view, err := w.service().Show(t.Context(), w.product)
			require.NoError(t, err)
			require.Contains(t, view.Why, "waiting for 1 edge")
			w.publish(orders)
			speak(0)
			s := w.proven(lua.Open)
			require.Equal(t, [2]int64{280, 20}, [2]int64{s.Available, s.Sold})
			w.agree()
		},
	}
	if testing.Short() {
		cases = nil // it takes a server that can be killed
	}
	for name, test := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := real(t)
			w.TB = t
			test(t, w)
		})
	}
}
