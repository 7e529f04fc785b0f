package lua

import (
	"context"
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"
)

// TestForget: only what is nobody's goes, and only while Redis can be believed.
func TestForget(t *testing.T) {
	onEach(t, func(t *testing.T, c redis.UniversalClient) {
		ctx := t.Context()
		a := sale(10, 5)
		load(t, c, a)
		var id ids
		first, second := id.next(), id.next()
		reserve(t, c, Request{OrderID: first, UserID: "u", Quantity: 1}, Request{OrderID: second, UserID: "u", Quantity: 2})
		record := c.HGet(ctx, KeysOf(product).Users, "u").Val()
		gone, ok, err := Forget(ctx, c, product, []Stranger{{"u", first, "another by now"}, {"nobody", "none", ""}})
		require.NoError(t, err)
		require.True(t, ok)
		require.Zero(t, gone)

		require.NoError(t, c.HSet(ctx, KeysOf(product).Outbox, "x", "u", "y", "nobody").Err())
		before := dump(t, c)
		for name, spoil := range map[string]func(context.Context, redis.Cmdable, Keys) error{
			"buyers lost":    func(ctx context.Context, c redis.Cmdable, k Keys) error { return c.Del(ctx, k.Users).Err() },
			"another server": field("run", "another"),
			"sum is wrong":   field("total", "11"),
			"no activity":    func(ctx context.Context, c redis.Cmdable, k Keys) error { return c.Del(ctx, k.Activity).Err() },
		} {
			users, activity := c.HGetAll(ctx, KeysOf(product).Users).Val(), c.HGetAll(ctx, KeysOf(product).Activity).Val()
			require.NoError(t, spoil(ctx, c, KeysOf(product)))
			gone, ok, err := Forget(ctx, c, product, []Stranger{{"u", "x", record}, {"nobody", "y", ""}, {"u", first, ""}})
			require.NoError(t, err, name)
			require.False(t, ok, name)
			require.Zero(t, gone, name)
			require.NoError(t, c.HSet(ctx, KeysOf(product).Users, users).Err())
			require.NoError(t, c.HSet(ctx, KeysOf(product).Activity, activity).Err())
		}
		require.Equal(t, before, dump(t, c))
		gone, ok, err = Forget(ctx, c, product, []Stranger{{"u", "x", record}, {"nobody", "y", ""}})
		require.NoError(t, err)
		require.True(t, ok)
		require.Equal(t, 2, gone)

		orders, next, err := OutboxOrders(ctx, c, product, 0, 100)
		require.NoError(t, err)
		require.Zero(t, next)
		require.ElementsMatch(t, []Unsent{{first, "u", 1, 1}, {second, "u", 2, 2}}, orders)
		require.Equal(t, Unsent{OrderID: "x", UserID: "u"}, readUnsent("x", "u\t0x1\t1"))
		users, err := InOutbox(ctx, c, product, []string{second, "x"})
		require.NoError(t, err)
		require.Equal(t, []string{"u", ""}, users)
	})
}
