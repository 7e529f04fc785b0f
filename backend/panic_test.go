package backend_test

import (
	"context"
	"crypto/rand"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/seckill-edge/seckill/backend"
	"github.com/seckill-edge/seckill/backend/store"
	"github.com/seckill-edge/seckill/internal/order"
	"github.com/seckill-edge/seckill/internal/queue"
	"github.com/seckill-edge/seckill/internal/servicetest"
	"github.com/seckill-edge/seckill/lua"
)

// planted is a Redis client in which somebody has made a mistake: it panics while all
// is set over every key but the lease and the tide, and while tide is set over that.
type planted struct {
	redis.Hook
	all, tide atomic.Bool
}

func (p *planted) DialHook(next redis.DialHook) redis.DialHook { return next }

func (p *planted) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

func (p *planted) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		args := fmt.Sprint(cmd.Args()...)
		switch tide := strings.Contains(args, "seckill:tide"); {
		case tide && p.tide.Load():
			panic("planted")
		case tide, strings.Contains(args, "seckill:lease:"):
		case p.all.Load() && strings.Contains(args, "seckill:"):
			panic("planted")
		}
		return next(ctx, cmd)
	}
}

// backendWithMistakes is a backend that panics as p says, and whose database panics
// while unwritable is set.
func (w *world) backendWithMistakes(p *planted, unwritable *atomic.Bool) *backend.Backend {
	client, err := lua.NewClient("redis://"+w.line.addr()+"/0"+patience, "backend-under-test")
	require.NoError(w, err)
	client.AddHook(p)
	s, err := store.New(w.Context(), w.database, nil, store.WithClock(func() time.Time {
		if unwritable.Load() {
			panic("planted")
		}
		return time.Now()
	}))
	require.NoError(w, err)
	b, err := backend.New(backend.Config{}, backend.Deps{
		Redis: client, Broker: w.broker, Store: s, Now: time.Now, Random: rand.Reader, Log: slog.New(slog.NewTextHandler(w.Output(), nil)),
	})
	require.NoError(w, err)
	require.NoError(w, b.Start(w.Context()))
	w.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), soon)
		defer cancel()
		b.Stop(ctx)
		require.NoError(w, client.Close())
		require.NoError(w, s.Close())
	})
	return b
}

func panics(t *testing.T, b *backend.Backend, duty string) string {
	return metric(t, b, fmt.Sprintf("seckill_backend_panics_total{duty=%q}", duty))
}

// A message over which a backend panics ends among the dead letters, once, and
// harms neither its own good orders nor its neighbours.
func TestPanicOverOneMessage(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, w *world) {
		w.sale(10, 0)
		var made atomic.Bool
		w.broker.mistake = func() {
			if !made.Swap(true) {
				panic("planted")
			}
		}
		b := w.backendWithMistakes(&planted{}, &atomic.Bool{})
		orders := w.reserve(3)
		body := order.AppendMessage(nil, orders[:1])
		id, err := order.NewID(time.Now(), rand.Reader)
		require.NoError(t, err)
		body = fmt.Appendf(body, "\n%s\tsomebody\tmany", id)
		w.send(queue.Message{ID: "bad", Body: body})
		w.publish(orders[1:])
		require.NoError(t, lua.Confirm(t.Context(), w.redis, w.product, []string{orders[0].ID}))
		w.settled(3)
		servicetest.Eventually(t, w.drained)
		_, dead, err := w.broker.Depth(t.Context())
		require.NoError(t, err)
		require.Equal(t, 1, dead)
		require.Equal(t, "1", panics(t, b, "consume"))
		require.Len(t, w.broker.saw(queue.Dead), 1)
	})
}

// Orders over which the storing panics are put off like those that the database
// refuses, and stored when the mistake is mended.
func TestPanicWhileStoring(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, w *world) {
		w.sale(10, 0)
		unwritable := &atomic.Bool{}
		unwritable.Store(true)
		b := w.backendWithMistakes(&planted{}, unwritable)
		orders := w.reserve(3)
		w.publish(orders)
		servicetest.Eventually(t, func() bool { return len(w.broker.saw(queue.Retry)) == 3 })
		unwritable.Store(false)
		w.settled(3)
		require.Empty(t, w.broker.saw(queue.Dead))
		require.NotEqual(t, "0", panics(t, b, "consume"))
	})
}

// Every pass of every duty panics for a while; then all goes on.
func TestPanicsOfEveryDuty(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, w *world) {
		w.sale(10, 0)
		p := &planted{}
		p.all.Store(true)
		p.tide.Store(true)
		b := w.backendWithMistakes(p, &atomic.Bool{})
		orders := w.reserve(3)
		// Before the tide is known nobody begins with the others.
		servicetest.Eventually(t, func() bool { return panics(t, b, "tide") > "0" })
		p.tide.Store(false)
		for _, duty := range []string{"fence", "promise", "relay", "presence"} {
			servicetest.Eventually(t, func() bool { return panics(t, b, duty) > "0" }, duty)
		}
		w.publish(orders[:1]) // the settler falls over it
		servicetest.Eventually(t, func() bool { return panics(t, b, "settle") > "0" })
		p.all.Store(false)
		w.settled(3) // what is left of it, relay and reconciler find
	})
}

// A backend that panics over its last words stops all the same.
func TestPanicWhileStopping(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, w *world) {
		p := &planted{}
		b := w.backendWithMistakes(p, &atomic.Bool{})
		p.all.Store(true)
		p.tide.Store(true)
		ctx, cancel := context.WithTimeout(t.Context(), soon)
		defer cancel()
		b.Stop(ctx)
		require.NoError(t, ctx.Err())
	})
}
