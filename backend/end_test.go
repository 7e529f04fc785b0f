package backend_test

import (
	"context"
	"crypto/rand"
	"errors"
	mathrand "math/rand/v2"
	"net"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/seckill-edge/seckill/backend/activities"
	"github.com/seckill-edge/seckill/backend/store"
	"github.com/seckill-edge/seckill/internal/order"
	"github.com/seckill-edge/seckill/internal/queue"
	"github.com/seckill-edge/seckill/internal/servicetest"
	"github.com/seckill-edge/seckill/lua"
)

// buying reserves for one new buyer after the other and publishes at once, whatever
// happens to the sale, until the context ends; it returns what was granted.
func (w *world) buying(ctx context.Context, name string) (granted []order.Order) {
	for n := 0; ctx.Err() == nil; n++ {
		s, there, err := lua.Audit(ctx, w.redis, w.product)
		if err != nil || !there {
			continue
		}
		id, err := order.NewID(time.Now(), rand.Reader)
		require.NoError(w, err)
		user := name + strconv.Itoa(n)
		batch, err := lua.Reserve(w.Context(), w.redis, w.product, s.Epoch, []lua.Request{{OrderID: id, UserID: user, Quantity: 1}})
		if err != nil || batch.Results[0].Outcome != lua.Reserved {
			continue
		}
		o := order.Order{
			ID: id, ActivityID: batch.ActivityID, ProductID: w.product, UserID: user,
			Quantity: 1, Claim: batch.Results[0].Claim, ReservedAt: batch.At,
		}
		granted = append(granted, o)
		w.send(queue.Message{ID: id, Body: order.AppendMessage(nil, []order.Order{o})})
		_ = lua.Confirm(w.Context(), w.redis, w.product, []string{id})
	}
	return granted
}

// toldWhileKeysAreLost says whether an operator may be told so then: the change is
// refused, or noted and finished by a backend, or a busy Redis was too slow to say.
func toldWhileKeysAreLost(err error) bool {
	slow, ok := errors.AsType[net.Error](err)
	return errors.Is(err, activities.ErrRefused) || errors.Is(err, lua.ErrUnproven) || errors.Is(err, lua.ErrDamaged) ||
		errors.Is(err, lua.ErrNoActivity) || ok && slow.Timeout()
}

// Units are added and withdrawn by several operators while the last ones are
// bought and keys in Redis are lost again and again, then the sale is closed: no
// buyer who was granted a unit is refused it, and all stores agree.
func TestTotalChangesWhileKeysAreLost(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, w *world) {
		a := w.sale(20, 0)
		w.backend()
		w.backend()
		fire, cease := context.WithTimeout(t.Context(), servicetest.Scaled(6*time.Second))
		defer cease()
		var all sync.WaitGroup
		var granted [2][]order.Order
		for i := range granted {
			all.Go(func() { granted[i] = w.buying(fire, "buyer "+strconv.Itoa(i)+" ") })
		}
		var made atomic.Int64
		for range 2 {
			all.Go(func() {
				for fire.Err() == nil {
					c := activities.Change{Add: mathrand.Int64N(5) + 1}
					if mathrand.IntN(2) == 0 {
						c = activities.Change{Withdraw: mathrand.Int64N(5) + 1}
					}
					_, err := w.service().ChangeStock(fire, w.product, c)
					if err == nil {
						made.Add(c.Add - c.Withdraw)
					} else if fire.Err() == nil && !toldWhileKeysAreLost(err) {
						t.Error(err)
					}
				}
			})
		}
		k := lua.KeysOf(w.product)
		lost := time.NewTicker(servicetest.Scaled(time.Second))
		defer lost.Stop()
		for n := 0; ; n++ {
			select {
			case <-lost.C:
				require.NoError(t, w.redis.Del(t.Context(), [...]string{k.Stock, k.Activity, k.Frozen}[n%3]).Err())
				continue
			case <-fire.Done():
			}
			break
		}
		all.Wait()
		servicetest.Eventually(t, func() bool {
			s, there, err := lua.Audit(t.Context(), w.redis, w.product)
			now, failed := w.store.Activity(t.Context(), a.ID)
			return err == nil && failed == nil && there && s.State == lua.Open && s.Proven() && now.Target == 0 && s.Frozen+s.Outbox == 0 && w.drained()
		})
		n := len(granted[0]) + len(granted[1])
		t.Logf("%d units granted, total %d, changes that were told to be made %+d", n, w.snapshot().Total, made.Load())
		totals, err := w.store.Totals(t.Context(), a.ID)
		require.NoError(t, err)
		require.Equal(t, map[order.State]store.Total{order.Created: {Orders: int64(n), Units: int64(n)}}, totals)
		w.settled(int64(n))
		now, err := w.store.Activity(t.Context(), a.ID)
		require.NoError(t, err)
		require.Equal(t, now.Total, w.snapshot().Total)
		_, err = w.service().Close(t.Context(), w.product)
		require.NoError(t, err)
		servicetest.Eventually(t, w.isArchived(a))
	})
}

// The end comes while the broker is away, and most orders are in the outbox or in
// the broker: it is not closed before every one is stored.
func TestTheEndWhileTheBrokerIsAway(t *testing.T) {
	t.Parallel()
	onEachAway(t, func(t *testing.T, w *world, leave, back func()) {
		// Nobody keeps promises yet, so that the orders stay where they are.
		patient := promised
		patient.Promise.Within, patient.Promise.After = time.Hour, 30*time.Minute
		_, stop := w.backendWith(patient)
		a := w.planned(-time.Minute, servicetest.Scaled(4*time.Second), 0)
		w.selling(a)
		leave()
		orders := w.reserve(40)
		servicetest.Eventually(t, func() bool { return w.snapshot().Now.After(a.End.Add(3 * time.Second)) })
		now, err := w.store.Activity(t.Context(), a.ID)
		require.NoError(t, err)
		require.Equal(t, store.Open, now.State, "its orders are on their way")
		require.Equal(t, lua.Open, w.snapshot().State)
		stop(t.Context())
		w.backendWith(promised)
		w.areStored(orders, lua.MarkSettled)
		servicetest.Eventually(t, w.isArchived(a))
		back()
		servicetest.Eventually(t, w.drained)
		require.EqualValues(t, 40, w.stored(a))
		require.EqualValues(t, 40, w.snapshot().Sold)
	})
}

// The next activity of a product begins as soon as the last one is closed. What
// comes late for the last, messages and payments, leaves the next one alone.
func TestTheNextActivityAndWhatComesLate(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, w *world) {
		b, _ := w.backend()
		other, _ := w.backend()
		first := w.planned(-time.Minute, servicetest.Scaled(5*time.Second), servicetest.Scaled(time.Second))
		w.selling(first)
		orders := w.reserve(10)
		w.publish(orders)
		servicetest.Eventually(t, func() bool {
			m, err := w.store.Pay(t.Context(), orders[0].ID, "in time")
			return err == nil && m.Result == store.MoveDone
		})
		var next store.Activity
		servicetest.Eventually(t, func() bool {
			var err error
			next, err = w.service().Create(t.Context(), activities.Draft{
				ProductID: w.product, Total: 5, Limit: 1, PayWindow: time.Hour,
				Start: time.Now().Format(time.RFC3339Nano), End: time.Now().Add(time.Hour).Format(time.RFC3339Nano),
			})
			if err != nil {
				require.ErrorIs(t, err, store.ErrExists)
			}
			return err == nil
		})
		w.selling(next)
		again := make([]lua.Request, 5)
		for i := range again {
			id, err := order.NewID(time.Now(), rand.Reader)
			require.NoError(t, err)
			again[i] = lua.Request{OrderID: id, UserID: orders[i].UserID, Quantity: 1}
		}
		batch, err := lua.Reserve(t.Context(), w.redis, w.product, w.snapshot().Epoch, again)
		require.NoError(t, err)
		for _, r := range batch.Results {
			require.Equal(t, lua.Reserved, r.Outcome, "the same buyers")
		}
		w.send(queue.Message{ID: orders[0].ID, Body: order.AppendMessage(nil, orders)})
		for _, o := range orders[1:] {
			var paid struct{ Outcome string }
			require.Equal(t, 200, post(t, b, "/api/orders/"+o.ID+"/paid", `{"payment_id":"late-`+o.ID+`"}`, &paid))
			require.Equal(t, "refund_due", paid.Outcome)
			require.Equal(t, 409, post(t, b, "/api/orders/"+o.ID+"/cancel", "", &struct{}{}))
		}
		settled := func(result string) int {
			name := `seckill_backend_orders_settled_total{result="` + result + `"}`
			return count(t, b, name) + count(t, other, name)
		}
		// The message again, each late payment, and each cancellation.
		servicetest.Eventually(t, func() bool { return settled("over") == 10+9+9 })
		require.Zero(t, settled("unknown")+settled("conflict"), "nothing is wrong")
		servicetest.Eventually(t, w.isArchived(first))
		s := w.snapshot()
		require.Equal(t, next.ID, s.ID)
		require.Equal(t, [3]int64{0, 5, 0}, [3]int64{s.Available, s.Frozen, s.Sold})
		audit, err := w.service().Audit(t.Context(), w.product)
		require.NoError(t, err)
		require.Zero(t, audit.Drift)
	})
}
