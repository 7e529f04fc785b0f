package reconcile_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/seckill-edge/seckill/internal/order"
	"github.com/seckill-edge/seckill/internal/servicetest"
	"github.com/seckill-edge/seckill/lua"
)

// mortal lets so many commands through and then none: to Redis that is a process
// that was killed there.
type mortal struct {
	life atomic.Int64
	dead atomic.Bool
}

var errDead = errors.New("killed")

func (m *mortal) DialHook(next redis.DialHook) redis.DialHook {
	return func(ctx context.Context, network, addr string) (net.Conn, error) { return next(ctx, network, addr) }
}

func (m *mortal) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if m.life.Add(-1) < 0 {
			m.dead.Store(true)
			cmd.SetErr(errDead)
			return errDead
		}
		return next(ctx, cmd)
	}
}

func (m *mortal) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

// A backend is killed before each of its commands in turn; another one finishes,
// and what it leaves is exactly right. In between nothing is sold.
func TestKilledBetweenAnyTwoSteps(t *testing.T) {
	// Waiting asks again and again, so that later steps have higher numbers.
	lives := []int64{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 12, 20, 50}
	lives = append(lives, -1) // until the proof: see below
	for _, life := range lives {
		t.Run(fmt.Sprint(life), func(t *testing.T) {
			t.Parallel()
			onEachOf(t, life%6 == 0 || life < 0, func(t *testing.T, w *world) {
				w.sale(100, 5, 0)
				sold := w.sold(10, 2)
				left := w.reserve(3, 1) // in the outbox
				wrong(w, sold)
				client := w.client()
				m := &mortal{}
				m.life.Store(life)
				client.AddHook(m)
				if life < 0 {
					m.life.Store(1 << 40)
					client.AddHook(lastStep{m})
				}
				_, first := w.parts(client)
				_, err := first.Rebuild(t.Context(), w.activity, "test")
				require.ErrorIs(t, err, errDead)
				require.True(t, m.dead.Load())
				sells(t, w, false)

				w.backend()
				s := w.proven(lua.Open)
				require.Equal(t, int64(100), s.Available+s.Frozen+s.Sold)
				servicetest.Eventually(t, func() bool { return w.mark(left[2]) == "s" })
				require.Equal(t, lua.Units{Available: 77, Sold: 23}, w.agree())
				sells(t, w, true)
			})
		})
	}
}

// wrong spoils records and counters so that all steps have something to do.
func wrong(w *world, sold []order.Order) {
	for _, o := range sold[:4] {
		require.NoError(w, w.redis.HDel(w.Context(), w.keys().Users, o.UserID).Err())
	}
	require.NoError(w, w.redis.Del(w.Context(), w.keys().Frozen).Err())
}

// sells says whether somebody new gets a unit; he gives it back.
func sells(t *testing.T, w *world, want bool) {
	id, err := order.NewID(time.Now(), zeros{})
	require.NoError(t, err)
	b, err := lua.Reserve(t.Context(), w.redis, w.product, w.snapshot().Epoch, []lua.Request{{OrderID: id, UserID: "somebody new", Quantity: 1}})
	require.NoError(t, err)
	require.Equal(t, want, b.Results[0].Outcome == lua.Reserved, "%v", b.Results[0].Outcome)
}

// lastStep kills at the command that would prove: the script whose state is among
// its arguments.
type lastStep struct{ *mortal }

func (l lastStep) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if args := cmd.Args(); len(args) == 19 && args[11] == "open" {
			l.life.Store(0)
			l.dead.Store(true)
			cmd.SetErr(errDead)
			return errDead
		}
		return next(ctx, cmd)
	}
}
