package backend_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/seckill-edge/seckill/backend"
	"github.com/seckill-edge/seckill/backend/activities"
	"github.com/seckill-edge/seckill/internal/order"
	"github.com/seckill-edge/seckill/internal/servicetest"
	"github.com/seckill-edge/seckill/lua"
)

// clockAt is a machine's clock that is wrong by so much.
func clockAt(wrong time.Duration) func() time.Time {
	return func() time.Time { return time.Now().Add(wrong) }
}

// A backend whose clock is far ahead lets no order expire before its time is up by the
// database's clock, which another one's orders were given it by.
func TestOrdersGoByTheDatabasesClock(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, w *world) {
		w.sale(10, 20*time.Minute)
		_, stop := w.backendAt(backend.Config{}, clockAt(-time.Hour))
		orders := w.created(3)
		stop(t.Context())
		w.backendAt(backend.Config{}, clockAt(time.Hour))
		w.overdue(orders[:1])
		w.marked(orders[:1], lua.MarkExpired) // it has looked for what is due
		w.stands(2, 0)
		row, err := w.store.Order(t.Context(), orders[1].ID)
		require.NoError(t, err)
		require.Equal(t, order.Created, row.State)
		require.WithinDuration(t, orders[1].ReservedAt.Add(20*time.Minute), row.DueAt, 30*time.Minute)
	})
}

// A backend whose clock is slow opens a sale in time all the same.
func TestSlowClockOpensInTime(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, w *world) {
		_, err := w.service().Create(t.Context(), activities.Draft{
			ProductID: w.product, Total: 10, Limit: 1,
			Start: time.Now().Add(time.Minute).Format(time.RFC3339), End: time.Now().Add(time.Hour).Format(time.RFC3339),
		})
		require.NoError(t, err)
		w.backendAt(backend.Config{AcceptRedisRisk: true}, clockAt(-time.Hour))
		servicetest.Eventually(t, func() bool {
			s, there, err := lua.Audit(t.Context(), w.redis, w.product)
			return err == nil && there && s.State == lua.Open
		})
	})
}
