package gate

import (
	"context"
	"net/netip"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/seckill-edge/seckill/caddyplugin/limit"
	"github.com/seckill-edge/seckill/internal/servicetest"
	"github.com/seckill-edge/seckill/lua"
)

func limited(levels map[limit.Level]limit.Rate) *limit.Limits {
	c := limit.Config{IPv4Bits: 32, IPv6Bits: 64}
	for level, rate := range levels {
		c.Limits[level] = &limit.Limit{Rate: rate}
	}
	l := limit.New()
	l.Use(c, time.Now())
	return l
}

func perHour(events int) limit.Rate { return limit.Rate{Events: events, Per: time.Hour, Burst: events} }

func with(l *limit.Limits) func(*Config, *Deps) { return func(_ *Config, d *Deps) { d.Limits = l } }

func TestEnter(t *testing.T) {
	eachRedis(t, func(t *testing.T, url string) {
		b := setup(t, url, with(limited(map[limit.Level]limit.Rate{limit.IP: perHour(2), limit.User: perHour(1)})))
		addr := netip.MustParseAddr("192.0.2.1")
		require.True(t, b.Enter(addr).In())
		require.True(t, b.Enter(addr).In())
		v := b.Enter(addr)
		require.Equal(t, limit.IP, v.Level)
		require.True(t, v.Refused)
		require.True(t, b.Enter(netip.Addr{}).In())
		require.True(t, b.EnterUser("alice").In())
		require.Equal(t, limit.User, b.EnterUser("alice").Level)
		require.Equal(t, 2, b.Stats().Limits.Addresses)
		require.EqualValues(t, 1, b.Stats().Limits.Levels[limit.User].Refused)
	})
}

// The limit of a product counts what would go to Redis, and nothing else.
func TestActivityLimit(t *testing.T) {
	eachRedis(t, func(t *testing.T, url string) {
		b := setup(t, url, with(limited(map[limit.Level]limit.Rate{limit.Activity: perHour(2)})))
		b.preheat(t, 2, func(a *lua.Activity) { a.Limit = 2 })
		require.Equal(t, lua.BadArguments, b.Reserve(t.Context(), Click{ProductID: product, UserID: "a", Quantity: 3}).Outcome)
		require.Equal(t, lua.NoProduct, b.Reserve(t.Context(), Click{ProductID: "other", UserID: "a", Quantity: 1}).Outcome)
		require.Equal(t, lua.Reserved, b.click(t, "a").Outcome)
		require.Equal(t, lua.AlreadyBought, b.Reserve(t.Context(), Click{ProductID: product, UserID: "a", Quantity: 2}).Outcome)
		d := b.click(t, "b")
		require.Equal(t, lua.Limited, d.Outcome)
		require.Equal(t, limit.Activity, d.Limit.Level)
		require.GreaterOrEqual(t, d.RetryAfter, 1700*time.Second)
		require.Equal(t, 1, b.Stats().Limits.Products, "made-up products are not kept apart")
		require.EqualValues(t, 1, b.snapshot(t).Available)
		require.EqualValues(t, 1, b.Stats().Outcomes[lua.Limited])
	})
}

// Edges on one Redis share a limit; and each other's purchases of one product.
func TestSharedLimits(t *testing.T) {
	eachRedis(t, func(t *testing.T, url string) {
		limits := func() func(*Config, *Deps) {
			return with(limited(map[limit.Level]limit.Rate{limit.SharedTotal: perHour(40), limit.SharedActivity: perHour(20)}))
		}
		edges := []*bench{setup(t, url, limits()), setup(t, url, limits())}
		edges[0].preheat(t, 1000)
		let, bought := 0, 0
		for i := range 400 {
			b := edges[i%2]
			if b.Enter(netip.Addr{}).In() {
				let++
			}
			d := b.click(t, strconv.Itoa(i))
			switch d.Outcome {
			case lua.Reserved:
				bought++
			case lua.Limited:
				require.Equal(t, limit.SharedActivity, d.Limit.Level)
			default:
				require.Fail(t, "neither sold nor limited", "%v", d)
			}
		}
		const credit = 2 * 16
		require.GreaterOrEqual(t, let, 40/2)
		require.LessOrEqual(t, let, 40+credit)
		require.GreaterOrEqual(t, bought, 20/2)
		require.LessOrEqual(t, bought, 20+credit)
		require.Zero(t, edges[0].Stats().Leases.Failures)
		require.Zero(t, edges[0].Stats().Leases.Away)
		require.Less(t, edges[0].Stats().Leases.Calls, uint64(100), "no call pays a round trip")
	})
}

// Without Redis an edge goes by the shared limit alone, and says so.
func TestSharedLimitWithoutRedis(t *testing.T) {
	url, kill, restart := stoppable(t)
	b := setup(t, url, with(limited(map[limit.Level]limit.Rate{limit.SharedTotal: perHour(30)})))
	b.Enter(netip.Addr{})
	servicetest.Eventually(t, func() bool { return b.Stats().Leases.Calls == 1 })
	kill()
	let := 0
	servicetest.Eventually(t, func() bool {
		if b.Enter(netip.Addr{}).In() {
			let++
		}
		return b.Stats().Leases.Away == 1
	})
	for range 200 {
		if b.Enter(netip.Addr{}).In() {
			let++
		}
	}
	require.GreaterOrEqual(t, let, 16, "a lease")
	require.LessOrEqual(t, let, 30-1, "its burst, of which the first call has taken one")
	require.Positive(t, b.Stats().Leases.Alone)
	restart()
	servicetest.Eventually(t, func() bool { b.Enter(netip.Addr{}); return b.Stats().Leases.Away == 0 })
}

// stoppable is a Redis that can be killed: in -short one inside this process.
func stoppable(t *testing.T) (url string, kill, restart func()) {
	if testing.Short() {
		m := miniredis.RunT(t)
		return "redis://" + m.Addr(), m.Close, func() { require.NoError(t, m.Restart()) }
	}
	r := servicetest.RedisForTest(t)
	return r.URL(), func() { require.NoError(t, r.Kill()) }, func() { require.NoError(t, r.Restart(context.Background())) }
}

// What is more than the units left can serve is told to come again, not that it is
// sold out; nobody is told so while one call takes all; and every unit is sold.
func TestSurplusIsRefused(t *testing.T) {
	eachRedis(t, func(t *testing.T, url string) {
		var calls slowRedis
		b := setup(t, url, func(c *Config, d *Deps) {
			c.Surplus = 4
			calls.UniversalClient = d.Redis
			d.Redis = &calls
		})
		const units = 50
		b.preheat(t, units)
		require.Equal(t, lua.Reserved, b.click(t, "first").Outcome)
		calls.hold()
		decisions := make([]Decision, 1000)
		var wg sync.WaitGroup
		for i := range decisions {
			wg.Go(func() { decisions[i] = b.click(t, "buyer-"+strconv.Itoa(i)) })
		}
		most := uint64(4 * (units - 1))
		servicetest.Eventually(t, func() bool { return b.Stats().Outcomes[lua.Crowded] == 1000-most })
		calls.release()
		wg.Wait()
		require.Equal(t, map[lua.Outcome]int{
			lua.Reserved: units - 1, lua.SoldOut: int(most) - units + 1, lua.Crowded: int(1000 - most),
		}, count(decisions))
		for _, d := range decisions {
			if d.Outcome == lua.Crowded {
				require.Contains(t, []time.Duration{time.Second, 2 * time.Second}, d.RetryAfter)
			}
		}
		require.Zero(t, b.snapshot(t).Available)
		require.Zero(t, b.sales.all()[0].crowd.coming.Load(), "nobody is on his way any more")
	})
}

// slowRedis answers no reservation while it is held.
type slowRedis struct {
	redis.UniversalClient
	mu sync.RWMutex
}

func (r *slowRedis) hold()    { r.mu.Lock() }
func (r *slowRedis) release() { r.mu.Unlock() }

func (r *slowRedis) EvalSha(ctx context.Context, sha string, keys []string, args ...any) *redis.Cmd {
	if len(args) >= 4 { // the epoch, and three of each request
		r.mu.RLock()
		defer r.mu.RUnlock()
		ctx = context.WithoutCancel(ctx)
	}
	return r.UniversalClient.EvalSha(ctx, sha, keys, args...)
}

func TestCrowd(t *testing.T) {
	at := time.Unix(1_794_000_000, 0)
	var c crowd
	c.learn(100, at)
	join := func(units, surplus int64) bool {
		_, ok := c.join(units, surplus)
		return ok
	}
	for range 8 {
		require.True(t, join(100, 8))
	}
	require.False(t, join(1, 8))
	require.True(t, join(1, -1), "no bound")
	require.True(t, join(1, 9))
	c.leave(2)
	c.learn(50, at.Add(-time.Second))
	require.EqualValues(t, 100, c.left.Load(), "an older word is late")
	c.learn(-1, at.Add(time.Second))
	require.EqualValues(t, 100, c.left.Load(), "what cannot be read says nothing")
	c.learn(60, at.Add(-time.Hour))
	require.EqualValues(t, 60, c.left.Load(), "the clock was set back")
	c.leave(800)
	require.Zero(t, c.coming.Load())

	c.learn(1, at)
	for range batchMax {
		require.True(t, join(999, 8), "who asks for more than is left keeps nobody out: one call takes so many")
	}
	require.False(t, join(1, 8))
	c.leave(batchMax)
	require.Zero(t, c.coming.Load())
	c.learn(999, at)
	weight, ok := c.join(999, 1)
	require.True(t, ok)
	c.learn(1, at.Add(time.Second))
	c.leave(weight)
	require.Zero(t, c.coming.Load(), "whatever is left by then")
}
