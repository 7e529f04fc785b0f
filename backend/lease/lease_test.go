package lease

import (
	"context"
	"crypto/rand"
	"log/slog"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/seckill-edge/seckill/internal/servicetest"
	"github.com/seckill-edge/seckill/lua"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(servicetest.Main(m)) }

var ttl = servicetest.Scaled(600 * time.Millisecond)

// onEach runs a test on an embedded Redis, and without -short on a real one too.
func onEach(t *testing.T, test func(t *testing.T, client redis.UniversalClient)) {
	kinds := map[string]func(t *testing.T) string{"embedded": func(t *testing.T) string {
		server := miniredis.RunT(t)
		server.ClockTTL(true)
		return server.Addr()
	}}
	if !testing.Short() {
		kinds["real"] = func(t *testing.T) string { return servicetest.RedisForTest(t).Addr() }
	}
	for name, start := range kinds {
		t.Run(name, func(t *testing.T) {
			client, err := lua.NewClient("redis://"+start(t)+"/0"+servicetest.PatientRedis(), "test")
			require.NoError(t, err)
			t.Cleanup(func() { require.NoError(t, client.Close()) })
			test(t, client)
		})
	}
}

func newLease(t *testing.T, client redis.UniversalClient) *Lease {
	l, err := New(client, "job", ttl, rand.Reader, slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	return l
}

// Holders come and go; never are two at work, and fences only rise.
func TestOneAtATime(t *testing.T) {
	onEach(t, func(t *testing.T, client redis.UniversalClient) {
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		var working, overlaps, turns atomic.Int32
		var last atomic.Int64
		var all sync.WaitGroup
		for range 5 {
			l := newLease(t, client)
			all.Go(func() {
				l.Run(ctx, func(_ context.Context, fence int64) {
					if working.Add(1) > 1 || last.Swap(fence) >= fence {
						overlaps.Add(1)
					}
					turns.Add(1)
					working.Add(-1)
				})
			})
		}
		servicetest.Eventually(t, func() bool { return turns.Load() >= 20 })
		stop()
		all.Wait()
		require.Zero(t, overlaps.Load())
	})
}

func TestLostLeaseEndsTheWork(t *testing.T) {
	onEach(t, func(t *testing.T, client redis.UniversalClient) {
		l := newLease(t, client)
		ctx, stop := context.WithCancel(t.Context())
		started, ended := make(chan int64, 10), make(chan struct{}, 10)
		var running sync.WaitGroup
		running.Go(func() {
			l.Run(ctx, func(ctx context.Context, fence int64) {
				started <- fence
				<-ctx.Done()
				ended <- struct{}{}
			})
		})
		first := <-started
		// It is renewed for longer than it lasts by itself.
		begun := time.Now()
		servicetest.Eventually(t, func() bool { return time.Since(begun) > 2*ttl })
		require.Empty(t, ended)
		// Somebody else has it, for instance after a failover of Redis.
		require.NoError(t, client.Set(t.Context(), l.keys[0], "somebody else", 0).Err())
		<-ended
		require.Equal(t, "somebody else", client.Get(t.Context(), l.keys[0]).Val(), "what is not ours is not given back")
		require.NoError(t, client.Del(t.Context(), l.keys[0]).Err())
		require.Greater(t, <-started, first)
		stop()
		<-ended
		running.Wait()
		require.Zero(t, client.Exists(t.Context(), l.keys[0]).Val(), "given back at the end")
	})
}

// Whatever somebody has left in the lease's keys, it is taken a while later and
// renewed.
func TestSpoiltKeys(t *testing.T) {
	spoils := map[string]func(ctx context.Context, c redis.Cmdable, keys []string) error{
		"no end": func(ctx context.Context, c redis.Cmdable, keys []string) error {
			return c.Set(ctx, keys[0], "a dead one", 0).Err()
		},
		"the clock went back": func(ctx context.Context, c redis.Cmdable, keys []string) error {
			return c.Set(ctx, keys[0], "a dead one", time.Hour).Err()
		},
		"lease a list": func(ctx context.Context, c redis.Cmdable, keys []string) error {
			return c.RPush(ctx, keys[0], "x").Err()
		},
		"fence a list": func(ctx context.Context, c redis.Cmdable, keys []string) error {
			return c.RPush(ctx, keys[1], "x").Err()
		},
		"fence letters": func(ctx context.Context, c redis.Cmdable, keys []string) error {
			return c.Set(ctx, keys[1], "many", 0).Err()
		},
		"fence at its end": func(ctx context.Context, c redis.Cmdable, keys []string) error {
			return c.Set(ctx, keys[1], "9223372036854775807", 0).Err()
		},
	}
	for name, spoil := range spoils {
		t.Run(name, func(t *testing.T) {
			onEach(t, func(t *testing.T, client redis.UniversalClient) {
				l := newLease(t, client)
				require.NoError(t, spoil(t.Context(), client, l.keys))
				ctx, stop := context.WithTimeout(t.Context(), servicetest.Patience())
				defer stop()
				worked := false
				l.Run(ctx, func(ctx context.Context, fence int64) {
					require.Positive(t, fence)
					again, err := l.acquire(ctx)
					require.NoError(t, err)
					require.Equal(t, fence, again, "a repeat by its holder")
					kept, err := l.renew(ctx)
					require.NoError(t, err)
					require.True(t, kept)
					worked = true
					stop()
				})
				require.True(t, worked, "nobody works for ever")
			})
		})
	}
}
