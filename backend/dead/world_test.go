package dead_test

import (
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	mysqldriver "github.com/go-sql-driver/mysql"
	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/seckill-edge/seckill/backend/activities"
	"github.com/seckill-edge/seckill/backend/consume"
	"github.com/seckill-edge/seckill/backend/dead"
	"github.com/seckill-edge/seckill/backend/metrics"
	"github.com/seckill-edge/seckill/backend/settle"
	"github.com/seckill-edge/seckill/backend/store"
	"github.com/seckill-edge/seckill/internal/order"
	"github.com/seckill-edge/seckill/internal/queue"
	"github.com/seckill-edge/seckill/internal/servicetest"
	"github.com/seckill-edge/seckill/lua"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(servicetest.Main(m)) }

var soon = servicetest.Patience()

var counter atomic.Int64

// world is one set of stores with a sale in it.
type world struct {
	testing.TB
	redis  redis.UniversalClient
	broker queue.Broker
	edge   queue.Publisher
	store  *store.Store
	raw    *sql.DB
	// curse makes the database refuse the user "cursed" until lift.
	curse, lift string
	activity    store.Activity
	service     *dead.Service
}

// onEach runs a test on the embedded parts, and without -short on real servers.
func onEach(t *testing.T, test func(t *testing.T, w *world)) {
	t.Run("embedded", func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "orders.db")
		raw, err := sql.Open("sqlite", "file:"+path)
		require.NoError(t, err)
		w := newWorld(t, miniredis.RunT(t).Addr(), fmt.Sprint("memory:", t.Name(), counter.Add(1)), "sqlite:"+path, raw)
		w.curse = `CREATE TRIGGER curse BEFORE INSERT ON orders WHEN NEW.user_id = 'cursed' BEGIN SELECT RAISE(ABORT, 'cursed'); END`
		w.lift = `DROP TRIGGER curse`
		test(t, w)
	})
	if testing.Short() {
		return
	}
	t.Run("real", func(t *testing.T) {
		dsn := servicetest.SharedMariaDB(t).Database(t)
		c, err := mysqldriver.ParseDSN(dsn)
		require.NoError(t, err)
		raw, err := sql.Open("mysql", dsn)
		require.NoError(t, err)
		address := fmt.Sprintf("mysql://%s:%s@%s/%s", c.User, c.Passwd, c.Addr, c.DBName)
		w := newWorld(t, servicetest.RedisForTest(t).Addr(), servicetest.SharedRabbitMQ(t).VHost(t), address, raw)
		w.curse = `ALTER TABLE orders ADD CONSTRAINT curse CHECK (user_id <> 'cursed')`
		w.lift = `ALTER TABLE orders DROP CONSTRAINT curse`
		test(t, w)
	})
}

func newWorld(t testing.TB, redisAddr, broker, database string, raw *sql.DB) *world {
	w := &world{TB: t, raw: raw}
	var err error
	w.redis, err = lua.NewClient("redis://"+redisAddr+"/0"+servicetest.PatientRedis(), "test")
	require.NoError(t, err)
	w.broker, err = queue.Open(broker)
	require.NoError(t, err)
	w.edge = w.broker.Publisher(queue.Options{Name: "edge"})
	w.store, err = store.New(t.Context(), database, nil)
	require.NoError(t, err)
	t.Cleanup(func() {
		require.NoError(t, w.redis.Close())
		require.NoError(t, w.edge.Close(context.Background()))
		require.NoError(t, w.broker.Close())
		require.NoError(t, w.store.Close())
		require.NoError(t, raw.Close())
	})
	_, err = w.store.Migrate(t.Context())
	require.NoError(t, err)
	w.service = dead.New(dead.Deps{Broker: w.broker, Store: w.store, Redis: w.redis, Log: slog.New(slog.DiscardHandler)})
	return w
}

func (w *world) exec(statement string) {
	_, err := w.raw.ExecContext(w.Context(), statement)
	require.NoError(w, err)
}

func (w *world) activities() *activities.Service {
	return activities.New(activities.Deps{
		Store: w.store, Redis: w.redis, Queue: w.broker, Now: time.Now, Random: rand.Reader, Log: slog.New(slog.DiscardHandler),
	})
}

// sale opens a sale of so many units, one a buyer.
func (w *world) sale(total int64) {
	s := w.activities()
	product := fmt.Sprint("P", counter.Add(1))
	a, err := s.Create(w.Context(), activities.Draft{
		ProductID: product, Total: total, Limit: 1,
		Start: time.Now().Add(-time.Minute).Format(time.RFC3339), End: time.Now().Add(time.Hour).Format(time.RFC3339), Manual: true,
	})
	require.NoError(w, err)
	_, err = s.Preheat(w.Context(), product)
	require.NoError(w, err)
	_, err = s.Open(w.Context(), product)
	require.NoError(w, err)
	w.activity = a
}

func (w *world) snapshot() lua.Snapshot {
	s, there, err := lua.Audit(w.Context(), w.redis, w.activity.ProductID)
	require.NoError(w, err)
	require.True(w, there)
	return s
}

// reserve grants a unit to user, and takes the order out of the outbox.
func (w *world) reserve(user string) order.Order {
	id, err := order.NewID(time.Now(), rand.Reader)
	require.NoError(w, err)
	product := w.activity.ProductID
	batch, err := lua.Reserve(w.Context(), w.redis, product, w.snapshot().Epoch, []lua.Request{{OrderID: id, UserID: user, Quantity: 1}})
	require.NoError(w, err)
	require.Equal(w, lua.Reserved, batch.Results[0].Outcome)
	require.NoError(w, lua.Confirm(w.Context(), w.redis, product, []string{id}))
	return order.Order{
		ID: id, ActivityID: w.activity.ID, ProductID: product, UserID: user,
		Quantity: 1, Claim: batch.Results[0].Claim, ReservedAt: batch.At,
	}
}

// send publishes a message and waits for the confirm.
func (w *world) send(to queue.Target, m queue.Message) {
	servicetest.Eventually(w, func() bool {
		err := w.edge.Publish(w.Context(), to, m)
		if !errors.Is(err, queue.ErrNotSent) {
			require.NoError(w, err)
		}
		return err == nil
	})
}

// message carries orders; lastTry makes it one that was refused often enough.
func message(orders ...order.Order) queue.Message {
	return queue.Message{ID: orders[0].ID, Body: order.AppendMessage(nil, orders)}
}

func lastTry(m queue.Message) queue.Message {
	m.Headers = map[string]string{queue.HeaderAttempt: "4"}
	return m
}

// backend consumes and settles until the test ends or stop is called. With
// settles false it never gets to tell Redis, like one that is killed in between.
func (w *world) backend(settles bool) (stop func()) {
	log := slog.New(slog.NewTextHandler(w.Output(), nil))
	m := metrics.New()
	settler := settle.New(w.redis, m, log)
	publisher := w.broker.Publisher(queue.Options{Name: "backend"})
	c := consume.New(consume.Config{}, consume.Deps{
		Store: w.store, Redis: w.redis, Consumer: w.broker.Consumer(queue.Options{Name: "backend"}),
		Publisher: publisher, Settler: settler, Metrics: m, Log: log,
	})
	var settling sync.WaitGroup
	if settles {
		settling.Go(func() { settler.Run(context.Background()) })
	}
	c.Start()
	var once sync.Once
	stop = func() {
		once.Do(func() {
			ctx, cancel := context.WithTimeout(context.Background(), soon)
			defer cancel()
			c.Stop(ctx)
			settler.Close()
			settling.Wait()
			require.NoError(w, publisher.Close(ctx))
		})
	}
	w.Cleanup(stop)
	return stop
}

// dead waits until there are so many dead letters and nothing else is waiting.
func (w *world) dead(n int) {
	w.Helper()
	servicetest.Eventually(w, func() bool {
		waiting, buried, err := w.broker.Depth(w.Context())
		return err == nil && waiting == 0 && buried == n
	})
}

func (w *world) mark(o order.Order) lua.Mark {
	record, err := lua.RecordOf(w.Context(), w.redis, o.ProductID, o.UserID)
	require.NoError(w, err)
	for _, e := range record {
		if e.OrderID == o.ID {
			return e.Mark
		}
	}
	return 0
}

// becomes waits until Redis has this mark of an order.
func (w *world) becomes(o order.Order, mark lua.Mark) {
	w.Helper()
	servicetest.Eventually(w, func() bool { return w.mark(o) == mark })
}

// row requires what SQL has of an order.
func (w *world) row(o order.Order, state order.State, reason order.Reason) {
	w.Helper()
	var row store.Order
	servicetest.Eventually(w, func() bool {
		var err error
		row, err = w.store.Order(w.Context(), o.ID)
		return err == nil
	})
	require.Equal(w, state, row.State)
	require.Equal(w, reason, row.Reason)
}

// agree requires that all stores agree on so many sold units.
func (w *world) agree(sold int64) {
	w.Helper()
	servicetest.Eventually(w, func() bool {
		s := w.snapshot()
		return s.Sold == sold && s.Frozen == 0 && s.Available == w.activity.Total-sold
	})
	audit, err := w.activities().Audit(w.Context(), w.activity.ProductID)
	require.NoError(w, err)
	require.Zero(w, audit.Drift, "%+v", audit)
	a, err := w.store.Activity(w.Context(), w.activity.ID)
	require.NoError(w, err)
	require.Equal(w, sold, a.Reserved)
}
