package backend_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/seckill-edge/seckill/backend"
	"github.com/seckill-edge/seckill/backend/api"
	"github.com/seckill-edge/seckill/backend/metrics"
	"github.com/seckill-edge/seckill/backend/pay"
	"github.com/seckill-edge/seckill/backend/settle"
	"github.com/seckill-edge/seckill/backend/store"
	"github.com/seckill-edge/seckill/internal/order"
	"github.com/seckill-edge/seckill/internal/servicetest"
	"github.com/seckill-edge/seckill/lua"
)

// post sends a body to a backend's API and returns the answer's status.
func post(t testing.TB, b *backend.Backend, path, body string, out any) int {
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "http://127.0.0.1"+path, strings.NewReader(body))
	r.Header.Set("Content-Type", "application/json")
	w := httptest.NewRecorder()
	b.Handler().ServeHTTP(w, r)
	require.NoError(t, json.Unmarshal(w.Body.Bytes(), out), w.Body)
	return w.Code
}

// posted is post by who comes again while a store cannot be asked.
func posted(t testing.TB, b *backend.Backend, path, body string, out any) (code int) {
	servicetest.Eventually(t, func() bool {
		code = post(t, b, path, body, out)
		return code != http.StatusServiceUnavailable
	})
	return code
}

// created brings n orders of one unit to where they wait for their payment.
func (w *world) created(n int) []order.Order {
	orders := w.reserve(n)
	w.publish(orders)
	w.marked(orders, lua.MarkCreated)
	return orders
}

// marked waits until Redis has all orders under a mark.
func (w *world) marked(orders []order.Order, mark lua.Mark) {
	w.Helper()
	users := make([]string, len(orders))
	for i, o := range orders {
		users[i] = o.UserID
	}
	servicetest.Eventually(w, func() bool {
		records, err := lua.Records(w.Context(), w.redis, w.product, users)
		if err != nil {
			return false
		}
		for i, record := range records {
			if markOf(record, orders[i].ID) != mark {
				return false
			}
		}
		return true
	})
}

func markOf(record []lua.Entry, id string) lua.Mark {
	for _, e := range record {
		if e.OrderID == id {
			return e.Mark
		}
	}
	return 0
}

// stands waits until Redis has these units and nothing is on its way, and requires
// that all stores agree.
func (w *world) stands(frozen, sold int64) {
	w.Helper()
	servicetest.Eventually(w, func() bool {
		s := w.snapshot()
		return s.Frozen == frozen && s.Sold == sold && s.Outbox == 0
	})
	audit, err := w.service().Audit(w.Context(), w.product)
	require.NoError(w, err)
	require.Zero(w, audit.Drift, "%+v", audit)
	require.Equal(w, audit.Total, audit.Available+frozen+sold)
	require.Equal(w, frozen, audit.Units[order.Created])
	require.Equal(w, sold, audit.Units[order.Paid])
}

// overdue makes the orders' time be up.
func (w *world) overdue(orders []order.Order) {
	for _, o := range orders {
		// The test's own connection to SQLite does not wait for others.
		var err error
		for began := time.Now(); time.Since(began) < soon; {
			if _, err = w.raw.ExecContext(w.Context(), "UPDATE orders SET due_ms = 1 WHERE id = ?", o.ID); err == nil {
				break
			}
		}
		require.NoError(w, err)
	}
}

func TestLifeOfOrders(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, w *world) {
		w.sale(10, time.Hour)
		b, _ := w.backend()
		orders := w.created(8)
		w.stands(8, 0)

		var paid api.Paid
		require.Equal(t, http.StatusOK, post(t, b, "/api/orders/"+orders[0].ID+"/paid", `{"payment_id":"`+orders[0].ID+`"}`, &paid))
		w.marked(orders[:1], lua.MarkPaid)
		w.stands(7, 1)

		var cancelled api.Cancelled
		require.Equal(t, http.StatusOK, post(t, b, "/api/orders/"+orders[1].ID+"/cancel", `{}`, &cancelled))
		w.marked(orders[1:2], lua.MarkCancelled)
		w.stands(6, 1)

		w.overdue(orders[2:5])
		w.marked(orders[2:5], lua.MarkExpired)
		w.stands(3, 1)

		// Their units and their right to buy are back.
		epoch := w.snapshot().Epoch
		id, err := order.NewID(time.Now(), strings.NewReader("0123456789"))
		require.NoError(t, err)
		batch, err := lua.Reserve(t.Context(), w.redis, w.product, epoch, []lua.Request{{OrderID: id, UserID: orders[2].UserID, Quantity: 1}})
		require.NoError(t, err)
		require.Equal(t, lua.Reserved, batch.Results[0].Outcome)
		again := order.Order{ID: id, ActivityID: orders[2].ActivityID, ProductID: w.product, UserID: orders[2].UserID, Quantity: 1, Claim: 1, ReservedAt: batch.At}
		w.publish([]order.Order{again})
		w.marked([]order.Order{again}, lua.MarkCreated)
		w.stands(4, 1)

		// A late payment revives nothing.
		require.Equal(t, http.StatusOK, post(t, b, "/api/orders/"+orders[3].ID+"/paid", `{"payment_id":"late"}`, &paid))
		require.Equal(t, "refund_due", paid.Outcome)
		require.Equal(t, "expired", paid.Order.State)
		w.stands(4, 1)
		require.Equal(t, "1", metric(t, b, `seckill_backend_payments_total{outcome="applied"}`))
		require.Equal(t, "1", metric(t, b, `seckill_backend_payments_total{outcome="refund_due"}`))
		require.Equal(t, "1", metric(t, b, `seckill_backend_orders_ended_total{state="cancelled"}`))
		require.Equal(t, "3", metric(t, b, `seckill_backend_orders_ended_total{state="expired"}`))
		require.Equal(t, "9", metric(t, b, `seckill_backend_promises_total{kept="yes"}`))
		require.Equal(t, "1", shown(t, b, "seckill_backend_refunds_due"))
	})
}

// A thousand orders whose payment, cancellation and expiry come at the same
// moment, through two backends.
func TestRacesLeaveOneState(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, w *world) {
		const n = 400
		a := w.sale(n, time.Hour)
		first, _ := w.backend()
		second, _ := w.backend()
		orders := w.created(n)
		var racers errgroup.Group
		var applied int64
		racers.Go(func() error {
			for _, o := range orders {
				var paid api.Paid
				if code := posted(t, first, "/api/orders/"+o.ID+"/paid", `{"payment_id":"`+o.ID+`"}`, &paid); code != http.StatusOK {
					return fmt.Errorf("paying answers %d", code)
				}
				if paid.Outcome == "applied" {
					applied++
				}
			}
			return nil
		})
		racers.Go(func() error {
			for i := range orders {
				var cancelled api.Cancelled
				if code := posted(t, second, "/api/orders/"+orders[n-1-i].ID+"/cancel", "", &cancelled); code != http.StatusOK && code != http.StatusConflict {
					return fmt.Errorf("cancelling answers %d", code)
				}
			}
			return nil
		})
		racers.Go(func() error {
			for i := range orders {
				w.overdue(orders[(i*387)%n:][:1]) // the scanner comes for these
			}
			return nil
		})
		require.NoError(t, racers.Wait())
		totals, err := w.store.Totals(t.Context(), a.ID)
		require.NoError(t, err)
		t.Logf("%+v", totals)
		require.Equal(t, applied, totals[order.Paid].Orders)
		require.EqualValues(t, n, totals[order.Paid].Orders+totals[order.Cancelled].Orders+totals[order.Expired].Orders)
		w.stands(0, totals[order.Paid].Units)
		due, err := w.store.RefundsDue(t.Context())
		require.NoError(t, err)
		require.Equal(t, n-applied, due)
	})
}

// A crash between the two stores of a move: SQL has moved, Redis has not been
// told. The reconciler of another backend tells it.
func TestCrashBetweenTheStores(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, w *world) {
		w.sale(10, time.Hour)
		_, stop := w.backend()
		orders := w.created(7)
		stop(t.Context())
		dying := w.payments(func(context.Context, []settle.Order) error { return context.Canceled })
		_, err := dying.Paid(t.Context(), orders[0].ID, "pay-"+orders[0].ID)
		require.NoError(t, err)
		_, err = dying.Cancel(t.Context(), orders[1].ID, "")
		require.NoError(t, err)
		w.overdue(orders[2:4])
		expired, err := dying.ExpireDue(t.Context())
		require.NoError(t, err)
		require.Equal(t, 2, expired)
		require.Equal(t, int64(7), w.snapshot().Frozen, "Redis knows nothing of it")

		b, _ := w.backend()
		// The payment service repeats what it got no answer to: that mends it at once.
		var paid api.Paid
		require.Equal(t, http.StatusOK, post(t, b, "/api/orders/"+orders[0].ID+"/paid", `{"payment_id":"pay-`+orders[0].ID+`"}`, &paid))
		require.True(t, paid.Repeat)
		w.marked(orders[:1], lua.MarkPaid)
		w.marked(orders[1:2], lua.MarkCancelled)
		w.marked(orders[2:4], lua.MarkExpired)
		w.stands(3, 1)
	})
}

var discard = slog.New(slog.DiscardHandler)

// payments is the service of a backend of its own.
func (w *world) payments(tell func(context.Context, []settle.Order) error) *pay.Service {
	return pay.New(pay.Deps{Store: w.store, Tell: tell, Metrics: metrics.New(), Log: discard})
}

// Redis is away while orders move; it hears of it afterwards.
func TestMovesWhileRedisIsAway(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, w *world) {
		w.sale(10, time.Hour)
		b, _ := w.backend()
		orders := w.created(4)
		w.line.cut()
		var paid api.Paid
		require.Equal(t, http.StatusOK, post(t, b, "/api/orders/"+orders[0].ID+"/paid", `{"payment_id":"`+orders[0].ID+`"}`, &paid))
		var cancelled api.Cancelled
		require.Equal(t, http.StatusOK, post(t, b, "/api/orders/"+orders[1].ID+"/cancel", "", &cancelled))
		w.overdue(orders[2:3])
		require.Equal(t, int64(4), w.snapshot().Frozen)
		w.line.mend()
		w.stands(1, 1)
		w.marked(orders[2:3], lua.MarkExpired)
	})
}

// What became due while no backend ran is caught up with.
func TestExpiryCatchesUp(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, w *world) {
		a := w.sale(1500, time.Hour)
		_, stop := w.backend()
		w.created(1100)
		stop(t.Context())
		_, err := w.raw.ExecContext(t.Context(), "UPDATE orders SET due_ms = 1 WHERE activity_id = ?", a.ID)
		require.NoError(t, err)
		w.backend()
		w.backend()
		w.stands(0, 0)
		stored, err := w.store.Activity(t.Context(), a.ID)
		require.NoError(t, err)
		require.Zero(t, stored.Reserved)
		require.Equal(t, store.Open, stored.State)
	})
}

func TestNoPaymentStage(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, w *world) {
		w.sale(5, 0)
		b, _ := w.backend()
		orders := w.reserve(2)
		w.publish(orders)
		w.settled(2)
		var problem struct{ State, Detail string }
		require.Equal(t, http.StatusConflict, post(t, b, "/api/orders/"+orders[0].ID+"/paid", `{"payment_id":"p"}`, &problem))
		require.Equal(t, "created", problem.State)
		require.Equal(t, http.StatusConflict, post(t, b, "/api/orders/"+orders[1].ID+"/cancel", "", &problem))
		w.settled(2)
	})
}
