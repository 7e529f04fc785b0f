package backend_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/seckill-edge/seckill/backend"
	"github.com/seckill-edge/seckill/backend/promise"
	"github.com/seckill-edge/seckill/backend/store"
	"github.com/seckill-edge/seckill/internal/order"
	"github.com/seckill-edge/seckill/internal/queue"
	"github.com/seckill-edge/seckill/internal/servicetest"
	"github.com/seckill-edge/seckill/lua"
)

// promised is the config of a backend that stores soon without the broker, so that
// tests are short, for edges that promise what the slowest machine can keep.
var promised = backend.Config{Promise: promise.Config{Within: order.MaxResolveWithin, After: servicetest.Scaled(2 * time.Second)}}

var errAway = errors.New("the broker is away")

// outage is a broker that can be away: it takes nothing, delivers nothing and does
// not answer.
type outage struct {
	queue.Broker
	away atomic.Bool
}

func (o *outage) Depth(ctx context.Context) (waiting, dead int, err error) {
	if o.away.Load() {
		return 0, 0, errAway
	}
	return o.Broker.Depth(ctx)
}

func (o *outage) Publisher(options queue.Options) queue.Publisher {
	return publisherOfOutage{o.Broker.Publisher(options), o}
}

func (o *outage) Consumer(options queue.Options) queue.Consumer {
	return consumerOfOutage{o.Broker.Consumer(options), o}
}

type publisherOfOutage struct {
	queue.Publisher
	*outage
}

func (p publisherOfOutage) Publish(ctx context.Context, to queue.Target, m queue.Message) error {
	if p.away.Load() {
		return fmt.Errorf("%w: %w", queue.ErrNotSent, errAway)
	}
	return p.Publisher.Publish(ctx, to, m)
}

type consumerOfOutage struct {
	queue.Consumer
	*outage
}

// Consume begins when the broker is there.
func (c consumerOfOutage) Consume(ctx context.Context, out chan<- queue.Delivery) error {
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for c.away.Load() {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
	return c.Consumer.Consume(ctx, out)
}

// away is a way in which a broker is away.
type away struct {
	name string
	// make makes a world, and returns what takes its broker away and brings it back.
	make func(t *testing.T) (w *world, leave, back func())
}

func aways() []away {
	all := []away{{"embedded", func(t *testing.T) (*world, func(), func()) {
		w := embedded(t)
		o := &outage{Broker: w.broker.Broker}
		w.broker.Broker = o
		require.NoError(t, w.edge.Close(t.Context()))
		w.edge = w.broker.Publisher(queue.Options{})
		return w, func() { o.away.Store(true) }, func() { o.away.Store(false) }
	}}}
	if testing.Short() {
		return all
	}
	own := func(t *testing.T) (*world, *servicetest.RabbitMQ) {
		dir, err := os.MkdirTemp("", "seckill-promise-")
		require.NoError(t, err)
		r, err := servicetest.StartRabbitMQ(t.Context(), dir)
		require.NoError(t, err)
		t.Cleanup(func() {
			require.NoError(t, r.Kill())
			// What the broker had begun itself may write for a moment more.
			servicetest.Eventually(t, func() bool { return os.RemoveAll(dir) == nil })
		})
		return realOn(t, r.URL()), r
	}
	return append(all, away{"killed", func(t *testing.T) (*world, func(), func()) {
		w, r := own(t)
		return w, func() { require.NoError(t, r.Kill()) }, func() { require.NoError(t, r.Restart(context.Background())) }
	}}, away{"stopped", func(t *testing.T) (*world, func(), func()) {
		w, r := own(t)
		return w, func() { require.NoError(t, r.Pause()) }, func() { require.NoError(t, r.Resume()) }
	}})
}

func onEachAway(t *testing.T, test func(t *testing.T, w *world, leave, back func())) {
	for _, a := range aways() {
		t.Run(a.name, func(t *testing.T) {
			w, leave, back := a.make(t)
			test(t, w, leave, back)
		})
	}
}

// areStored requires that all orders are stored, and can be read as such.
func (w *world) areStored(orders []order.Order, mark lua.Mark) {
	w.Helper()
	w.marked(orders, mark)
	for _, o := range orders {
		row, err := w.store.Order(w.Context(), o.ID)
		require.NoError(w, err)
		require.Equal(w, order.Created, row.State)
	}
}

// count is one figure of a backend, -1 if it does not tell.
func count(t testing.TB, b *backend.Backend, name string) int {
	n, err := strconv.Atoi(metric(t, b, name))
	if err != nil {
		return -1
	}
	return n
}

func (w *world) embedded() bool { return strings.HasPrefix(w.database, "sqlite:") }

// The broker goes away with orders that it has confirmed, and others follow that it
// never gets: all are stored before it comes back, and nothing is doubled when it does.
func TestPromisesAreKeptWithoutTheBroker(t *testing.T) {
	t.Parallel()
	for _, window := range []time.Duration{0, time.Hour} {
		t.Run(fmt.Sprint("pay window ", window), func(t *testing.T) {
			onEachAway(t, func(t *testing.T, w *world, leave, back func()) {
				a := w.sale(5000, window)
				n := 1300 // more than one page of the outbox
				if w.embedded() {
					n = 150
				}
				confirmed := w.reserve(n / 10)
				w.publish(confirmed)
				leave()
				orders := append(w.reserve(n-len(confirmed)), confirmed...)
				b, _ := w.backendWith(promised)
				w.backendWith(promised)
				mark, state := lua.MarkSettled, order.Created
				if window > 0 {
					mark = lua.MarkCreated
				}
				w.areStored(orders, mark)
				require.Zero(t, w.snapshot().Outbox)
				back()
				servicetest.Eventually(t, w.drained)
				servicetest.Eventually(t, func() bool { return len(b.NotReady(t.Context())) == 0 })
				totals, err := w.store.Totals(t.Context(), a.ID)
				require.NoError(t, err)
				require.Equal(t, map[order.State]store.Total{state: {Orders: int64(n), Units: int64(n)}}, totals)
				s := w.snapshot()
				require.Equal(t, int64(n), s.Frozen+s.Sold)
				require.Zero(t, count(t, b, `seckill_backend_promises_total{kept="late"}`))
			})
		})
	}
}

// The broker dies, or hangs, while a sale is on and the backend works.
func TestPromisesAreKeptWhenTheBrokerLeavesASale(t *testing.T) {
	t.Parallel()
	onEachAway(t, func(t *testing.T, w *world, leave, back func()) {
		w.sale(10_000, 0)
		b, _ := w.backendWith(promised)
		servicetest.Eventually(t, func() bool { return len(b.NotReady(t.Context())) == 0 })
		var orders []order.Order
		n := 20
		if w.embedded() {
			n = 2
		}
		const rounds, leavesAt = 60, 20
		for round := range rounds {
			part := w.reserve(n)
			orders = append(orders, part...)
			trying, cancel := context.WithTimeout(t.Context(), servicetest.Scaled(100*time.Millisecond))
			if err := w.edge.Publish(trying, queue.Orders, queue.Message{ID: part[0].ID, Body: order.AppendMessage(nil, part)}); err == nil {
				ids := make([]string, len(part))
				for i := range part {
					ids[i] = part[i].ID
				}
				require.NoError(t, lua.Confirm(t.Context(), w.redis, w.product, ids))
			}
			cancel()
			if round == leavesAt {
				leave()
			}
		}
		w.areStored(orders[len(orders)-20:], lua.MarkSettled)
		w.areStored(orders[len(orders)/2:], lua.MarkSettled)
		servicetest.Eventually(t, func() bool { return count(t, b, `seckill_backend_promises_total{kept="yes"}`) == len(orders) })
		require.Zero(t, count(t, b, `seckill_backend_promises_total{kept="late"}`))
		require.Positive(t, count(t, b, "seckill_backend_orders_direct_total"))
		back()
		servicetest.Eventually(t, w.drained)
		w.settled(int64(len(orders)))
	})
}

// What SQL refuses is rejected and gives its units back, broker or not; of orders
// that are wrong in themselves only after a second thought, and alone.
func TestWithoutTheBrokerSQLHasTheLastWord(t *testing.T) {
	t.Parallel()
	t.Run("guard", func(t *testing.T) {
		onEachAway(t, func(t *testing.T, w *world, leave, _ func()) {
			w.sale(5, 0)
			keys := lua.KeysOf(w.product)
			require.NoError(t, w.redis.HSet(t.Context(), keys.Activity, "total", 8).Err())
			require.NoError(t, w.redis.Set(t.Context(), keys.Stock, 8, 0).Err())
			leave()
			orders := w.reserve(8)
			w.backendWith(promised)
			servicetest.Eventually(t, func() bool {
				s := w.snapshot()
				return s.Sold == 5 && s.Available == 3 && s.Frozen == 0 && s.Outbox == 0
			})
			rejected := 0
			for _, o := range orders {
				record, err := lua.RecordOf(t.Context(), w.redis, w.product, o.UserID)
				require.NoError(t, err)
				if record[0].Mark == lua.MarkRejected {
					require.Equal(t, order.ReasonOversold, record[0].Reason)
					rejected++
				}
			}
			require.Equal(t, 3, rejected)
		})
	})
	t.Run("cursed", func(t *testing.T) {
		w := embedded(t)
		o := &outage{Broker: w.broker.Broker}
		w.broker.Broker = o
		w.sale(100, 0)
		_, err := w.raw.ExecContext(t.Context(), w.curse)
		require.NoError(t, err)
		o.away.Store(true)
		orders := w.reserve(40)
		cursed := orders[17]
		keys := lua.KeysOf(w.product)
		record, err := w.redis.HGet(t.Context(), keys.Users, cursed.UserID).Result()
		require.NoError(t, err)
		require.NoError(t, w.redis.HDel(t.Context(), keys.Users, cursed.UserID).Err())
		require.NoError(t, w.redis.HSet(t.Context(), keys.Users, "cursed", record).Err())
		require.NoError(t, w.redis.HSet(t.Context(), keys.Outbox, cursed.ID, "cursed").Err())
		const yes = `seckill_backend_promises_total{kept="yes"}`
		patient, stop := w.backendWith(promised)
		w.areStored(append(orders[:17:17], orders[18:]...), lua.MarkSettled)
		require.Equal(t, "q", w.redis.HGet(t.Context(), keys.Users, "cursed").Val()[:1], "it is tried for a while")
		require.Equal(t, 39, count(t, patient, yes))
		stop(t.Context())
		// To this one half of the time is over at once.
		b, _ := w.backendWith(backend.Config{Promise: promise.Config{Within: order.MinResolveWithin, After: time.Millisecond}})
		cursed.UserID = "cursed"
		w.marked([]order.Order{cursed}, lua.MarkRejected)
		require.Equal(t, 1, count(t, b, `seckill_backend_orders_rejected_total{reason="invalid"}`))
		require.Equal(t, int64(61), w.snapshot().Available)
	})
}

// In whatever state the activity is, and in the middle of another backend's storing
// the same message.
func TestWithoutTheBrokerInEveryState(t *testing.T) {
	t.Parallel()
	for _, state := range []string{"held", "closed"} {
		t.Run(state, func(t *testing.T) {
			onEachAway(t, func(t *testing.T, w *world, leave, _ func()) {
				w.sale(100, 0)
				leave()
				orders := w.reserve(30)
				step := w.service().Hold
				if state == "closed" {
					step = w.service().Close
				}
				_, err := step(t.Context(), w.product)
				require.NoError(t, err)
				w.backendWith(promised)
				w.areStored(orders, lua.MarkSettled)
			})
		})
	}
}

// While SQL is away nothing can be stored and nothing is rejected: the promises are
// broken, counted, and kept late.
func TestPromisesAreBrokenWithoutTheDatabase(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, w *world) {
		w.sale(100, 0)
		const yes, late = `seckill_backend_promises_total{kept="yes"}`, `seckill_backend_promises_total{kept="late"}`
		b, stop := w.backendWith(promised)
		servicetest.Eventually(t, func() bool { return len(b.NotReady(t.Context())) == 0 })
		w.publish(w.reserve(10))
		w.settled(10)
		require.Equal(t, [2]int{10, 0}, [2]int{count(t, b, yes), count(t, b, late)})
		stop(t.Context())
		b, _ = w.backendWith(backend.Config{Promise: promise.Config{Within: 2 * time.Second, After: time.Second}})
		servicetest.Eventually(t, func() bool {
			return len(b.NotReady(t.Context())) == 0 && count(t, b, "seckill_backend_promises_overdue") == 0
		})
		restart := w.crash()
		w.publish(w.reserve(20))
		servicetest.Eventually(t, func() bool { return count(t, b, "seckill_backend_promises_overdue") == 20 })
		require.Equal(t, int64(20), w.snapshot().Frozen)
		require.Equal(t, http.StatusServiceUnavailable, get(t, b, "/readyz").Code)
		restart()
		w.settled(30)
		servicetest.Eventually(t, func() bool { return count(t, b, "seckill_backend_promises_overdue") == 0 })
		require.Equal(t, [2]int{0, 20}, [2]int{count(t, b, yes), count(t, b, late)})
		require.Empty(t, w.broker.saw(queue.Dead))
	})
}
