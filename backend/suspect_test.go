package backend_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/seckill-edge/seckill/backend/settle"
	"github.com/seckill-edge/seckill/internal/order"
	"github.com/seckill-edge/seckill/internal/servicetest"
	"github.com/seckill-edge/seckill/lua"
)

// settledDown is the age from which an order is not judged by its youth any more.
const settledDown = 8 * time.Second

// A process dies between SQL and Redis while another backend has watched the sale
// for long. Units are frozen by the pay window all the time; the sums give each move
// away.
func TestLostMovesAreFoundSoon(t *testing.T) {
	t.Parallel()
	for name, move := range map[string]struct {
		lose func(t *testing.T, w *world, tell func(context.Context, []settle.Order) error, orders []order.Order)
		mark lua.Mark
	}{
		"paid": {func(t *testing.T, w *world, tell func(context.Context, []settle.Order) error, orders []order.Order) {
			for _, o := range orders {
				_, err := w.payments(tell).Paid(t.Context(), o.ID, "pay-"+o.ID)
				require.NoError(t, err)
			}
		}, lua.MarkPaid},
		"cancelled": {func(t *testing.T, w *world, tell func(context.Context, []settle.Order) error, orders []order.Order) {
			for _, o := range orders {
				_, err := w.payments(tell).Cancel(t.Context(), o.ID, "")
				require.NoError(t, err)
			}
		}, lua.MarkCancelled},
	} {
		t.Run(name, func(t *testing.T) {
			onEach(t, func(t *testing.T, w *world) {
				w.sale(100, time.Hour)
				w.backend()
				orders := w.created(20)
				// Until the first inspections have found nothing and rest.
				w.inspected(orders[0])
				move.lose(t, w, func(context.Context, []settle.Order) error { return context.Canceled }, orders[:5])
				w.marked(orders[:5], move.mark)
			})
		})
	}
}

// A backend dies after its commit: SQL has the orders as created, Redis as queued,
// and no sum tells. The silence of the dead one does.
func TestADeadBackendsOrdersAreFoundSoon(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, w *world) {
		w.sale(100, time.Hour)
		w.backend()
		w.inspected(w.created(3)[0])
		orders := w.reserve(10)
		require.NoError(t, lua.PresentBackend(t.Context(), w.redis, "dying", func() int { return 10 }, nil))
		_, err := w.store.SaveOrders(t.Context(), orders)
		require.NoError(t, err)
		ids := make([]string, len(orders))
		for i := range orders {
			ids[i] = orders[i].ID
		}
		require.NoError(t, lua.Confirm(t.Context(), w.redis, w.product, ids))
		w.marked(orders, lua.MarkCreated)
	})
}

// inspected waits until the sale is as old as one that was inspected since the
// backend began, so that nothing but what the test does is in doubt.
func (w *world) inspected(o order.Order) {
	made, _ := order.IDTime(o.ID)
	servicetest.Eventually(w, func() bool { return time.Since(made) > settledDown })
}
