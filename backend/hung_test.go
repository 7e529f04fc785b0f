package backend_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/seckill-edge/seckill/backend/activities"
	"github.com/seckill-edge/seckill/internal/queue"
	"github.com/seckill-edge/seckill/internal/servicetest"
)

// hung is a broker that does not answer when it is asked what waits.
type hung struct{ queue.Broker }

func (hung) Depth(ctx context.Context) (waiting, dead int, err error) {
	<-ctx.Done()
	return 0, 0, ctx.Err()
}

// While the broker hangs a scrape ends all the same, shows what Redis says and leaves
// the drift out; an audit says what is certain.
func TestFiguresWhileTheBrokerHangs(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, w *world) {
		w.sale(10, 0)
		real := w.broker.Broker
		w.broker.Broker = hung{real}
		b, _ := w.backend()
		w.publish(w.reserve(3))
		servicetest.Eventually(t, func() bool { return w.snapshot().Sold == 3 })

		figure := func(name string) string {
			return metric(t, b, fmt.Sprintf("seckill_activity_%s_units{product=%q}", name, w.product))
		}
		servicetest.Eventually(t, func() bool { return figure("available") == "7" })
		servicetest.Eventually(t, func() bool { return figure("sold") == "3" })
		require.Empty(t, figure("drift"))

		answer := get(t, b, "/api/activities/"+w.product+"/audit")
		require.Equal(t, http.StatusOK, answer.Code, answer.Body)
		var audit struct {
			Sold, Drift int64
			QueueKnown  bool `json:"queue_known"`
		}
		require.NoError(t, json.Unmarshal(answer.Body.Bytes(), &audit))
		require.Equal(t, int64(3), audit.Sold)
		require.Zero(t, audit.Drift)
		require.False(t, audit.QueueKnown)
	})
}

// While SQL is locked, what the backends have in hand is no drift, whoever asks.
func TestAuditWhileStoringWaits(t *testing.T) {
	t.Parallel()
	for _, k := range kinds() {
		if k.name != "real" { // a lock of a single row
			continue
		}
		t.Run(k.name, func(t *testing.T) {
			w := k.make(t)
			a := w.sale(100, 0)
			first, _ := w.backend()
			second, _ := w.backend()
			lock, err := w.raw.BeginTx(t.Context(), nil)
			require.NoError(t, err)
			_, err = lock.ExecContext(t.Context(), "SELECT id FROM activities WHERE id = ? FOR UPDATE", a.ID)
			require.NoError(t, err)
			w.publish(w.reserve(50))
			servicetest.Eventually(t, w.drained)
			for _, s := range []*activities.Service{w.service(), first.Activities(), second.Activities()} {
				audit, err := s.Audit(t.Context(), w.product)
				require.NoError(t, err)
				require.Zero(t, audit.Drift, "%+v", audit)
				require.Equal(t, int64(50), audit.Frozen)
				require.Positive(t, audit.Queued)
			}
			require.NoError(t, lock.Rollback())
			w.settled(50)
		})
	}
}
