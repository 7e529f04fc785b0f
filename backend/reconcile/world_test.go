package reconcile_test

import (
	"context"
	"crypto/rand"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	mysqldriver "github.com/go-sql-driver/mysql"
	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/seckill-edge/seckill/backend"
	"github.com/seckill-edge/seckill/backend/activities"
	"github.com/seckill-edge/seckill/backend/fence"
	"github.com/seckill-edge/seckill/backend/metrics"
	"github.com/seckill-edge/seckill/backend/reconcile"
	"github.com/seckill-edge/seckill/backend/relay"
	"github.com/seckill-edge/seckill/backend/settle"
	"github.com/seckill-edge/seckill/backend/store"
	"github.com/seckill-edge/seckill/internal/order"
	"github.com/seckill-edge/seckill/internal/queue"
	"github.com/seckill-edge/seckill/internal/servicetest"
	"github.com/seckill-edge/seckill/lua"
)

func TestMain(m *testing.M) {
	flag.Parse()
	// These tests wait for each other's servers more than for the processor.
	if err := flag.Set("test.parallel", "12"); err != nil {
		panic(err)
	}
	goleak.VerifyTestMain(servicetest.Main(m))
}

var soon = servicetest.Patience()

var counter atomic.Int64

// world is one set of servers, and one product on them.
type world struct {
	testing.TB
	address  string // of Redis
	redis    redis.UniversalClient
	broker   queue.Broker
	database string
	store    *store.Store
	product  string
	activity store.Activity
	// server is the real Redis, dir its data; nil and empty if it is embedded.
	server *servicetest.Redis
	dir    string
}

type kind struct {
	name string
	make func(t testing.TB) *world
}

func kinds() []kind {
	all := []kind{{"embedded", embedded}}
	if !testing.Short() {
		all = append(all, kind{"real", real})
	}
	return all
}

// onEach runs a test on embedded servers, and without -short on real ones too.
func onEach(t *testing.T, test func(t *testing.T, w *world)) {
	t.Helper()
	onEachOf(t, true, test)
}

// onEachOf is onEach for one case of a matrix. Embedded servers see those cases only
// that are one of a kind, unless all are to be tried.
func onEachOf(t *testing.T, ofAKind bool, test func(t *testing.T, w *world)) {
	t.Helper()
	for _, k := range kinds() {
		if k.name == "embedded" && !ofAKind && !testing.Short() && !servicetest.Soak() {
			continue
		}
		t.Run(k.name, func(t *testing.T) {
			t.Parallel()
			w := k.make(t)
			w.TB = t
			test(t, w)
		})
	}
}

func embedded(t testing.TB) *world {
	server := miniredis.NewMiniRedis()
	server.ClockTTL(true)
	require.NoError(t, server.StartAddr("127.0.0.1:0"))
	t.Cleanup(server.Close)
	return newWorld(t, server.Addr(), "memory:"+t.Name(), "sqlite:"+filepath.Join(t.TempDir(), "orders.db"))
}

func real(t testing.TB) *world {
	c, err := mysqldriver.ParseDSN(servicetest.SharedMariaDB(t).Database(t))
	require.NoError(t, err)
	dir, err := os.MkdirTemp("", "seckill-reconcile-")
	require.NoError(t, err)
	server, err := servicetest.StartRedis(t.Context(), dir, "--appendfsync", "always")
	require.NoError(t, err)
	t.Cleanup(func() {
		require.NoError(t, server.Kill())
		require.NoError(t, os.RemoveAll(dir))
	})
	w := newWorld(t, server.Addr(), servicetest.SharedRabbitMQ(t).VHost(t), fmt.Sprintf("mysql://%s:%s@%s/%s", c.User, c.Passwd, c.Addr, c.DBName))
	w.server, w.dir = server, dir
	return w
}

func newWorld(t testing.TB, redisAddr, broker, database string) *world {
	w := &world{TB: t, address: redisAddr, database: database, product: "P" + fmt.Sprint(counter.Add(1))}
	w.redis = w.client()
	var err error
	w.broker, err = queue.Open(broker)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, w.broker.Close()) })
	w.store = w.openStore()
	_, err = w.store.Migrate(t.Context())
	require.NoError(t, err)
	return w
}

func (w *world) client() redis.UniversalClient {
	c, err := lua.NewClient("redis://"+w.address+"/0"+servicetest.PatientRedis(), "test")
	require.NoError(w, err)
	w.Cleanup(func() { require.NoError(w, c.Close()) })
	return c
}

func (w *world) openStore() *store.Store {
	s, err := store.New(w.Context(), w.database, nil)
	require.NoError(w, err)
	w.Cleanup(func() { require.NoError(w, s.Close()) })
	return s
}

func (w *world) log() *slog.Logger { return slog.New(slog.NewTextHandler(w.Output(), nil)) }

// backend starts a backend of its own clients, which ends with the test.
func (w *world) backend() *backend.Backend {
	client := w.client()
	b, err := backend.New(backend.Config{}, backend.Deps{
		Redis: client, Broker: w.broker, Store: w.openStore(), Now: time.Now, Random: rand.Reader, Log: w.log(),
	})
	require.NoError(w, err)
	require.NoError(w, b.Start(w.Context()))
	w.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), soon)
		defer cancel()
		b.Stop(ctx)
	})
	return b
}

// parts are a reconciler and a fence without a backend around them.
func (w *world) parts(client redis.UniversalClient) (*reconcile.Reconciler, *fence.Fence) {
	m := metrics.New()
	p := w.broker.Publisher(queue.Options{})
	w.Cleanup(func() { require.NoError(w, p.Close(context.Background())) })
	servicetest.Eventually(w, func() bool { return p.Ready() == nil })
	r := relay.New(relay.Deps{Redis: client, Store: w.store, Publisher: p, Metrics: m, Log: w.log()})
	f := fence.New(fence.Deps{
		Redis: client, Store: w.store, Queue: w.broker, Relay: r, Metrics: m, Log: w.log(), Owner: fmt.Sprint("owner-", counter.Add(1)),
	})
	return reconcile.New(reconcile.Deps{
		Redis: client, Store: w.store, Queue: w.broker, Relay: r, Settler: settle.New(client, m, w.log()), Fence: f, Metrics: m, Log: w.log(),
		Patience: min(servicetest.Scaled(relay.Patience), patience),
	}), f
}

func (w *world) service() *activities.Service {
	return activities.New(activities.Deps{
		Store: w.store, Redis: w.redis, Queue: w.broker, Now: time.Now, Random: rand.Reader, Log: slog.New(slog.DiscardHandler),
	})
}

// sale opens a sale of the world's product.
func (w *world) sale(total int64, limit int, payWindow time.Duration) {
	s := w.service()
	_, err := s.Create(w.Context(), activities.Draft{
		ProductID: w.product, Total: total, Limit: limit, PayWindow: payWindow,
		Start: time.Now().Add(-time.Minute).Format(time.RFC3339), End: time.Now().Add(time.Hour).Format(time.RFC3339), Manual: true,
	})
	require.NoError(w, err)
	_, err = s.Preheat(w.Context(), w.product, activities.AcceptRedisRisk)
	require.NoError(w, err)
	view, err := s.Open(w.Context(), w.product, activities.AcceptRedisRisk)
	require.NoError(w, err)
	w.activity = view.Activity
}

// reserve does what an edge does before it answers: one order of so many units
// for each of n new buyers.
func (w *world) reserve(n, quantity int) []order.Order {
	var orders []order.Order
	for len(orders) < n {
		requests := make([]lua.Request, min(n-len(orders), lua.MaxPerCall))
		for i := range requests {
			id, err := order.NewID(time.Now(), rand.Reader)
			require.NoError(w, err)
			requests[i] = lua.Request{OrderID: id, UserID: fmt.Sprint("user ", counter.Add(1)), Quantity: quantity}
		}
		batch, err := lua.Reserve(w.Context(), w.redis, w.product, w.snapshot().Epoch, requests)
		require.NoError(w, err)
		for i, r := range batch.Results {
			require.Equal(w, lua.Reserved, r.Outcome)
			orders = append(orders, order.Order{
				ID: requests[i].OrderID, ActivityID: batch.ActivityID, ProductID: w.product, UserID: requests[i].UserID,
				Quantity: quantity, Claim: r.Claim, ReservedAt: batch.At,
			})
		}
	}
	return orders
}

func (w *world) confirm(orders []order.Order) {
	ids := make([]string, len(orders))
	for i := range orders {
		ids[i] = orders[i].ID
	}
	require.NoError(w, lua.Confirm(w.Context(), w.redis, w.product, ids))
}

// save stores orders without telling Redis.
func (w *world) save(orders []order.Order) {
	for len(orders) > 0 {
		n := min(len(orders), 1000)
		saved, err := w.store.SaveOrders(w.Context(), orders[:n])
		require.NoError(w, err)
		for _, s := range saved {
			require.Equal(w, order.Created, s.State)
		}
		orders = orders[n:]
	}
}

func (w *world) settle(orders []order.Order, to lua.Mark) {
	moves := make([]lua.Move, len(orders))
	for i, o := range orders {
		moves[i] = lua.Move{UserID: o.UserID, OrderID: o.ID}
	}
	_, err := lua.Settle(w.Context(), w.redis, w.product, to, moves)
	require.NoError(w, err)
}

// sold brings n orders all the way.
func (w *world) sold(n, quantity int) []order.Order {
	orders := w.reserve(n, quantity)
	w.confirm(orders)
	w.save(orders)
	w.settle(orders, lua.MarkSettled)
	return orders
}

// patience is more than parts have on the slowest machine, and less than age adds.
const patience = 50 * time.Second

// age makes every record older than any patience.
func (w *world) age(orders []order.Order) {
	for _, o := range orders {
		entries, err := lua.RecordOf(w.Context(), w.redis, w.product, o.UserID)
		require.NoError(w, err)
		for i := range entries {
			entries[i].At = entries[i].At.Add(-time.Minute)
		}
		require.NoError(w, w.redis.HSet(w.Context(), w.keys().Users, o.UserID, lua.FormatRecord(entries)).Err())
	}
}

func (w *world) keys() lua.Keys { return lua.KeysOf(w.product) }

func (w *world) snapshot() lua.Snapshot {
	s, _, err := lua.Audit(w.Context(), w.redis, w.product)
	require.NoError(w, err)
	return s
}

func (w *world) mark(o order.Order) string {
	entries, err := lua.RecordOf(w.Context(), w.redis, w.product, o.UserID)
	require.NoError(w, err)
	for _, e := range entries {
		if e.OrderID == o.ID {
			return string(e.Mark)
		}
	}
	return ""
}

// selling waits until the activity sells again, or is held and proven.
func (w *world) proven(state lua.ActivityState) lua.Snapshot {
	w.Helper()
	servicetest.Eventually(w, func() bool {
		s, there, err := lua.Audit(w.Context(), w.redis, w.product)
		return err == nil && there && s.Proven() && s.State == state
	}, "%v", state)
	return w.snapshot()
}

// agree requires that Redis and SQL agree order by order, and returns the units.
func (w *world) agree() lua.Units {
	w.Helper()
	r, _ := w.parts(w.redis)
	a, err := w.store.Activity(w.Context(), w.activity.ID)
	require.NoError(w, err)
	report := servicetest.InTime(w, func() (reconcile.Report, error) { return r.Inspect(w.Context(), a) })
	require.Empty(w, report.Findings)
	audit := servicetest.InTime(w, func() (activities.Audit, error) { return w.service().Audit(w.Context(), w.product) })
	require.Zero(w, audit.Drift, "%+v", audit)
	return lua.Units{Available: audit.Available, Frozen: audit.Frozen, Sold: audit.Sold}
}
