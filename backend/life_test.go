package backend_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/seckill-edge/seckill/backend/activities"
	"github.com/seckill-edge/seckill/backend/store"
	"github.com/seckill-edge/seckill/internal/order"
	"github.com/seckill-edge/seckill/internal/servicetest"
	"github.com/seckill-edge/seckill/lua"
)

// planned creates an activity that its backends look after.
func (w *world) planned(start, end time.Duration, payWindow time.Duration) store.Activity {
	a, err := w.service().Create(w.Context(), activities.Draft{
		ProductID: w.product, Total: 100, Limit: 1, PayWindow: payWindow,
		Start: time.Now().Add(start).Format(time.RFC3339Nano), End: time.Now().Add(end).Format(time.RFC3339Nano),
	})
	require.NoError(w, err)
	return a
}

func (w *world) selling(a store.Activity) {
	w.Helper()
	servicetest.Eventually(w, func() bool {
		s, there, err := lua.Audit(w.Context(), w.redis, w.product)
		return err == nil && there && s.ID == a.ID && s.State == lua.Open
	})
}

func (w *world) isArchived(a store.Activity) func() bool {
	return func() bool {
		now, err := w.store.Activity(w.Context(), a.ID)
		return err == nil && !now.ArchivedAt.IsZero()
	}
}

// The whole life of an activity and the next one of its product, with no operator:
// two backends, orders that are paid and that expire, units added on the way.
func TestALifeWithoutAnOperator(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, w *world) {
		w.backend()
		b, _ := w.backend()
		first := w.planned(-time.Minute, servicetest.Scaled(8*time.Second), servicetest.Scaled(2*time.Second))
		w.selling(first)
		require.Equal(t, "0", shown(t, b, `seckill_backend_activities_unready{obstacle="predecessor"}`))
		_, err := w.service().ChangeStock(t.Context(), w.product, activities.Change{Add: 20})
		require.NoError(t, err)
		orders := w.reserve(30)
		w.publish(orders)
		for _, o := range orders[:10] {
			servicetest.Eventually(t, func() bool {
				m, err := w.store.Pay(t.Context(), o.ID, "p-"+o.ID)
				return err == nil && m.Result == store.MoveDone
			})
		}
		servicetest.Eventually(t, w.isArchived(first))
		a, err := w.store.Activity(t.Context(), first.ID)
		require.NoError(t, err)
		require.Equal(t, store.Closed, a.State)
		totals, err := w.store.Totals(t.Context(), first.ID)
		require.NoError(t, err)
		require.Equal(t, map[order.State]store.Total{order.Paid: {Orders: 10, Units: 10}, order.Expired: {Orders: 20, Units: 20}}, totals)
		servicetest.Eventually(t, func() bool {
			left, err := w.redis.PTTL(t.Context(), lua.KeysOf(w.product).Users).Result()
			return err == nil && left > 0
		})

		next := w.planned(time.Minute, time.Hour, 0)
		w.selling(next)
		require.EqualValues(t, 100, w.snapshot().Available)
		left, err := w.redis.PTTL(t.Context(), lua.KeysOf(w.product).Stock).Result()
		require.NoError(t, err)
		require.Negative(t, left)
	})
}
