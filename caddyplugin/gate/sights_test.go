package gate

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/seckill-edge/seckill/internal/servicetest"
	"github.com/seckill-edge/seckill/lua"
)

// frozenRedis answers no script while it is frozen.
type frozenRedis struct {
	redis.UniversalClient
	frozen atomic.Bool
	calls  atomic.Int64
}

func (r *frozenRedis) EvalSha(ctx context.Context, sha string, keys []string, args ...any) *redis.Cmd {
	r.calls.Add(1)
	if !r.frozen.Load() {
		return r.UniversalClient.EvalSha(ctx, sha, keys, args...)
	}
	<-ctx.Done()
	failed := redis.NewCmd(ctx)
	failed.SetErr(ctx.Err())
	return failed
}

// While Redis does not answer nobody but the first waits for a product that this edge
// does not know, few ask for it, and the log has one line of it; and soon after
// Redis answers again everybody is told the truth.
func TestNobodyWaitsToSeeWhatCannotBeSeen(t *testing.T) {
	eachRedis(t, func(t *testing.T, url string) {
		var r frozenRedis
		var mu sync.Mutex
		var log bytes.Buffer
		b := setup(t, url, func(_ *Config, d *Deps) {
			r.UniversalClient, d.Redis = d.Redis, &r
			d.Log = slog.New(slog.NewTextHandler(lockedWriter{&mu, &log}, nil))
		})
		r.frozen.Store(true)
		_, outcome := b.View(t.Context(), "1002")
		require.Equal(t, lua.Unavailable, outcome)
		begin, before := time.Now(), r.calls.Load()
		for range 1000 {
			require.Equal(t, lua.Unavailable, b.Reserve(t.Context(), Click{ProductID: "1002", UserID: "alice", Quantity: 1}).Outcome)
		}
		for i := range 1000 {
			_, outcome = b.View(t.Context(), fmt.Sprintf("unknown-%d", i))
			require.Equal(t, lua.Unavailable, outcome)
		}
		took := time.Since(begin)
		require.Less(t, took, 100*callTimeout, "a thousand that wait take ten times as long")
		require.LessOrEqual(t, r.calls.Load()-before, 1+int64(took/lookShut))

		r.frozen.Store(false)
		servicetest.Eventually(t, func() bool {
			_, outcome := b.View(t.Context(), "1002")
			return outcome == lua.NoProduct
		})
		mu.Lock()
		defer mu.Unlock()
		require.Equal(t, 1, bytes.Count(log.Bytes(), []byte("cannot sell a product")), log.String())
	})
}

// lockedWriter may be written to from anywhere.
type lockedWriter struct {
	mu *sync.Mutex
	to *bytes.Buffer
}

func (w lockedWriter) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.to.Write(p)
}
