package gate

import (
	"context"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/seckill-edge/seckill/internal/order"
	"github.com/seckill-edge/seckill/internal/servicetest"
	"github.com/seckill-edge/seckill/lua"
)

// sellOut lets "a" take the last unit and give it back when back is
// called.
func (b *bench) sellOut(t *testing.T) (back func()) {
	t.Helper()
	b.preheat(t, 1)
	var d Decision
	servicetest.Eventually(t, func() bool { d = b.click(t, "a"); return d.Outcome == lua.Reserved })
	require.Equal(t, lua.SoldOut, b.click(t, "b").Outcome)
	return func() {
		_, err := lua.Release(t.Context(), b.redis, product, lua.MarkExpired, []lua.Move{{UserID: "a", OrderID: d.OrderID}})
		require.NoError(t, err)
	}
}

// TestReturnIsHeard: a sold out edge sells what comes back before it looks by itself.
func TestReturnIsHeard(t *testing.T) {
	eachRedis(t, func(t *testing.T, url string) {
		var clock stopwatch
		b := setup(t, url, clock.on, func(c *Config, _ *Deps) { c.lookEvery = time.Hour })
		back := b.sellOut(t)
		servicetest.Eventually(t, func() bool {
			n, err := b.redis.PubSubNumSub(t.Context(), lua.Changes).Result()
			return err == nil && n[lua.Changes] == 1
		})
		clock.stop()
		back()
		servicetest.Eventually(t, func() bool { return b.click(t, "b").Outcome == lua.Reserved })
	})
}

func (b *bench) lastLook() time.Time { return b.sales.all()[0].view.Load().Now }

// deaf is a Redis client whose subscriptions hear nothing of what matters.
type deaf struct{ redis.UniversalClient }

func (d deaf) Subscribe(ctx context.Context, _ ...string) *redis.PubSub {
	return d.UniversalClient.Subscribe(ctx, "silence")
}

// TestLostMessageIsCaughtByTheLook: an edge that hears nothing sells what came
// back, for it looks.
func TestLostMessageIsCaughtByTheLook(t *testing.T) {
	eachRedis(t, func(t *testing.T, url string) {
		b := setup(t, url, func(_ *Config, d *Deps) { d.Redis = deaf{d.Redis} })
		back := b.sellOut(t)
		back()
		servicetest.Eventually(t, func() bool { return b.click(t, "b").Outcome == lua.Reserved })
	})
}

// TestHearsAgain: the subscription comes back with Redis, and with it a look at
// everything.
func TestHearsAgain(t *testing.T) {
	cases := map[string]func(*testing.T){"redis": func(t *testing.T) {
		r := servicetest.RedisForTest(t, "--appendfsync", "always")
		b := setup(t, r.URL())
		b.preheat(t, 1)
		listeners := func() int64 {
			n, err := b.redis.PubSubNumSub(t.Context(), lua.Changes).Result()
			if err != nil {
				return -1
			}
			return n[lua.Changes]
		}
		servicetest.Eventually(t, func() bool { return listeners() == 1 })
		require.NoError(t, r.Kill())
		require.NoError(t, r.Restart(t.Context()))
		servicetest.Eventually(t, func() bool { return listeners() == 1 })
	}}
	if testing.Short() {
		cases = nil
	}
	for name, test := range cases {
		t.Run(name, test)
	}
}

// TestManyChangesAreFewLooks: however many units come back, Redis is not asked
// for each.
func TestManyChangesAreFewLooks(t *testing.T) {
	eachRedis(t, func(t *testing.T, url string) {
		b := setup(t, url)
		b.sellOut(t)
		looks := make(map[time.Time]bool)
		start := time.Now()
		for len(looks) < 10 {
			b.changed(product)
			looks[b.lastLook()] = true
		}
		require.LessOrEqual(t, len(looks), int(time.Since(start)/lookGap)+2)
	})
}

// TestMovesAreHeard: a stream that looks every few seconds by itself is told at once
// of its own order, and of no other.
func TestMovesAreHeard(t *testing.T) {
	eachRedis(t, func(t *testing.T, url string) {
		var clock stopwatch
		b := setup(t, url, clock.on)
		b.preheat(t, 10)
		mine, other := b.click(t, "a"), b.click(t, "b")
		s, o := b.follow(t, "a", mine.OrderID), b.follow(t, "b", other.OrderID)
		servicetest.Eventually(t, func() bool {
			n, err := b.redis.PubSubNumSub(t.Context(), lua.Moves).Result()
			return err == nil && n[lua.Moves] == 1
		})
		rests := func() bool {
			b.streams.mu.Lock()
			defer b.streams.mu.Unlock()
			old := time.Now().Add(-time.Hour)
			s.made, o.made = old, old
			soon := time.Now().Add(followLate * 3 / 4)
			return s.due.After(soon) && o.due.After(soon)
		}
		servicetest.Eventually(t, rests)
		clock.stop()
		due := o.due
		_, err := lua.Settle(t.Context(), b.redis, product, lua.MarkCreated, []lua.Move{{UserID: "a", OrderID: mine.OrderID}})
		require.NoError(t, err)
		f, _ := next(t, s)
		require.Equal(t, order.Created, f.State)
		b.streams.mu.Lock()
		defer b.streams.mu.Unlock()
		require.Equal(t, due, o.due)
	})
}
