package reconcile_test

import (
	"context"
	"sync/atomic"
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/seckill-edge/seckill/backend/compare"
	"github.com/seckill-edge/seckill/lua"
)

// meanwhile does something once, when a reconciler begins to go through the buyers.
type meanwhile struct {
	redis.Hook
	done atomic.Bool
	do   func()
}

func (m *meanwhile) DialHook(next redis.DialHook) redis.DialHook { return next }

func (m *meanwhile) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

func (m *meanwhile) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if cmd.Name() == "hscan" && m.done.CompareAndSwap(false, true) {
			m.do()
		}
		return next(ctx, cmd)
	}
}

// A reconciler beside a backend that proves the stock says so, and does not prove a
// second time what the backend has proven by the end.
func TestReconcileBesideAProof(t *testing.T) {
	onEach(t, func(t *testing.T, w *world) {
		w.sale(100, 1, 0)
		w.sold(10, 1)
		_, backend := w.parts(w.client())
		require.NoError(t, w.redis.HSet(t.Context(), w.keys().Activity, "run", "another server").Err())
		require.False(t, w.snapshot().Proven())
		mine, err := lua.NoteFence(t.Context(), w.redis, w.product, backend.Owner, "test; waiting for edges")
		require.NoError(t, err)
		require.True(t, mine)

		r, _ := w.parts(w.client())
		report, err := r.Reconcile(t.Context(), w.activity, true)
		require.NoError(t, err)
		require.Equal(t, 1, report.Counts[compare.Unproven])
		require.Equal(t, "a backend is proving it now; wait and ask again: test; waiting for edges", report.Note)
		require.False(t, report.Clean())

		var epoch int64
		client := w.client()
		client.AddHook(&meanwhile{do: func() {
			proof, err := backend.Rebuild(t.Context(), w.activity, "test")
			require.NoError(t, err)
			epoch = proof.Epoch
		}})
		r, _ = w.parts(client)
		report, err = r.Reconcile(t.Context(), w.activity, false)
		require.NoError(t, err)
		require.True(t, report.Clean())
		require.Nil(t, report.Proof)
		require.Equal(t, "a backend has proven the stock meanwhile", report.Note)
		require.Equal(t, epoch, w.snapshot().Epoch, "proven once")
	})
}
