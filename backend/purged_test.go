package backend_test

import (
	"context"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/require"

	"github.com/seckill-edge/seckill/backend"
	"github.com/seckill-edge/seckill/backend/promise"
	"github.com/seckill-edge/seckill/internal/order"
	"github.com/seckill-edge/seckill/internal/queue"
	"github.com/seckill-edge/seckill/internal/servicetest"
	"github.com/seckill-edge/seckill/lua"
)

// losing is a way in which a broker loses what it has confirmed.
type losing struct {
	name string
	make func(t *testing.T) (w *world, lose func())
}

func losings() []losing {
	purging := func(make func(testing.TB) *world) func(t *testing.T) (*world, func()) {
		return func(t *testing.T) (*world, func()) {
			w := make(t)
			return w, func() { w.purge(2) }
		}
	}
	all := []losing{{"embedded", purging(embedded)}}
	if testing.Short() {
		return all
	}
	return append(all, losing{"purged", purging(real)}, losing{"deleted", func(t *testing.T) (*world, func()) {
		url := servicetest.SharedRabbitMQ(t).VHost(t)
		return realOn(t, url), func() {
			conn, err := amqp.Dial(url)
			require.NoError(t, err)
			ch, err := conn.Channel()
			require.NoError(t, err)
			_, err = ch.QueueDelete("seckill.orders", false, false, false)
			require.NoError(t, err)
			require.NoError(t, conn.Close())
		}
	}})
}

// purge takes so many messages out of the queue and stores nothing.
func (w *world) purge(messages int) {
	ctx, stop := context.WithCancel(w.Context())
	taken, done := make(chan queue.Delivery), make(chan struct{})
	go func() {
		defer close(done)
		_ = w.broker.Broker.Consumer(queue.Options{Name: "purge"}).Consume(ctx, taken)
	}()
	for range messages {
		require.NoError(w, servicetest.Receive(w.TB, taken).Ack())
	}
	servicetest.Eventually(w.TB, w.drained)
	stop()
	<-done
}

// The broker loses what it has confirmed, and the sale goes on, on the same product
// and on others, so that something is on its way at every moment: each lost order is
// found by its own age, and stored by its deadline.
func TestWhatTheBrokerLosesIsStoredInTime(t *testing.T) {
	t.Parallel()
	within := servicetest.Scaled(8 * time.Second)
	for _, l := range losings() {
		t.Run(l.name, func(t *testing.T) {
			t.Parallel()
			w, lose := l.make(t)
			var products []string
			var lost []order.Order
			for range 3 {
				w.product += "x"
				products = append(products, w.product)
				w.sale(100_000, 0)
			}
			for _, w.product = range products[:2] {
				orders := w.reserve(40)
				w.publish(orders)
				lost = append(lost, orders...)
			}
			lose()
			b, _ := w.backendWith(backend.Config{Promise: promise.Config{Within: within}})
			servicetest.Eventually(t, func() bool { return len(b.NotReady(t.Context())) == 0 }) // a queue that was deleted is there again
			servicetest.Eventually(t, func() bool {
				// Another backend is in the middle of something, whenever it is asked.
				require.NoError(t, lua.PresentBackend(t.Context(), w.redis, "other", func() int { return 1 }, nil))
				for _, w.product = range []string{products[0], products[2]} {
					w.publish(w.reserve(1))
				}
				rows, err := w.store.Orders(t.Context(), idsOf(lost))
				require.NoError(t, err)
				return len(rows) == len(lost)
			})
			var slowest time.Duration
			for _, o := range lost {
				row, err := w.store.Order(t.Context(), o.ID)
				require.NoError(t, err)
				require.Equal(t, order.Created, row.State)
				made, _ := order.IDTime(o.ID)
				slowest = max(slowest, row.CreatedAt.Sub(made))
			}
			t.Logf("the slowest of %d lost orders was stored after %v, its deadline was %v", len(lost), slowest, within)
			require.Less(t, slowest, within)
		})
	}
}

func idsOf(orders []order.Order) []string {
	ids := make([]string, len(orders))
	for i := range orders {
		ids[i] = orders[i].ID
	}
	return ids
}
