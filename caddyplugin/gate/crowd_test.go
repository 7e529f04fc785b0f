package gate

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/seckill-edge/seckill/internal/servicetest"
	"github.com/seckill-edge/seckill/lua"
)

// spoilt is what becomes of the next reservations: the call is answered slowly, is
// never sent, or is carried out and its answer lost.
type spoilt int32

const (
	wellDone spoilt = iota
	slowly
	unsent
	unanswered
)

// spoiltRedis spoils the calls that reserve.
type spoiltRedis struct {
	redis.UniversalClient
	how atomic.Int32
}

func (r *spoiltRedis) EvalSha(ctx context.Context, sha string, keys []string, args ...any) *redis.Cmd {
	how := spoilt(r.how.Load())
	if len(args) < 5 || how == wellDone { // the epoch, until when, and three of each request
		return r.UniversalClient.EvalSha(ctx, sha, keys, args...)
	}
	failed := redis.NewCmd(ctx)
	switch how {
	case unsent:
		failed.SetErr(&net.OpError{Op: "dial", Err: errors.New("connection refused")})
		return failed
	case unanswered:
		r.UniversalClient.EvalSha(ctx, sha, keys, args...)
		failed.SetErr(errors.New("i/o timeout"))
		return failed
	default:
		select {
		case <-time.After(50 * time.Millisecond):
		case <-ctx.Done():
		}
		return r.UniversalClient.EvalSha(ctx, sha, keys, args...)
	}
}

// Whatever becomes of clicks and calls, everybody leaves the crowd again, and while
// units are left the sale goes on: nobody is surplus where nobody else is.
func TestTheCrowdGoesHome(t *testing.T) {
	eachRedis(t, func(t *testing.T, url string) {
		const seed = 1
		r := rand.New(rand.NewPCG(seed, 0))
		var edges [2]*bench
		var ways [2]*spoiltRedis
		for i := range edges {
			ways[i] = &spoiltRedis{}
			edges[i] = setup(t, url, func(c *Config, d *Deps) {
				c.Surplus, c.Waiting, c.ReserveTimeout = 2, 40, servicetest.Scaled(30*time.Millisecond)
				ways[i].UniversalClient, d.Redis = d.Redis, ways[i]
			})
		}
		edges[0].preheat(t, 40, func(a *lua.Activity) { a.Limit = 5 })
		one := func(i int, user string) Decision { return edges[i].click(t, user) }
		seen := map[lua.Outcome]int{}
		for round := range 12 {
			ways[round%2].how.Store(int32(r.IntN(4)))
			var mu sync.Mutex
			var clicks sync.WaitGroup
			for n := range 600 {
				c := Click{ProductID: product, UserID: fmt.Sprintf("%d-%d", round, n%250), Quantity: 1 + r.IntN(5)}
				if r.IntN(4) == 0 {
					c.Key = "again"
				}
				ctx, hangUp := context.WithCancel(t.Context())
				if r.IntN(8) == 0 {
					hangUp()
				}
				clicks.Go(func() {
					defer hangUp()
					d := edges[n%2].Reserve(ctx, c)
					mu.Lock()
					defer mu.Unlock()
					seen[d.Outcome]++
				})
			}
			clicks.Wait()
			for i, b := range edges {
				ways[i].how.Store(int32(wellDone))
				for _, s := range b.sales.all() {
					servicetest.Eventually(t, func() bool { return s.crowd.coming.Load() == 0 },
						"seed %d round %d edge %d: %d are still on their way", seed, round, i, s.crowd.coming.Load())
				}
			}
			giveBack(t, edges[0])
			for i := range edges {
				servicetest.Eventually(t, func() bool {
					d := one(i, fmt.Sprintf("%d-last-%d", round, i))
					require.NotEqual(t, lua.Crowded, d.Outcome, "seed %d round %d", seed, round)
					return d.Outcome == lua.Reserved || d.Outcome == lua.AlreadyBought
				}, "seed %d round %d edge %d", seed, round, i)
			}
		}
		for _, o := range []lua.Outcome{lua.Reserved, lua.SoldOut, lua.Crowded, lua.Unavailable} {
			require.Positive(t, seen[o], "%v: %v", o, seen)
		}
		edges[0].snapshot(t)
	})
}

// giveBack cancels all orders there are.
func giveBack(t *testing.T, b *bench) {
	t.Helper()
	records, err := b.redis.HGetAll(t.Context(), lua.KeysOf(product).Users).Result()
	require.NoError(t, err)
	var moves []lua.Move
	for user, text := range records {
		entries, err := lua.ParseRecord(text)
		require.NoError(t, err)
		for _, e := range entries {
			if e.Mark == lua.MarkQueued {
				moves = append(moves, lua.Move{UserID: user, OrderID: e.OrderID})
			}
		}
	}
	_, err = lua.Release(t.Context(), b.redis, product, lua.MarkCancelled, moves)
	require.NoError(t, err)
	require.EqualValues(t, 40, b.snapshot(t).Available)
}
