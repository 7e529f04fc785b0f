package backend_test

import (
	"crypto/rand"
	"fmt"
	"log/slog"
	randv2 "math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2/server"
	"github.com/stretchr/testify/require"

	"github.com/seckill-edge/seckill/backend"
	"github.com/seckill-edge/seckill/backend/consume"
	"github.com/seckill-edge/seckill/backend/dead"
	"github.com/seckill-edge/seckill/internal/order"
	"github.com/seckill-edge/seckill/internal/queue"
	"github.com/seckill-edge/seckill/internal/servicetest"
	"github.com/seckill-edge/seckill/lua"
)

// runsAs gives an embedded Redis the run id that it lacks; another one later is a
// server that has restarted.
func (w *world) runsAs(id int) {
	if w.server == nil {
		return
	}
	w.server.Server().SetPreHook(func(c *server.Peer, cmd string, _ ...string) bool {
		if cmd == "INFO" {
			c.WriteBulk(fmt.Sprintf("# Server\r\nrun_id:%040x\r\n", id))
		}
		return cmd == "INFO"
	})
}

// checking is a backend that believes Redis from the first look on, however slow.
func (w *world) checking() *backend.Backend {
	b, _ := w.backendWith(backend.Config{Consume: consume.Config{Margin: time.Nanosecond, RecordWithin: soon}})
	return b
}

// seen has a first order stored, so that the backend has looked at the sale, and lets
// Redis's clock go on.
func (w *world) seen() {
	w.publish(w.reserve(1))
	w.settled(1)
	looked := w.snapshot().Now
	servicetest.Eventually(w, func() bool { return w.snapshot().Now.After(looked) })
}

// forged is an order that nobody has reserved.
func (w *world) forged() order.Order {
	s := w.snapshot()
	id, err := order.NewID(s.Now, rand.Reader)
	require.NoError(w, err)
	return order.Order{ID: id, ActivityID: s.ID, ProductID: w.product, UserID: "nobody " + id, Quantity: 1, Claim: 1, ReservedAt: s.Now}
}

// A message that nobody reserved, in all its faces, sells nothing and rejects
// nobody's order; its neighbours are stored.
func TestWhatNobodyReservedIsNotSold(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, w *world) {
		w.runsAs(1)
		a := w.sale(10, 0)
		b := w.checking()
		w.seen()
		forged, real := w.forged(), w.reserve(4)
		more, other := real[2], real[3]
		more.Quantity = 2
		other.Claim = 2
		body := order.AppendMessage(nil, []order.Order{real[0], forged, more, other, real[1]})
		body = fmt.Appendf(body, "\n%s\t%s\tmany\t1\t%d", real[3].ID, real[3].UserID, real[3].ReservedAt.UnixMilli())
		w.send(queue.Message{ID: "mixed", Body: body})
		servicetest.Eventually(t, func() bool { return w.drained() && len(w.broker.saw(queue.Dead)) == 4 })
		require.Equal(t, int64(3), w.stored(a), "its neighbours")
		w.publish(real) // a bad or forged entry came first, and decides nothing
		w.settled(5)
		require.Equal(t, int64(5), w.stored(a))

		var reasons []string
		for _, letter := range w.broker.saw(queue.Dead) {
			reasons = append(reasons, letter.Headers[queue.HeaderReason])
		}
		require.Contains(t, reasons[0], "quantity")
		for i, id := range []string{forged.ID, more.ID, other.ID} {
			require.True(t, strings.HasPrefix(reasons[i+1], "unknown_reservation: "), reasons[i+1])
			require.Equal(t, id, w.broker.saw(queue.Dead)[i+1].ID)
		}
		require.Equal(t, "3", metric(t, b, `seckill_backend_dead_letters_total{kind="unknown_reservation"}`))
		require.Equal(t, "1", metric(t, b, `seckill_backend_dead_letters_total{kind="entry"}`))
		record, err := lua.RecordOf(t.Context(), w.redis, w.product, forged.UserID)
		require.NoError(t, err)
		require.Empty(t, record)
	})
}

// A letter of an order that Redis knows by the time of its replay is stored.
func TestReplayOfAnUnknownReservation(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, w *world) {
		w.runsAs(1)
		w.sale(10, 0)
		w.checking()
		w.seen()
		o := w.forged()
		w.send(queue.Message{ID: o.ID, Body: order.AppendMessage(nil, []order.Order{o})})
		servicetest.Eventually(t, func() bool { return w.drained() && len(w.broker.saw(queue.Dead)) == 1 })
		batch, err := lua.Reserve(t.Context(), w.redis, w.product, w.snapshot().Epoch, []lua.Request{{OrderID: o.ID, UserID: o.UserID, Quantity: 1}})
		require.NoError(t, err)
		require.Equal(t, lua.Reserved, batch.Results[0].Outcome)
		require.NoError(t, lua.Confirm(t.Context(), w.redis, w.product, []string{o.ID}))
		letters := dead.New(dead.Deps{Broker: w.broker, Store: w.store, Redis: w.redis, Log: slog.New(slog.DiscardHandler)})
		servicetest.Eventually(t, func() bool { // RabbitMQ needs a moment to have it
			done, err := letters.Replay(t.Context(), o.ID)
			return err == nil && done == dead.Done{Letters: 1, Orders: 1}
		})
		w.settled(2)
	})
}

// Orders that were reserved come late, while Redis restarts and forgets at any moment
// between: none is taken for unknown.
func TestWhatWasReservedIsNeverUnknown(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, w *world) {
		seed := uint64(time.Now().UnixNano())
		t.Logf("seed %d", seed)
		random := randv2.New(randv2.NewPCG(seed, 0)) //nolint:gosec // a history, not a secret
		w.runsAs(1)
		a := w.sale(10_000, 0)
		w.checking()
		w.seen()
		reserved, late := 1, []order.Order(nil)
		for round := range 4 {
			for range 30 {
				switch random.IntN(3) {
				case 0, 1:
					orders := w.reserve(1 + random.IntN(5))
					reserved += len(orders)
					late = append(late, orders...)
				case 2:
					n := random.IntN(len(late) + 1)
					w.publish(late[:n])
					late = late[n:]
				}
			}
			epoch := w.snapshot().Epoch
			if w.server != nil && round%2 == 1 { // it has lost its last second, too
				for _, o := range late {
					w.server.HDel(lua.KeysOf(w.product).Users, o.UserID)
				}
				w.runsAs(2 + round)
			} else {
				require.NoError(t, w.redis.FlushDB(t.Context()).Err())
			}
			n := random.IntN(len(late) + 1)
			w.publish(late[:n]) // while it is rebuilt
			late = late[n:]
			servicetest.Eventually(t, func() bool {
				s, there, err := lua.Audit(t.Context(), w.redis, w.product)
				return err == nil && there && s.Proven() && s.State == lua.Open && s.Epoch > epoch
			})
			w.publish(late[:len(late)/2]) // afterwards
			late = late[len(late)/2:]
		}
		w.publish(late)
		servicetest.Eventually(t, func() bool { return w.drained() && w.stored(a) == int64(reserved) })
		require.Empty(t, w.broker.saw(queue.Dead))
	})
}
