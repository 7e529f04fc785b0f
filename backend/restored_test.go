package backend_test

import (
	"errors"
	"net/http"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/seckill-edge/seckill/backend/activities"
	"github.com/seckill-edge/seckill/backend/api"
	"github.com/seckill-edge/seckill/backend/store"
	"github.com/seckill-edge/seckill/backend/tide"
	"github.com/seckill-edge/seckill/internal/servicetest"
	"github.com/seckill-edge/seckill/lua"
)

// tables are all that a backup holds, the tide first: a restore that is under way is
// seen from its beginning.
var tables = []string{"tide", "activities", "orders", "payments"}

// exec changes the database behind everybody's back. The test's own connection to
// SQLite does not wait for others.
func (w *world) exec(statements ...string) {
	w.Helper()
	for _, s := range statements {
		servicetest.Eventually(w, func() bool {
			_, err := w.raw.ExecContext(w.Context(), s)
			return err == nil
		}, s)
	}
}

// backup keeps the database as it is now, and returns what brings it back.
func (w *world) backup() (restore func()) {
	for _, name := range tables {
		w.exec("CREATE TABLE saved_" + name + " AS SELECT * FROM " + name)
	}
	var then int64
	require.NoError(w, w.raw.QueryRowContext(w.Context(), "SELECT height FROM saved_tide").Scan(&then))
	return func() {
		w.Helper()
		servicetest.Eventually(w, func() bool { // the tide has risen since
			known, err := lua.HighTide(w.Context(), w.redis, 0)
			if err == nil {
				// A new process asks Redis before it decides anything. Here its store is
				// the one of a backend that has stopped, and told Redis its last height.
				w.store.Mind(known)
			}
			return err == nil && known > then
		})
		for _, name := range tables {
			w.exec("DELETE FROM "+name, "INSERT INTO "+name+" SELECT * FROM saved_"+name)
		}
	}
}

// isHeld waits until nothing is sold, for the reason that the database has forgotten
// something.
func (w *world) isHeld() {
	w.Helper()
	servicetest.Eventually(w, func() bool {
		s := w.snapshot()
		return s.State == lua.OnHold && s.RunID == lua.Unproven
	})
}

func (w *world) recovered(dry bool) tide.Report {
	w.Helper()
	report, err := tide.Recover(w.Context(), tide.Deps{Redis: w.redis, Store: w.store, Log: discard}, dry)
	require.NoError(w, err)
	require.Zero(w, report.Left(), "%+v", report)
	return report
}

// The backup is older than the sale: its orders wait, and nobody is told that there is
// no such sale.
func TestRestoredFromBeforeTheSale(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, w *world) {
		restore := w.backup()
		a := w.sale(10, 0)
		_, stop := w.backend()
		before := w.reserve(3)
		w.publish(before)
		w.marked(before, lua.MarkSettled)
		stop(t.Context())
		after := w.reserve(2)
		restore()
		b, _ := w.backend()
		w.publish(after)
		w.isHeld()
		_, err := w.service().Show(t.Context(), w.product)
		require.ErrorIs(t, err, activities.ErrRefused)
		require.ErrorContains(t, err, "seckilld recover")
		require.ErrorIs(t, b.NotReady(t.Context())["database"], store.ErrBehind)
		require.Equal(t, "1", shown(t, b, "seckill_backend_database_behind"))
		_, err = b.Reconcile(t.Context(), w.product, false)
		require.ErrorIs(t, err, store.ErrBehind)

		want := tide.Activity{ProductID: w.product, ActivityID: a.ID, Made: true, Stored: 3}
		require.Equal(t, []tide.Activity{want}, w.recovered(true).Activities)
		_, err = w.store.Activity(t.Context(), a.ID)
		require.ErrorIs(t, err, store.ErrNotFound, "a dry run changes nothing")
		require.Equal(t, []tide.Activity{want}, w.recovered(false).Activities)
		w.marked(after, lua.MarkSettled)
		servicetest.Eventually(t, func() bool {
			_, err := w.service().Open(t.Context(), w.product)
			return err == nil
		})
		w.settled(5)
		got, err := w.store.Activity(t.Context(), a.ID)
		require.NoError(t, err)
		require.Equal(t, [4]any{a.Total, a.Limit, a.PayWindow, int64(5)}, [4]any{got.Total, got.Limit, got.PayWindow, got.Reserved})
		again := w.recovered(true)
		require.True(t, again.Nothing(), "%+v", again)
	})
}

// The backup is older than payments and cancellations, and is restored under a backend
// that runs: nobody who has paid loses his order, though its time is up by then.
func TestRestoredFromBeforeThePayments(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, w *world) {
		w.sale(10, time.Hour)
		b, _ := w.backend()
		orders := w.created(5)
		restore := w.backup()
		for _, o := range orders[:3] {
			w.exec("UPDATE saved_orders SET due_ms = 1 WHERE id = '" + o.ID + "'")
		}
		pay := func(at int, payment string) (int, api.Paid) {
			var paid api.Paid
			code := post(t, b, "/api/orders/"+orders[at].ID+"/paid", `{"payment_id":"`+payment+`"}`, &paid)
			return code, paid
		}
		for i := range 2 {
			code, _ := pay(i, orders[i].ID)
			require.Equal(t, http.StatusOK, code)
		}
		var cancelled api.Cancelled
		require.Equal(t, http.StatusOK, post(t, b, "/api/orders/"+orders[2].ID+"/cancel", `{}`, &cancelled))
		w.marked(orders[:2], lua.MarkPaid)
		w.marked(orders[2:3], lua.MarkCancelled)
		restore()
		code, _ := pay(3, "too-soon")
		require.Equal(t, http.StatusServiceUnavailable, code)
		w.isHeld()
		view, err := w.service().Show(t.Context(), w.product)
		require.NoError(t, err)
		require.Contains(t, view.Why, "seckilld recover")

		require.Equal(t, 3, w.recovered(false).Activities[0].Moved)
		servicetest.Eventually(t, func() bool { s := w.snapshot(); return s.State == lua.Open && s.Proven() })
		w.marked(orders[:2], lua.MarkPaid)
		w.marked(orders[2:3], lua.MarkCancelled)
		w.stands(2, 2)
		code, paid := pay(0, orders[0].ID)
		require.Equal(t, http.StatusOK, code)
		require.EqualValues(t, store.Applied, paid.Outcome, "its payment is its own again")
		code, paid = pay(0, "another")
		require.Equal(t, http.StatusOK, code)
		require.EqualValues(t, store.RefundDue, paid.Outcome)
	})
}

// A database that has lost nothing that Redis knows of holds nobody up for long.
func TestRestoredWithNothingMissing(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, w *world) {
		w.sale(10, 0)
		w.backend()
		orders := w.reserve(2)
		w.publish(orders)
		w.settled(2)
		servicetest.Eventually(t, func() bool {
			known, err := lua.HighTide(t.Context(), w.redis, 0)
			return err == nil && known > 0
		})
		w.exec("UPDATE tide SET height = 0")
		w.isHeld()
		servicetest.Eventually(t, func() bool { s := w.snapshot(); return s.State == lua.Open && s.Proven() })
		more := w.reserve(1)
		w.publish(more)
		w.settled(3)
	})
}

// While many backends write, let the tide rise and tell of it, nobody takes another's
// rise for something that was forgotten. Stores that are too slow to answer in time
// are asked again.
func TestManyLetTheTideRise(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, w *world) {
		const backends, orders = 4, 60
		w.sale(backends*orders, 0)
		var all errgroup.Group
		var compared atomic.Int64
		for part := range slices.Chunk(w.reserve(backends*orders), orders) {
			s := w.openStore()
			all.Go(func() error {
				for len(part) > 0 {
					if _, err := s.SaveOrders(t.Context(), part[:1]); err == nil {
						part = part[1:]
					} else if !store.IsTransient(err) {
						return err
					}
					err := tide.Check(t.Context(), tide.Deps{Redis: w.redis, Store: s, Log: discard})
					switch {
					case err == nil:
						compared.Add(1)
					case errors.Is(err, store.ErrBehind):
						return err
					}
				}
				return nil
			})
		}
		require.NoError(t, all.Wait())
		require.Greater(t, compared.Load(), int64(backends*orders/2))
	})
}
