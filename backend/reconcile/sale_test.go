package reconcile_test

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
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

// edge does what an edge does for one product: it reserves under the epoch it
// saw, publishes what it got, and says what it carries.
type edge struct {
	*world
	id      string
	carried atomic.Int64
	epoch   atomic.Int64
	// shut is set by a refusal, and taken back by a look at an open gate.
	shut atomic.Bool
	// published counts orders that the broker has confirmed.
	published atomic.Int64
}

// look sees the epoch, and says then what is carried.
func (e *edge) look(ctx context.Context) {
	s, there, err := lua.Audit(ctx, e.redis, e.product)
	if err != nil || !there {
		return
	}
	e.epoch.Store(s.Epoch)
	e.shut.Store(s.State != lua.Open || !s.Proven())
	_ = lua.Present(ctx, e.redis, e.product, lua.Edge{ID: e.id, Epoch: s.Epoch, Carried: e.carried.Load(), At: s.Now})
}

// run sells until selling ends; looking goes on until ctx ends.
func (e *edge) run(ctx, selling context.Context) {
	var all sync.WaitGroup
	all.Go(func() {
		tick := time.NewTicker(100 * time.Millisecond)
		defer tick.Stop()
		for ctx.Err() == nil {
			e.look(ctx)
			<-tick.C
		}
	})
	p := e.broker.Publisher(queue.Options{})
	again := time.NewTicker(5 * time.Millisecond)
	defer again.Stop()
	for selling.Err() == nil {
		if !e.shut.Load() {
			e.sell(ctx, p)
		}
		<-again.C
	}
	if err := p.Close(ctx); err != nil {
		e.Error(err)
	}
	all.Wait()
}

func (e *edge) sell(ctx context.Context, p queue.Publisher) {
	const batch = 10
	requests := make([]lua.Request, batch)
	for i := range requests {
		id, err := order.NewID(time.Now(), rand.Reader)
		if err != nil {
			e.Error(err)
		}
		requests[i] = lua.Request{OrderID: id, UserID: fmt.Sprint("user ", counter.Add(1)), Quantity: 1}
	}
	e.carried.Add(batch)
	defer e.carried.Add(-batch)
	b, err := lua.Reserve(ctx, e.redis, e.product, e.epoch.Load(), requests)
	if err != nil || b.State != lua.Open {
		e.shut.Store(true)
		return
	}
	var orders []order.Order
	for i, r := range b.Results {
		if r.Outcome == lua.Reserved {
			orders = append(orders, order.Order{
				ID: requests[i].OrderID, ActivityID: b.ActivityID, ProductID: e.product, UserID: requests[i].UserID,
				Quantity: 1, Claim: r.Claim, ReservedAt: b.At,
			})
		}
	}
	if len(orders) == 0 {
		return
	}
	m := queue.Message{ID: orders[0].ID, Body: order.AppendMessage(nil, orders)}
	for p.Publish(ctx, queue.Orders, m) != nil && ctx.Err() == nil {
	}
	e.published.Add(int64(len(orders)))
	ids := make([]string, len(orders))
	for i := range orders {
		ids[i] = orders[i].ID
	}
	_ = lua.Confirm(ctx, e.redis, e.product, ids) // the relay does it otherwise
}

// A sale goes on while Redis loses one thing after the other, with two backends
// and three edges. Never is more sold than there is, every order that was
// published is stored, and in the end all stores agree.
func TestSaleThroughLosses(t *testing.T) {
	onEach(t, func(t *testing.T, w *world) {
		const total = 20_000
		w.sale(total, 1, 0)
		w.backend()
		w.backend()
		ctx, end := context.WithCancel(t.Context())
		selling, stop := context.WithCancel(ctx)
		edges := make([]*edge, 3)
		var running sync.WaitGroup
		for i := range edges {
			edges[i] = &edge{world: w, id: fmt.Sprint("edge-", i)}
			edges[i].look(ctx)
			running.Go(func() { edges[i].run(ctx, selling) })
		}
		published := func() (n int64) {
			for _, e := range edges {
				n += e.published.Load()
			}
			return n
		}
		faults := []func(){
			func() { require.NoError(t, w.redis.FlushAll(t.Context()).Err()) },
			func() { require.NoError(t, w.redis.Del(t.Context(), w.keys().Stock).Err()) },
			func() { set(w, w.keys().Sold, "x") },
			func() { require.NoError(t, w.redis.Del(t.Context(), w.keys().Activity).Err()) },
		}
		if w.server != nil {
			faults = append(faults, func() {
				require.NoError(t, w.server.Kill())
				require.NoError(t, w.server.Restart(t.Context()))
			})
		}
		for i, fault := range faults {
			before := published()
			servicetest.Eventually(t, func() bool { return published() >= before+200 }, "before fault %d", i)
			fault()
			begun := time.Now()
			w.proven(lua.Open)
			t.Logf("fault %d: sells again after %v", i, time.Since(begun))
		}
		before := published()
		servicetest.Eventually(t, func() bool { return published() >= before+200 })
		stop()
		servicetest.Eventually(t, func() bool { return w.snapshot().Frozen == 0 && w.snapshot().Outbox == 0 })
		end()
		running.Wait()
		units := w.agree()
		require.LessOrEqual(t, units.Sold, int64(total))
		totals, err := w.store.Totals(t.Context(), w.activity.ID)
		require.NoError(t, err)
		require.GreaterOrEqual(t, totals[order.Created].Orders+totals[order.Rejected].Orders, published())
		require.Equal(t, units.Sold, totals[order.Created].Units)
	})
}

// The API and the report's JSON.
func TestReconcileByHTTP(t *testing.T) {
	onEach(t, func(t *testing.T, w *world) {
		w.sale(100, 5, 0)
		sold := w.sold(5, 1)
		b := w.backend()
		ask := func(query string) reconcile.Report {
			r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "http://127.0.0.1/api/activities/"+w.product+"/reconcile"+query, nil)
			out := httptest.NewRecorder()
			b.Handler().ServeHTTP(out, r)
			require.Equal(t, http.StatusOK, out.Code, out.Body)
			var report reconcile.Report
			require.NoError(t, json.Unmarshal(out.Body.Bytes(), &report))
			return report
		}
		require.True(t, new(ask("?dry_run=true")).Clean())
		require.NoError(t, w.redis.HDel(t.Context(), w.keys().Users, sold[0].UserID).Err())
		dry := ask("?dry_run=true")
		require.Equal(t, map[compare.Kind]int{compare.MissingInRedis: 1, compare.CounterDrift: 2}, dry.Counts)
		require.False(t, dry.Clean())
		require.Equal(t, sold[0].ID, dry.Findings[0].OrderID)
		require.Equal(t, reconcile.Figure{Redis: "5", Right: "4"}, *dry.Findings[2].Figures)
		require.True(t, new(ask("")).Clean())
		require.Equal(t, "s", w.mark(sold[0]))
		w.agree()
	})
}
