package settle_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/seckill-edge/seckill/backend/metrics"
	"github.com/seckill-edge/seckill/backend/settle"
	"github.com/seckill-edge/seckill/internal/order"
	"github.com/seckill-edge/seckill/internal/servicetest"
	"github.com/seckill-edge/seckill/lua"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// world is a Redis with sales, and a settler that works on it as user.
type world struct {
	*testing.T
	admin   redis.UniversalClient
	metrics *metrics.Metrics
	settler *settle.Settler
	log     lines
}

// lines gathers what is logged.
type lines struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.Write(p)
}

// with are the logged lines that contain text.
func (l *lines) with(text string) (found []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for line := range strings.Lines(l.buf.String()) {
		if strings.Contains(line, text) {
			found = append(found, line)
		}
	}
	return found
}

// newWorld starts a Redis, and a settler that logs in as user ("name:password@", or
// empty).
func newWorld(t *testing.T, user string, acl ...any) *world {
	w := &world{T: t, metrics: metrics.New()}
	server := servicetest.RedisForTest(t)
	w.admin = w.client(server.URL())
	if len(acl) > 0 {
		require.NoError(t, w.admin.Do(t.Context(), acl...).Err())
	}
	client := w.client(strings.Replace(server.URL(), "redis://", "redis://"+user, 1))
	w.settler = settle.New(client, w.metrics, slog.New(slog.NewTextHandler(&w.log, nil)))
	done := make(chan struct{})
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		defer close(done)
		w.settler.Run(ctx)
	}()
	t.Cleanup(func() {
		cancel()
		<-done
		t.Log(w.log.buf.String())
	})
	return w
}

func (w *world) client(url string) redis.UniversalClient {
	c, err := lua.NewClient(url+"?read_timeout=20s", "settle-test")
	require.NoError(w, err)
	w.Cleanup(func() { require.NoError(w, c.Close()) })
	return c
}

// reserved opens a sale of product and returns n stored orders of it that Redis has
// not been told of.
func (w *world) reserved(product string, n int) []settle.Order {
	now := time.Now().Truncate(time.Millisecond)
	_, err := lua.Preheat(w.Context(), w.admin, lua.Activity{
		ID: "a-" + product, ProductID: product, Title: product, Start: now.Add(-time.Minute), End: now.Add(time.Hour), Total: int64(n), Limit: 1,
	})
	require.NoError(w, err)
	s, _, err := lua.Audit(w.Context(), w.admin, product)
	require.NoError(w, err)
	requests, orders := make([]lua.Request, n), make([]settle.Order, n)
	for i := range requests {
		id, err := order.NewID(now, rand.Reader)
		require.NoError(w, err)
		requests[i] = lua.Request{OrderID: id, UserID: fmt.Sprint("user ", i), Quantity: 1}
		orders[i] = settle.Order{
			ProductID: product, ActivityID: s.ID, Move: lua.Move{UserID: requests[i].UserID, OrderID: id}, To: lua.MarkSettled, First: true,
		}
	}
	batch, err := lua.Reserve(w.Context(), w.admin, product, s.Epoch, requests)
	require.NoError(w, err)
	for _, r := range batch.Results {
		require.Equal(w, lua.Reserved, r.Outcome)
	}
	return orders
}

func (w *world) admins(args ...any) {
	w.Helper()
	require.NoError(w, w.admin.Do(w.Context(), args...).Err())
}

func (w *world) sold(product string) int64 {
	s, _, err := lua.Audit(w.Context(), w.admin, product)
	require.NoError(w, err)
	return s.Sold
}

func (w *world) settled(result string) float64 {
	families, err := w.metrics.Registry.Gather()
	require.NoError(w, err)
	for _, f := range families {
		if f.GetName() != "seckill_backend_orders_settled_total" {
			continue
		}
		for _, m := range f.GetMetric() {
			if m.GetLabel()[0].GetValue() == result {
				return m.GetCounter().GetValue()
			}
		}
	}
	return 0
}

// A Redis that reads and does not write for a while is waited for: whatever was
// stored meanwhile is settled afterwards.
func TestPassingRefusalIsRetried(t *testing.T) {
	if testing.Short() {
		return // only a real Redis has these states
	}
	edge := []any{"ACL", "SETUSER", "backend", "on", ">pw", "~seckill:*", "&*", "+@all", "-hset"}
	for _, c := range []struct {
		name       string
		user       string
		acl        []any
		begin, end [][]any
		logged     string
	}{
		{
			name: "too few replicas", logged: "NOREPLICAS",
			begin: [][]any{{"CONFIG", "SET", "min-replicas-to-write", "1"}}, end: [][]any{{"CONFIG", "SET", "min-replicas-to-write", "0"}},
		},
		{
			name: "a replica without its primary", logged: "READONLY",
			begin: [][]any{{"REPLICAOF", "127.0.0.1", "1"}}, end: [][]any{{"REPLICAOF", "NO", "ONE"}},
		},
		{name: "a right is missing", user: "backend:pw@", acl: edge, logged: "hset", end: [][]any{{"ACL", "SETUSER", "backend", "+hset"}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, c.user, c.acl...)
			orders := w.reserved("1001", 40)
			for _, args := range c.begin {
				w.admins(args...)
			}
			for part := range 4 {
				require.NoError(t, w.settler.Put(t.Context(), orders[10*part:10*part+10]))
			}
			servicetest.Eventually(t, func() bool { return len(w.log.with(c.logged)) > 0 })
			for _, args := range c.end {
				w.admins(args...)
			}
			servicetest.Eventually(t, func() bool { return w.settler.Pending() == 0 })
			require.Equal(t, int64(40), w.sold("1001"))
			require.InDelta(t, 40, w.settled("done"), 0)
			require.Zero(t, w.settled("failed"))
			require.Len(t, w.log.with("level=WARN"), 1, "told of once")
			require.Empty(t, w.log.with("level=ERROR"))
			servicetest.Eventually(t, func() bool { return len(w.log.with("works again")) == 1 })
		})
	}
}

// Moves make room, so a full memory refuses none.
func TestFullMemoryRefusesNoMove(t *testing.T) {
	if testing.Short() {
		return
	}
	w := newWorld(t, "")
	orders := w.reserved("1001", 10)
	w.admins("CONFIG", "SET", "maxmemory", "1")
	require.NoError(t, w.settler.Put(t.Context(), orders))
	servicetest.Eventually(t, func() bool { return w.settler.Pending() == 0 })
	require.Equal(t, int64(10), w.sold("1001"))
	require.InDelta(t, 10, w.settled("done"), 0)
	require.Zero(t, w.settled("failed"))
}

// A product whose keys are damaged holds up no other.
func TestDamagedProductHoldsUpNoOther(t *testing.T) {
	if testing.Short() {
		return
	}
	w := newWorld(t, "")
	bad, good := w.reserved("1001", 3), w.reserved("1002", 3)
	w.admins("DEL", lua.KeysOf("1001").Users)
	w.admins("SET", lua.KeysOf("1001").Users, "not a hash")
	require.NoError(t, w.settler.Put(t.Context(), append(bad, good...)))
	servicetest.Eventually(t, func() bool { return w.settler.Pending() == 0 })
	require.Equal(t, int64(3), w.sold("1002"))
	require.InDelta(t, 3, w.settled("failed"), 0)
	require.Len(t, w.log.with("level=ERROR"), 1)
}
