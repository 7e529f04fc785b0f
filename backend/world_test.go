package backend_test

import (
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"strings"
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
	"github.com/seckill-edge/seckill/backend/store"
	"github.com/seckill-edge/seckill/internal/order"
	"github.com/seckill-edge/seckill/internal/queue"
	"github.com/seckill-edge/seckill/internal/servicetest"
	"github.com/seckill-edge/seckill/lua"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(servicetest.Main(m)) }

var (
	soon = servicetest.Patience()
	// patience lets an embedded Redis under the race detector be as slow as it is.
	patience = servicetest.PatientRedis()
)

var counter atomic.Int64

// world is one set of servers and what a test does with them. The backends under
// test reach Redis through a line that can be cut.
type world struct {
	testing.TB
	redis    redis.UniversalClient // not through the line
	line     *line
	broker   *witness
	edge     queue.Publisher
	database string
	store    *store.Store
	// raw is the database by database/sql.
	raw *sql.DB
	// curse makes the database refuse every order of the user "cursed".
	curse string
	// crash takes the database away and returns what brings it back.
	crash   func() (restart func())
	product string
	// server is the embedded Redis; nil for a real one.
	server *miniredis.Miniredis
}

// kind is one kind of servers.
type kind struct {
	name string
	make func(t testing.TB) *world
}

// kinds are the embedded servers, and without -short the real ones too.
func kinds() []kind {
	all := []kind{{"embedded", embedded}}
	if !testing.Short() {
		all = append(all, kind{"real", real})
	}
	return all
}

// onEach runs a test on each kind of servers.
func onEach(t *testing.T, test func(t *testing.T, w *world)) {
	for _, k := range kinds() {
		t.Run(k.name, func(t *testing.T) { test(t, k.make(t)) })
	}
}

func embedded(t testing.TB) *world {
	server := miniredis.NewMiniRedis()
	server.ClockTTL(true)
	require.NoError(t, server.StartAddr("127.0.0.1:0"))
	t.Cleanup(server.Close)
	path := filepath.Join(t.TempDir(), "orders.db")
	raw, err := sql.Open("sqlite", "file:"+path)
	require.NoError(t, err)
	w := newWorld(t, server.Addr(), "memory:"+t.Name(), "sqlite:"+path, raw)
	w.server = server
	w.curse = `CREATE TRIGGER curse BEFORE INSERT ON orders WHEN NEW.user_id = 'cursed' BEGIN SELECT RAISE(ABORT, 'cursed'); END`
	// A file that somebody else has locked is SQLite's way of being away.
	w.crash = func() func() {
		tx, err := raw.Conn(t.Context())
		require.NoError(t, err)
		servicetest.Eventually(t, func() bool { // it does not wait for who reads at this moment
			_, err := tx.ExecContext(t.Context(), "BEGIN EXCLUSIVE")
			return err == nil
		})
		return func() {
			_, err := tx.ExecContext(context.Background(), "ROLLBACK")
			require.NoError(t, err)
			require.NoError(t, tx.Close())
		}
	}
	return w
}

func real(t testing.TB) *world { return realOn(t, servicetest.SharedRabbitMQ(t).VHost(t)) }

// realOn is the real servers with this broker.
func realOn(t testing.TB, broker string) *world {
	dsn := servicetest.SharedMariaDB(t).Database(t)
	c, err := mysqldriver.ParseDSN(dsn)
	require.NoError(t, err)
	database := newLine(t, c.Addr)
	raw, err := sql.Open("mysql", dsn)
	require.NoError(t, err)
	address := fmt.Sprintf("mysql://%s:%s@%s/%s", c.User, c.Passwd, database.addr(), c.DBName)
	w := newWorld(t, servicetest.RedisForTest(t).Addr(), broker, address, raw)
	w.curse = `ALTER TABLE orders ADD CONSTRAINT curse CHECK (user_id <> 'cursed')`
	w.crash = func() func() {
		database.cut()
		return database.mend
	}
	return w
}

func newWorld(t testing.TB, redisAddr, broker, database string, raw *sql.DB) *world {
	w := &world{TB: t, line: newLine(t, redisAddr), database: database, raw: raw, product: "P" + fmt.Sprint(counter.Add(1))}
	var err error
	w.redis, err = lua.NewClient("redis://"+redisAddr+"/0"+patience, "test")
	require.NoError(t, err)
	opened, err := queue.Open(broker)
	require.NoError(t, err)
	w.broker = &witness{Broker: opened}
	w.edge = opened.Publisher(queue.Options{Name: "edge"})
	w.store = w.openStore()
	_, err = w.store.Migrate(t.Context())
	require.NoError(t, err)
	t.Cleanup(func() {
		require.NoError(t, w.redis.Close())
		require.NoError(t, w.edge.Close(context.Background()))
		require.NoError(t, opened.Close())
		require.NoError(t, raw.Close())
	})
	return w
}

func (w *world) openStore() *store.Store {
	s, err := store.New(w.Context(), w.database, nil)
	require.NoError(w, err)
	w.Cleanup(func() { require.NoError(w, s.Close()) })
	return s
}

// backend starts a backend on the world's servers, with clients of its own. stop
// ends it; it is called in any case at the end of the test.
func (w *world) backend() (b *backend.Backend, stop func(context.Context)) {
	return w.backendWith(backend.Config{})
}

func (w *world) backendWith(c backend.Config) (b *backend.Backend, stop func(context.Context)) {
	return w.backendAt(c, time.Now)
}

// backendAt starts a backend on a machine with this clock.
func (w *world) backendAt(c backend.Config, now func() time.Time) (b *backend.Backend, stop func(context.Context)) {
	if c.Promise.Within == 0 {
		c.Promise.Within = servicetest.Scaled(30 * time.Second)
	}
	client, err := lua.NewClient("redis://"+w.line.addr()+"/0"+patience, "backend-under-test")
	require.NoError(w, err)
	b, err = backend.New(c, backend.Deps{
		Redis: client, Broker: w.broker, Store: w.openStore(), Now: now, Random: rand.Reader,
		Log: slog.New(slog.NewTextHandler(w.Output(), nil)),
	})
	require.NoError(w, err)
	require.NoError(w, b.Start(w.Context()))
	w.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), soon)
		defer cancel()
		b.Stop(ctx)
		require.NoError(w, client.Close())
	})
	return b, b.Stop
}

// service is the operator's, past the line and without a backend.
func (w *world) service() *activities.Service {
	return activities.New(activities.Deps{
		Store: w.store, Redis: w.redis, Queue: w.broker, Now: time.Now, Random: rand.Reader, Log: slog.New(slog.DiscardHandler),
	})
}

// sale opens a sale of the world's product.
func (w *world) sale(total int64, payWindow time.Duration) store.Activity {
	s := w.service()
	a, err := s.Create(w.Context(), activities.Draft{
		ProductID: w.product, Total: total, Limit: 1, PayWindow: payWindow,
		Start: time.Now().Add(-time.Minute).Format(time.RFC3339), End: time.Now().Add(time.Hour).Format(time.RFC3339), Manual: true,
	})
	require.NoError(w, err)
	_, err = s.Preheat(w.Context(), w.product)
	require.NoError(w, err)
	_, err = s.Open(w.Context(), w.product)
	require.NoError(w, err)
	return a
}

// reserve does what an edge does before it answers: one unit for each of n new
// buyers.
func (w *world) reserve(n int) []order.Order {
	snapshot := w.snapshot()
	requests := make([]lua.Request, n)
	for i := range requests {
		id, err := order.NewID(time.Now(), rand.Reader)
		require.NoError(w, err)
		requests[i] = lua.Request{OrderID: id, UserID: fmt.Sprint("user ", counter.Add(1)), Quantity: 1}
	}
	var orders []order.Order
	for len(requests) > 0 {
		part := requests[:min(len(requests), lua.MaxPerCall)]
		requests = requests[len(part):]
		batch, err := lua.Reserve(w.Context(), w.redis, w.product, snapshot.Epoch, part)
		require.NoError(w, err)
		for i, r := range batch.Results {
			require.Equal(w, lua.Reserved, r.Outcome)
			orders = append(orders, order.Order{
				ID: part[i].OrderID, ActivityID: batch.ActivityID, ProductID: w.product, UserID: part[i].UserID,
				Quantity: 1, Claim: r.Claim, ReservedAt: batch.At,
			})
		}
	}
	return orders
}

// publish does what an edge does after its answer.
func (w *world) publish(orders []order.Order) {
	for len(orders) > 0 {
		part := orders[:min(len(orders), 100)]
		orders = orders[len(part):]
		w.send(queue.Message{ID: part[0].ID, Body: order.AppendMessage(nil, part)})
		ids := make([]string, len(part))
		for i := range part {
			ids[i] = part[i].ID
		}
		require.NoError(w, lua.Confirm(w.Context(), w.redis, w.product, ids))
	}
}

// send publishes one message and waits for the confirm.
func (w *world) send(m queue.Message) {
	// Not Eventually, which rests between two tries.
	for began := time.Now(); time.Since(began) < soon; {
		err := w.edge.Publish(w.Context(), queue.Orders, m)
		if err == nil {
			return
		}
		if !errors.Is(err, queue.ErrNotSent) {
			require.NoError(w, err)
		}
	}
	require.Fail(w, "the broker takes no message")
}

func (w *world) snapshot() lua.Snapshot {
	s, there, err := lua.Audit(w.Context(), w.redis, w.product)
	require.NoError(w, err)
	require.True(w, there)
	return s
}

// settled waits until so many units are sold and none is on its way, and
// requires that all stores agree.
func (w *world) settled(sold int64) {
	w.Helper()
	servicetest.Eventually(w, func() bool {
		s := w.snapshot()
		return s.Sold == sold && s.Frozen == 0 && s.Outbox == 0
	})
	audit, err := w.service().Audit(w.Context(), w.product)
	require.NoError(w, err)
	require.Zero(w, audit.Drift, "%+v", audit)
	require.True(w, audit.Consistent)
	require.Equal(w, sold, audit.Units[order.Created])
	require.Equal(w, audit.Total, audit.Available+audit.Sold)
}

// stored counts the rows of an activity.
func (w *world) stored(a store.Activity) (n int64) {
	totals, err := w.store.Totals(w.Context(), a.ID)
	require.NoError(w, err)
	for _, total := range totals {
		n += total.Orders
	}
	return n
}

// drained says that the broker has no message left.
func (w *world) drained() bool {
	waiting, _, err := w.broker.Depth(w.Context())
	return err == nil && waiting == 0
}

// shown waits for a scrape in which the stores tell one value in time, and returns it.
func shown(t testing.TB, b *backend.Backend, name string) (value string) {
	t.Helper()
	servicetest.Eventually(t, func() bool { value = metric(t, b, name); return value != "" }, name)
	return value
}

// metric reads one value from a backend's /metrics.
func metric(t testing.TB, b *backend.Backend, name string) string {
	for line := range strings.Lines(get(t, b, "/metrics").Body.String()) {
		if rest, ok := strings.CutPrefix(line, name+" "); ok {
			return strings.TrimSpace(rest)
		}
	}
	return ""
}
