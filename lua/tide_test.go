package lua

import (
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"
)

func TestHighTide(t *testing.T) {
	onEach(t, func(t *testing.T, c redis.UniversalClient) {
		ctx := t.Context()
		for _, step := range []struct{ told, known int64 }{{0, 0}, {5, 5}, {3, 5}, {0, 5}, {6, 6}, {latest, latest}} {
			known, err := HighTide(ctx, c, step.told)
			require.NoError(t, err)
			require.Equal(t, step.known, known, "%+v", step)
		}
		for _, wrong := range []int64{-1, latest + 1} {
			_, err := HighTide(ctx, c, wrong)
			require.Error(t, err)
		}
		// What somebody else has left there says nothing.
		for _, garbage := range []string{"", "-1", "1.5", "high", "1e400", "9999999999999999"} {
			require.NoError(t, c.Set(ctx, tideKey, garbage, 0).Err())
			known, err := HighTide(ctx, c, 7)
			require.NoError(t, err)
			require.EqualValues(t, 7, known, garbage)
		}
		require.NoError(t, c.Del(ctx, tideKey).Err())
		require.NoError(t, c.RPush(ctx, tideKey, "x").Err())
		known, err := HighTide(ctx, c, 8)
		require.NoError(t, err)
		require.EqualValues(t, 8, known)
	})
}

func TestProducts(t *testing.T) {
	onEach(t, func(t *testing.T, c redis.UniversalClient) {
		for _, product := range []string{"b", "a"} {
			require.NoError(t, c.HSet(t.Context(), KeysOf(product).Activity, "id", "x").Err())
		}
		require.NoError(t, c.Set(t.Context(), "seckill:activity:{no product}", "x", 0).Err())
		require.NoError(t, c.Set(t.Context(), KeysOf("c").Stock, "1", 0).Err())
		found, err := Products(t.Context(), c)
		require.NoError(t, err)
		require.Equal(t, []string{"a", "b"}, found)
	})
}
