package lua

import (
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"
)

// Readiness tries a write of each kind that the stock's scripts do, and leaves nothing
// that stays.
func TestWritable(t *testing.T) {
	onEach(t, func(t *testing.T, c redis.UniversalClient) {
		for range 2 {
			require.NoError(t, Writable(t.Context(), c))
			for _, key := range writableKeys { // somebody else's
				require.NoError(t, c.Del(t.Context(), key).Err())
				require.NoError(t, c.RPush(t.Context(), key, "x").Err())
			}
		}
		require.NoError(t, Writable(t.Context(), c))
		left := c.PTTL(t.Context(), writableKeys[0]).Val()
		require.Positive(t, left)
		require.LessOrEqual(t, left, 10*time.Second)
		require.Zero(t, c.Exists(t.Context(), writableKeys[1:]...).Val())
	})
	if testing.Short() {
		return
	}
	c := start(t, "redis")
	user := func(right string) {
		require.NoError(t, c.Do(t.Context(), "ACL", "SETUSER", "default", right).Err())
	}
	for _, right := range []string{"hset", "hdel", "incrby", "decrby", "zadd", "mget", "hmget", "time", "zcard", "zrangebylex", "unlink", "evalsha", "@write"} {
		user("-" + right)
		err := Writable(t.Context(), c)
		require.Equal(t, FaultForbidden, FaultOf(err), right)
		if right != "@write" {
			require.ErrorContains(t, err, "+"+right)
		}
		user("+@all")
	}
	for _, refusal := range [][2]string{{"maxmemory", "1"}, {"min-replicas-to-write", "1"}} {
		require.NoError(t, c.ConfigSet(t.Context(), refusal[0], refusal[1]).Err())
		require.Equal(t, FaultRefused, FaultOf(Writable(t.Context(), c)), refusal[0])
		require.NoError(t, c.ConfigSet(t.Context(), refusal[0], "0").Err())
	}
	require.NoError(t, Writable(t.Context(), c))
}
