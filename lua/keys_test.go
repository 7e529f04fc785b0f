package lua

import (
	"reflect"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"
)

// A key that is added to Keys is known as ours everywhere.
func TestEveryKeyIsOurs(t *testing.T) {
	keys := reflect.ValueOf(KeysOf("1001"))
	require.Len(t, KeysOf("1001").all(), keys.NumField())
	for i := range keys.NumField() {
		require.Contains(t, KeysOf("1001").all(), keys.Field(i).String(), keys.Type().Field(i).Name)
	}
}

// Whatever a sale leaves in Redis is no stray key, the bucket of a shared limit
// among it; any other key with the product's tag is one.
func TestStrayKeysAreNotOurs(t *testing.T) {
	onEach(t, func(t *testing.T, c redis.UniversalClient) {
		for _, key := range KeysOf("1001").all() {
			require.NoError(t, c.Set(t.Context(), key, "1", time.Hour).Err())
		}
		found, err := StrayKeys(t.Context(), c, "1001", 10)
		require.NoError(t, err)
		require.Empty(t, found)
		for _, key := range []string{"seckill:stok:{1001}", "seckill:stock:{1001}:2", "seckill:stock:{1002}"} {
			require.NoError(t, c.Set(t.Context(), key, "1", time.Hour).Err())
		}
		found, err = StrayKeys(t.Context(), c, "1001", 10)
		require.NoError(t, err)
		require.Equal(t, []string{"seckill:stock:{1001}:2", "seckill:stok:{1001}"}, found)
		found, err = StrayKeys(t.Context(), c, "1001", 1)
		require.NoError(t, err)
		require.Len(t, found, 1)
	})
}
