package reconcile_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/seckill-edge/seckill/internal/order"
	"github.com/seckill-edge/seckill/internal/servicetest"
	"github.com/seckill-edge/seckill/lua"
)

// Redis loses everything, or may have forgotten something, while the total is being
// changed: the stock is proven, the change comes to its end, and the stores agree.
func TestRebuildWhileTheTotalChanges(t *testing.T) {
	losses := map[string]func(w *world){
		"all": func(w *world) { require.NoError(w, w.redis.FlushAll(w.Context()).Err()) },
		"a server": func(w *world) {
			require.NoError(w, w.redis.HSet(w.Context(), w.keys().Activity, "run", "another").Err())
		},
	}
	for _, tc := range []struct {
		name    string
		to      int64
		inRedis bool
	}{
		{"add, noted", 150, false}, {"add, in Redis", 150, true}, {"withdraw, noted", 60, false}, {"withdraw, in Redis", 60, true},
	} {
		for name, lose := range losses {
			t.Run(tc.name+", loses "+name, func(t *testing.T) {
				t.Parallel()
				onEach(t, func(t *testing.T, w *world) {
					w.sale(100, 1, 0)
					w.sold(20, 1)
					a, err := w.store.ChangeTotal(t.Context(), w.activity.ID, 100, tc.to)
					require.NoError(t, err)
					if tc.inRedis {
						_, err := lua.Resize(t.Context(), w.redis, w.product, a.ID, a.Changes, tc.to)
						require.NoError(t, err)
					}
					lose(w)
					w.backend()
					servicetest.Eventually(t, func() bool {
						a, err := w.store.Activity(t.Context(), w.activity.ID)
						return err == nil && a.Target == 0 && a.Total == tc.to
					})
					s := w.proven(lua.Open)
					require.Equal(t, tc.to, s.Total)
					require.Equal(t, lua.Units{Available: tc.to - 20, Sold: 20}, w.agree())
				})
			})
		}
	}
}

// Who inspects with what he has read of SQL before a change finds nothing wrong.
func TestInspectWhileTheTotalChanges(t *testing.T) {
	onEach(t, func(t *testing.T, w *world) {
		w.sale(100, 1, 0)
		w.sold(20, 1)
		r, _ := w.parts(w.redis)
		clean := func() {
			t.Helper()
			report, err := r.Inspect(t.Context(), w.activity)
			require.NoError(t, err)
			require.Empty(t, report.Findings)
		}
		for _, to := range []int64{150, 60} {
			a, err := w.store.Activity(t.Context(), w.activity.ID)
			require.NoError(t, err)
			a, err = w.store.ChangeTotal(t.Context(), a.ID, a.Total, to)
			require.NoError(t, err)
			clean()
			_, err = lua.Resize(t.Context(), w.redis, w.product, a.ID, a.Changes, to)
			require.NoError(t, err)
			clean()
			require.NoError(t, w.store.EndChange(t.Context(), a.ID, a.Changes, true))
			clean()
		}
	})
}

// SQL was restored from before a change that Redis has: SQL is right.
func TestRebuildAfterAnOlderTotal(t *testing.T) {
	onEach(t, func(t *testing.T, w *world) {
		w.sale(100, 1, 0)
		w.sold(20, 1)
		_, err := lua.Resize(t.Context(), w.redis, w.product, w.activity.ID, 1, 150)
		require.NoError(t, err)
		require.NoError(t, w.redis.HSet(t.Context(), w.keys().Activity, "run", "another").Err())
		w.backend()
		require.Equal(t, int64(100), w.proven(lua.Open).Total)
		require.Equal(t, lua.Units{Available: 80, Sold: 20}, w.agree())
	})
}

// An archived activity whose keys are gone is brought back by nobody.
func TestArchivedStaysForgotten(t *testing.T) {
	onEach(t, func(t *testing.T, w *world) {
		w.sale(100, 1, 0)
		orders := w.sold(20, 1)
		_, err := w.service().Close(t.Context(), w.product)
		require.NoError(t, err)
		w.backend()
		servicetest.Eventually(t, func() bool {
			a, err := w.store.Activity(t.Context(), w.activity.ID)
			return err == nil && !a.ArchivedAt.IsZero()
		})
		require.NoError(t, w.redis.FlushAll(t.Context()).Err())
		require.Zero(t, w.agree())
		exists, err := w.redis.Exists(t.Context(), w.keys().Activity).Result()
		require.NoError(t, err)
		require.Zero(t, exists)
		row, err := w.store.Order(t.Context(), orders[0].ID)
		require.NoError(t, err)
		require.Equal(t, order.Created, row.State)
	})
}
