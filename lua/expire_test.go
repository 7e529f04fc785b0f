package lua

import (
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"
)

func TestExpire(t *testing.T) {
	onEach(t, func(t *testing.T, c redis.UniversalClient) {
		ctx := t.Context()
		k := KeysOf(product)
		_, err := Expire(ctx, c, product, "a-1", time.Hour)
		require.ErrorIs(t, err, ErrNoActivity)
		load(t, c, sale(2, 2))
		var id ids
		reserve(t, c, Request{OrderID: id.next(), UserID: "u", Quantity: 2})
		require.NoError(t, Present(ctx, c, product, Edge{ID: "e", At: time.Now()}))
		_, err = Expire(ctx, c, product, "a-1", time.Hour)
		require.ErrorIs(t, err, ErrNotClosed)
		_, _, err = SetState(ctx, c, product, "a-1", Closed)
		require.NoError(t, err)
		_, err = Expire(ctx, c, product, "a-2", time.Hour)
		require.ErrorIs(t, err, ErrOtherActivity)
		_, err = Expire(ctx, c, product, "a-1", -time.Hour)
		require.ErrorContains(t, err, "at least a millisecond")

		began, err := Expire(ctx, c, product, "a-1", time.Hour)
		require.NoError(t, err)
		require.True(t, began)
		for _, key := range k.list() {
			left, err := c.PTTL(ctx, key).Result()
			require.NoError(t, err)
			require.InDelta(t, time.Hour, left, float64(10*time.Second), key)
		}
		require.Zero(t, c.Exists(ctx, k.Edges).Val())
		began, err = Expire(ctx, c, product, "a-1", time.Minute)
		require.NoError(t, err)
		require.False(t, began, "a repeat changes nothing")
		left, err := c.PTTL(ctx, k.Activity).Result()
		require.NoError(t, err)
		require.Greater(t, left, 50*time.Minute)

		_, err = Expire(ctx, c, product, "a-1", 0)
		require.NoError(t, err)
		require.Zero(t, c.Exists(ctx, append(k.list(), k.Edges)...).Val())
	})
}

// What follows an activity whose keys expire keeps its own.
func TestPreheatOverKeysThatExpire(t *testing.T) {
	onEach(t, func(t *testing.T, c redis.UniversalClient) {
		ctx := t.Context()
		load(t, c, sale(2, 2))
		_, _, err := SetState(ctx, c, product, "a-1", Closed)
		require.NoError(t, err)
		_, err = Expire(ctx, c, product, "a-1", time.Hour)
		require.NoError(t, err)
		next := sale(7, 1)
		next.ID = "a-2"
		load(t, c, next)
		b, err := Reserve(ctx, c, product, 3, []Request{{OrderID: new(ids).next(), UserID: "u", Quantity: 1}})
		require.NoError(t, err)
		require.Equal(t, Reserved, b.Results[0].Outcome)
		for _, key := range KeysOf(product).list() {
			left, err := c.PTTL(ctx, key).Result()
			require.NoError(t, err)
			require.Negative(t, left, key)
		}
	})
}
