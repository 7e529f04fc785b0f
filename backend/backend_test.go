package backend_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/seckill-edge/seckill/backend/activities"
	"github.com/seckill-edge/seckill/internal/order"
	"github.com/seckill-edge/seckill/internal/queue"
	"github.com/seckill-edge/seckill/internal/servicetest"
	"github.com/seckill-edge/seckill/lua"
)

func TestAllTheWay(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, w *world) {
		w.sale(400, 0)
		b, _ := w.backend()
		w.publish(w.reserve(300))
		w.settled(300)
		w.publish(w.reserve(100))
		w.settled(400)
		require.Equal(t, "400", metric(t, b, "seckill_backend_orders_stored_total"))
		require.Equal(t, "0", shown(t, b, `seckill_activity_drift_units{product="`+w.product+`"}`))
		require.Equal(t, "400", shown(t, b, `seckill_activity_sold_units{product="`+w.product+`"}`))
	})
}

func TestPayWindowKeepsUnitsFrozen(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, w *world) {
		w.sale(10, time.Minute)
		w.backend()
		orders := w.reserve(4)
		w.publish(orders)
		servicetest.Eventually(t, func() bool {
			record, err := lua.RecordOf(t.Context(), w.redis, w.product, orders[3].UserID)
			return err == nil && record[0].Mark == lua.MarkCreated
		})
		require.Equal(t, int64(4), w.snapshot().Frozen)
		audit, err := w.service().Audit(t.Context(), w.product)
		require.NoError(t, err)
		require.Zero(t, audit.Drift)
		require.Equal(t, int64(4), audit.Units[order.Created])
	})
}

func TestRedelivery(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, w *world) {
		a := w.sale(10, 0)
		b, _ := w.backend()
		orders := w.reserve(3)
		for range 4 {
			w.publish(orders)
		}
		w.settled(3)
		servicetest.Eventually(t, w.drained)
		require.Equal(t, int64(3), w.stored(a))
		require.Equal(t, "3", metric(t, b, "seckill_backend_orders_stored_total"))
		w.settled(3)
	})
}

// Redis that has forgotten sells too much; SQL's guard refuses it, and the units
// it refused are free again.
func TestOversoldIsReleased(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, w *world) {
		a := w.sale(5, 0)
		keys := lua.KeysOf(w.product)
		require.NoError(t, w.redis.HSet(t.Context(), keys.Activity, "total", 8).Err())
		require.NoError(t, w.redis.Set(t.Context(), keys.Stock, 8, 0).Err())
		w.backend()
		w.publish(w.reserve(8))
		servicetest.Eventually(t, func() bool {
			s := w.snapshot()
			return s.Sold == 5 && s.Available == 3 && s.Frozen == 0
		})
		totals, err := w.store.Totals(t.Context(), a.ID)
		require.NoError(t, err)
		require.Equal(t, int64(5), totals[order.Created].Orders)
		require.Equal(t, int64(3), totals[order.Rejected].Orders)
		audit, err := w.service().Audit(t.Context(), w.product)
		require.NoError(t, err)
		require.Equal(t, int64(3), audit.Drift, "Redis would sell three units more than there are: %+v", audit)
	})
}

func TestBadMessages(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, w *world) {
		a := w.sale(10, 0)
		w.backend()
		orders := w.reserve(3)
		w.send(queue.Message{ID: "nonsense", Body: []byte("{}")})
		body := order.AppendMessage(nil, orders)
		body = fmt.Appendf(body, "\nno order\nx")
		// The last buyer's order comes with a quantity that nobody may order: that entry
		// decides nothing about the order, which Redis has and which is stored from there.
		cursed := w.reserve(1)[0]
		body = fmt.Appendf(body, "\n%s\t%s\t1000\t1\t%d", cursed.ID, cursed.UserID, cursed.ReservedAt.UnixMilli())
		w.send(queue.Message{ID: "mixed", Body: body})

		w.settled(4)
		servicetest.Eventually(t, func() bool { return len(w.broker.saw(queue.Dead)) == 4 && w.drained() })
		_, dead, err := w.broker.Depth(t.Context())
		require.NoError(t, err)
		require.Equal(t, 4, dead)
		for _, m := range w.broker.saw(queue.Dead) {
			require.NotEmpty(t, m.Headers[queue.HeaderReason])
			if m.ID == "nonsense" {
				require.Equal(t, "{}", string(m.Body))
				continue
			}
			good, bad, err := order.ParseMessage(m.Body)
			require.NoError(t, err)
			require.Empty(t, good)
			require.Len(t, bad, 1)
		}
		require.Equal(t, int64(4), w.stored(a))
		record, err := lua.RecordOf(t.Context(), w.redis, w.product, cursed.UserID)
		require.NoError(t, err)
		require.Equal(t, lua.MarkSettled, record[0].Mark)
		require.Equal(t, int64(6), w.snapshot().Available)
	})
}

// An order that the database refuses is found among its neighbours, tried again
// later, and given up after the last try with its unit free.
func TestOrderThatCannotBeStored(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, w *world) {
		a := w.sale(100, 0)
		_, err := w.raw.ExecContext(t.Context(), w.curse)
		require.NoError(t, err)
		w.backend()
		orders := w.reserve(40)
		cursed := orders[17]
		cursed.UserID = "cursed"
		require.NoError(t, w.redis.HDel(t.Context(), lua.KeysOf(w.product).Users, orders[17].UserID).Err())
		require.NoError(t, w.redis.HSet(t.Context(), lua.KeysOf(w.product).Users, "cursed", lua.FormatRecord([]lua.Entry{
			{Mark: lua.MarkQueued, OrderID: cursed.ID, Quantity: 1, Claim: 1, At: cursed.ReservedAt},
		})).Err())
		orders[17] = cursed
		w.publish(orders)
		servicetest.Eventually(t, func() bool { return w.stored(a) == 39 && len(w.broker.saw(queue.Retry)) == 1 })
		require.Equal(t, "1", w.broker.saw(queue.Retry)[0].Headers[queue.HeaderAttempt])

		w.send(queue.Message{
			ID: "last try", Body: order.AppendMessage(nil, []order.Order{cursed}),
			Headers: map[string]string{queue.HeaderAttempt: "4"},
		})
		w.settled(39)
		require.Len(t, w.broker.saw(queue.Dead), 1)
		require.Equal(t, int64(61), w.snapshot().Available)
	})
}

func TestDatabaseAwayAndBack(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, w *world) {
		a := w.sale(200, 0)
		b, _ := w.backend()
		w.publish(w.reserve(10))
		w.settled(10)
		restart := w.crash()
		w.publish(w.reserve(150))
		servicetest.Eventually(t, func() bool {
			// Unless it is bounded the question waits as long as all who store do.
			asking, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			return b.NotReady(asking)["consumer"] != nil
		})
		require.Equal(t, http.StatusServiceUnavailable, get(t, b, "/readyz").Code)
		restart()
		w.settled(160)
		require.Equal(t, int64(160), w.stored(a))
		require.Empty(t, w.broker.saw(queue.Dead))
		require.Empty(t, w.broker.saw(queue.Retry))
		servicetest.Eventually(t, func() bool { return len(b.NotReady(t.Context())) == 0 })
	})
}

func TestRedisAwayWhileStoring(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, w *world) {
		a := w.sale(500, 0)
		w.backend()
		w.line.cut()
		w.publish(w.reserve(300))
		servicetest.Eventually(t, func() bool { return w.stored(a) == 300 && w.drained() })
		require.Equal(t, int64(300), w.snapshot().Frozen)
		w.line.mend()
		w.settled(300)
	})
}

// The backend dies after the broker has forgotten the message and before Redis
// has been told.
func TestKilledBetweenAckAndSettle(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, w *world) {
		a := w.sale(500, 0)
		b, stop := w.backend()
		servicetest.Eventually(t, func() bool { return len(b.NotReady(t.Context())) == 0 })
		w.line.cut()
		w.publish(w.reserve(300))
		servicetest.Eventually(t, func() bool { return w.stored(a) == 300 && w.drained() })
		dead, kill := context.WithCancel(t.Context())
		kill()
		stop(dead)
		require.Equal(t, int64(300), w.snapshot().Frozen)
		w.line.mend()
		w.backend()
		w.settled(300)
		require.Equal(t, int64(300), w.stored(a))
	})
}

func TestRelayPublishesWhatWasLeftBehind(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, w *world) {
		w.sale(1000, 0)
		left := w.reserve(700) // the edge dies here
		require.NoError(t, w.redis.HSet(t.Context(), lua.KeysOf(w.product).Outbox, "nobody's", "nobody").Err())
		w.backend()
		w.backend()
		w.settled(700)
		carried := map[string]int{}
		for _, m := range w.broker.saw(queue.Orders) {
			orders, bad, err := order.ParseMessage(m.Body)
			require.NoError(t, err)
			require.Empty(t, bad)
			for _, o := range orders {
				carried[o.ID]++
			}
		}
		require.Len(t, carried, len(left))
		for id, times := range carried {
			require.Equal(t, 1, times, "order %s: two relays have worked at once", id)
		}
	})
}

// The audit never cries wolf while the sale is on, and agrees at its end.
func TestAuditUnderLoad(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, w *world) {
		const edges, buyers, audits = 3, 20, 6
		w.sale(1_000_000, 0)
		b, _ := w.backend()
		var running sync.WaitGroup
		var sold atomic.Int64
		enough := make(chan struct{})
		for range edges {
			running.Go(func() {
				for {
					select {
					case <-enough:
						return
					default:
					}
					// A crowd that waits for the backend: the backlog stays small
					// however slow the machine is.
					if w.snapshot().Frozen < 10*buyers {
						w.publish(w.reserve(buyers))
						sold.Add(buyers)
					}
				}
			})
		}
		for range audits {
			audit, err := b.Activities().Audit(t.Context(), w.product)
			require.NoError(t, err)
			require.Zero(t, audit.Drift, "%+v", audit)
		}
		close(enough)
		running.Wait()
		require.Positive(t, sold.Load())
		w.settled(sold.Load())
	})
}

func TestReadyNamesWhatIsMissing(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, w *world) {
		b, _ := w.backend()
		servicetest.Eventually(t, func() bool { return get(t, b, "/readyz").Code == http.StatusOK })
		w.line.cut()
		servicetest.Eventually(t, func() bool { return get(t, b, "/readyz").Code == http.StatusServiceUnavailable })
		var body struct {
			NotReady []string `json:"not_ready"`
		}
		require.NoError(t, json.Unmarshal(get(t, b, "/readyz").Body.Bytes(), &body))
		require.Equal(t, []string{"redis"}, body.NotReady)
		require.Equal(t, http.StatusOK, get(t, b, "/healthz").Code)
		w.line.mend()
		servicetest.Eventually(t, func() bool { return get(t, b, "/readyz").Code == http.StatusOK })
	})
}

func TestStopTwiceAndUnstarted(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, w *world) {
		_, stop := w.backend()
		var both sync.WaitGroup
		both.Go(func() { stop(t.Context()) })
		both.Go(func() { stop(t.Context()) })
		both.Wait()
		_, err := w.service().Show(t.Context(), "unheard-of")
		require.ErrorContains(t, err, "create one first")
		var invalid *activities.Invalid
		_, err = w.service().Show(t.Context(), "{evil}")
		require.ErrorAs(t, err, &invalid)
	})
}
