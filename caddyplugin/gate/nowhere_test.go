package gate

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/seckill-edge/seckill/internal/order"
	"github.com/seckill-edge/seckill/lua"
)

// An order that its buyer was given, and that neither Redis nor this edge knows:
// the edge that gave it has died. He waits, then is told that it is lost.
func TestAnOrderThatIsNowhere(t *testing.T) {
	eachRedis(t, func(t *testing.T, url string) {
		b := setup(t, url)
		b.preheat(t, 10)
		d := b.click(t, "a")
		require.True(t, order.OwnedBy(d.OrderID, product, "a"))
		made := func(age time.Duration) string {
			id, err := order.NewID(time.Now().Add(-age), new(noise))
			require.NoError(t, err)
			return order.OwnID(id, product, "a")
		}
		fate := func(user, id string) (Fate, error) { return b.Fate(t.Context(), product, user, id) }

		young, err := fate("a", made(0))
		require.NoError(t, err)
		require.Equal(t, standing{order.Queued, false}, standing{young.State, young.Final})
		require.Positive(t, young.RetryAfter)
		old, err := fate("a", made(b.cfg.ResolveWithin))
		require.NoError(t, err)
		require.Equal(t, standing{order.Rejected, true}, standing{old.State, old.Final})
		require.Equal(t, order.ReasonLost, old.Reason)

		for _, nobodys := range [][2]string{{"b", made(0)}, {"a", made(lostFor + time.Minute)}, {"a", made(-time.Hour)}, {"b", d.OrderID}} {
			_, err := fate(nobodys[0], nobodys[1])
			require.ErrorIs(t, err, ErrNoOrder, "%v", nobodys)
		}

		// While Redis may have forgotten something nobody is told that it is lost.
		_, _, err = lua.SetState(t.Context(), b.redis, product, b.snapshot(t).ID, lua.OnHold)
		require.NoError(t, err)
		require.NoError(t, b.redis.HSet(t.Context(), lua.KeysOf(product).Activity, "run", "another").Err())
		_, err = fate("a", made(time.Minute))
		require.ErrorIs(t, err, ErrUnavailable)
	})
}

// Redis loses orders: their buyers are told that nothing can be said now, from the very
// next question on, and not that the orders wait.
func TestWhatRedisHasLostIsNotNowhere(t *testing.T) {
	for name, lose := range map[string]func(t *testing.T, b *bench, keys lua.Keys){
		"everything": func(t *testing.T, b *bench, _ lua.Keys) { require.NoError(t, b.redis.FlushAll(t.Context()).Err()) },
		"the buyers": func(t *testing.T, b *bench, keys lua.Keys) {
			require.NoError(t, b.redis.Del(t.Context(), keys.Users).Err())
		},
		"an order, of whose loss it knows": func(t *testing.T, b *bench, keys lua.Keys) {
			require.NoError(t, b.redis.HDel(t.Context(), keys.Users, "a").Err())
			require.NoError(t, b.redis.HSet(t.Context(), keys.Activity, "run", "another").Err())
		},
		"an order, before the last proof": func(t *testing.T, b *bench, keys lua.Keys) {
			require.NoError(t, b.redis.HDel(t.Context(), keys.Users, "a").Err())
			require.NoError(t, b.redis.HIncrBy(t.Context(), keys.Activity, "epoch", 1).Err())
		},
	} {
		t.Run(name, func(t *testing.T) {
			eachRedis(t, func(t *testing.T, url string) {
				var clock stopwatch
				b := setup(t, url, clock.on)
				b.preheat(t, 10)
				d := b.click(t, "a")
				f, err := b.Fate(t.Context(), product, "a", d.OrderID)
				require.NoError(t, err)
				require.Equal(t, order.Queued, f.State)
				clock.stop() // no look at the sale is due any more: the edge does not know
				lose(t, b, lua.KeysOf(product))
				f, err = b.Fate(t.Context(), product, "a", d.OrderID)
				require.ErrorIs(t, err, ErrUnavailable, "%+v", f)
			})
		})
	}
}
