package backend_test

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/seckill-edge/seckill/internal/queue"
	"github.com/seckill-edge/seckill/internal/servicetest"
)

// Dead letters stop nothing, and whoever looks is told of them.
func TestDeadLettersAreAWarning(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, w *world) {
		b, _ := w.backend()
		for n, want := range []string{"1 dead letter: seckilld dead list", "2 dead letters: seckilld dead list"} {
			w.send(queue.Message{Body: fmt.Append(nil, "noise ", n)})
			var body struct {
				Ready    bool
				Warnings []string
				Why      map[string]string
			}
			servicetest.Eventually(t, func() bool {
				return json.Unmarshal(get(t, b, "/readyz").Body.Bytes(), &body) == nil && body.Ready && body.Why["dead_letters"] == want
			})
			require.Contains(t, body.Warnings, "dead_letters")
		}
	})
}

// A database without our tables is not one that is away.
func TestMissingSchemaIsNamed(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, w *world) {
		_, err := w.raw.ExecContext(t.Context(), "DROP TABLE payments")
		require.NoError(t, err)
		for _, table := range []string{"orders", "activities", "goose_db_version"} {
			_, err := w.raw.ExecContext(t.Context(), "DROP TABLE IF EXISTS "+table)
			require.NoError(t, err)
		}
		b, _ := w.backend()
		servicetest.Eventually(t, func() bool {
			var body struct {
				NotReady []string `json:"not_ready"`
				Why      map[string]string
			}
			return json.Unmarshal(get(t, b, "/readyz").Body.Bytes(), &body) == nil && len(body.NotReady) == 1 &&
				body.NotReady[0] == "schema" && body.Why["schema"] != ""
		})
		require.Contains(t, get(t, b, "/readyz").Body.String(), "run `seckilld migrate`")
	})
}

// While SQL is away a scrape shows what Redis has, without a drift.
func TestStocksAreShownWithoutSQL(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, w *world) {
		w.sale(10, 0)
		b, _ := w.backend()
		label := fmt.Sprintf("{product=%q}", w.product)
		servicetest.Eventually(t, func() bool { return metric(t, b, "seckill_activity_drift_units"+label) == "0" })
		_, err := w.raw.ExecContext(t.Context(), "ALTER TABLE activities RENAME TO elsewhere") // SQLite can be locked against writers only
		require.NoError(t, err)
		w.reserve(3)
		servicetest.Eventually(t, func() bool { return metric(t, b, "seckill_activity_frozen_units"+label) == "3" })
		require.Equal(t, "10", shown(t, b, "seckill_activity_total_units"+label))
		require.Empty(t, metric(t, b, "seckill_activity_drift_units"+label))
	})
}
