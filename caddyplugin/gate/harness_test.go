package gate

import (
	"context"
	"crypto/rand"
	"fmt"
	"log/slog"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/seckill-edge/seckill/internal/order"
	"github.com/seckill-edge/seckill/internal/queue"
	"github.com/seckill-edge/seckill/internal/servicetest"
	"github.com/seckill-edge/seckill/lua"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const product = "1001"

// bench is a gate with its surroundings.
type bench struct {
	*Gate
	redis  redis.UniversalClient
	broker queue.Broker
}

// eachRedis runs f on miniredis and, unless -short, on a real server.
func eachRedis(t *testing.T, f func(t *testing.T, url string)) {
	t.Run("miniredis", func(t *testing.T) { f(t, "redis://"+miniredis.RunT(t).Addr()) })
	if !testing.Short() {
		t.Run("redis", func(t *testing.T) { f(t, servicetest.RedisForTest(t).URL()) })
	}
}

var brokers struct {
	sync.Mutex
	n int
}

// setup builds a gate on an empty Redis; change may adjust config and deps.
func setup(t testing.TB, url string, change ...func(*Config, *Deps)) *bench {
	t.Helper()
	rdb, err := lua.NewClient(url+servicetest.PatientRedis(), "gate-test")
	require.NoError(t, err)
	t.Cleanup(func() { _ = rdb.Close() })
	brokers.Lock()
	brokers.n++
	broker, err := queue.Open("memory:gate-" + strconv.Itoa(brokers.n))
	brokers.Unlock()
	require.NoError(t, err)
	publisher := broker.Publisher(queue.Options{})
	t.Cleanup(func() { _ = publisher.Close(context.Background()) })

	// Shared machines stall: what is not about the time-out must not meet it.
	cfg := Config{ReserveTimeout: 5 * time.Second, callTimeout: servicetest.Scaled(callTimeout)}
	deps := Deps{Redis: rdb, Publisher: publisher, Now: time.Now, Random: rand.Reader, Log: slog.New(slog.DiscardHandler)}
	for _, c := range change {
		c(&cfg, &deps)
	}
	g, err := New(cfg, deps)
	require.NoError(t, err)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), servicetest.Patience())
		defer cancel()
		g.Close(ctx)
	})
	return &bench{Gate: g, redis: rdb, broker: broker}
}

// stopwatch is a clock that stands still from stop on: then nothing is due any more
// and no view grows old.
type stopwatch struct{ stopped atomic.Pointer[time.Time] }

func (s *stopwatch) now() time.Time {
	if at := s.stopped.Load(); at != nil {
		return *at
	}
	return time.Now()
}

func (s *stopwatch) stop() {
	now := time.Now()
	s.stopped.Store(&now)
}

// on lets a gate go by this clock.
func (s *stopwatch) on(_ *Config, d *Deps) { d.Now = s.now }

// preheat opens a sale; change may adjust it.
func (b *bench) preheat(t testing.TB, total int64, change ...func(*lua.Activity)) lua.Activity {
	t.Helper()
	now := time.Now().Truncate(time.Millisecond)
	a := lua.Activity{
		ID: "double-11", ProductID: product, Title: "Double 11",
		Start: now.Add(-time.Minute), End: now.Add(time.Hour), Total: total, Limit: 1,
	}
	for _, c := range change {
		c(&a)
	}
	got, err := lua.Preheat(t.Context(), b.redis, a)
	require.NoError(t, err)
	require.Equal(t, lua.Loaded, got)
	return a
}

// prove opens a sale whose stock is as it should be, as a backend does after
// Redis has restarted.
func (b *bench) prove(t testing.TB, a lua.Activity) {
	t.Helper()
	epoch, _, err := lua.Hold(t.Context(), b.redis, a, "")
	require.NoError(t, err)
	s, found, err := lua.Audit(t.Context(), b.redis, product)
	require.NoError(t, err)
	require.True(t, found)
	was, err := lua.ReadCounters(t.Context(), b.redis, product)
	require.NoError(t, err)
	units := lua.Units{Available: s.Available, Frozen: s.Frozen, Sold: s.Sold}
	_, err = lua.Prove(t.Context(), b.redis, product, a.ID, epoch, lua.Open, was, units, s.ServerRun)
	require.NoError(t, err)
}

func (b *bench) click(t testing.TB, user string) Decision {
	t.Helper()
	return b.Reserve(t.Context(), Click{ProductID: product, UserID: user, Quantity: 1})
}

// crowd lets n buyers click at once and returns their decisions by buyer.
func (b *bench) crowd(t *testing.T, n int) []Decision {
	t.Helper()
	decisions := make([]Decision, n)
	var wg sync.WaitGroup
	for i := range decisions {
		wg.Go(func() { decisions[i] = b.click(t, fmt.Sprintf("buyer-%d", i)) })
	}
	wg.Wait()
	return decisions
}

func (b *bench) snapshot(t *testing.T) lua.Snapshot {
	t.Helper()
	s, found, err := lua.Audit(t.Context(), b.redis, product)
	require.NoError(t, err)
	require.True(t, found)
	require.False(t, s.Damaged)
	require.Equal(t, s.Total, s.Available+s.Frozen+s.Sold)
	return s
}

// published reads the queue until n orders have come, and returns them by id. An
// order that comes twice fails the test.
func (b *bench) published(t *testing.T, n int) map[string]order.Order {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), servicetest.Patience())
	defer cancel()
	out := make(chan queue.Delivery)
	var wg sync.WaitGroup
	wg.Go(func() { _ = b.broker.Consumer(queue.Options{}).Consume(ctx, out) })
	defer wg.Wait()
	defer cancel()
	got := make(map[string]order.Order)
	for len(got) < n {
		select {
		case d := <-out:
			orders, bad, err := order.ParseMessage(d.Message().Body)
			require.NoError(t, err)
			require.Empty(t, bad)
			for _, o := range orders {
				require.NotContains(t, got, o.ID)
				got[o.ID] = o
			}
			require.NoError(t, d.Ack())
		case <-ctx.Done():
			require.FailNow(t, "the queue has not enough orders", "%d of %d", len(got), n)
		}
	}
	return got
}

func count(decisions []Decision) map[lua.Outcome]int {
	n := make(map[lua.Outcome]int)
	for _, d := range decisions {
		n[d.Outcome]++
	}
	return n
}
