package lua

import (
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"
)

func takeTokens(t *testing.T, c redis.Scripter, product string, q Quota, n int) Tokens {
	t.Helper()
	got, err := TakeTokens(t.Context(), c, product, q, n)
	require.NoError(t, err)
	return got
}

func TestTokens(t *testing.T) {
	onEach(t, func(t *testing.T, c redis.UniversalClient) {
		q := Quota{Events: 10, Per: time.Hour, Burst: 7}
		require.Equal(t, Tokens{Taken: 3}, takeTokens(t, c, product, q, 3))
		require.Equal(t, Tokens{Taken: 2}, takeTokens(t, c, product, q, 2))
		rest := takeTokens(t, c, product, q, 5)
		require.Equal(t, 2, rest.Taken)
		require.InDelta(t, 6*time.Minute, rest.Wait, float64(time.Minute))
		none := takeTokens(t, c, product, q, 1)
		require.Zero(t, none.Taken)
		require.LessOrEqual(t, none.Wait, rest.Wait)

		require.Equal(t, 1, takeTokens(t, c, "p-2", q, 1).Taken, "products must not share a bucket")
		require.Equal(t, 1, takeTokens(t, c, "", q, 1).Taken, "nor all of them one with a product")
		expires, err := c.PTTL(t.Context(), KeysOf(product).Limit).Result()
		require.NoError(t, err)
		require.InDelta(t, 42*time.Minute, expires, float64(time.Minute), "a bucket that is full again is forgotten")
	})
}

// A limit that is changed while it is used, a clock that was set back and a key
// that somebody has damaged neither shut the entrance nor stop the script.
func TestTokensOfAnotherTime(t *testing.T) {
	onEach(t, func(t *testing.T, c redis.UniversalClient) {
		key, q := KeysOf(product).Limit, Quota{Events: 1000, Per: time.Second, Burst: 10}
		ahead := strconv.FormatInt(time.Now().Add(time.Hour).UnixMicro(), 10)
		for value, least := range map[string]int{ahead: 0, "nan": 10, "-5": 10, "1e400": 10, "": 10, "0": 10} {
			require.NoError(t, c.Set(t.Context(), key, value, 0).Err())
			got := takeTokens(t, c, product, q, 20)
			require.GreaterOrEqual(t, got.Taken, least, value)
			require.LessOrEqual(t, got.Taken, 10, value)
			require.LessOrEqual(t, got.Wait, 2*time.Millisecond, value)
		}
		require.NoError(t, c.Del(t.Context(), key).Err())
		require.NoError(t, c.HSet(t.Context(), key, "a", "b").Err())
		require.Equal(t, 10, takeTokens(t, c, product, q, 20).Taken)
		lower := takeTokens(t, c, product, Quota{Events: 1, Per: time.Minute, Burst: 1}, 1)
		require.LessOrEqual(t, lower.Wait, time.Minute)
	})
}

// What many edges take together is what the limit gives.
func TestTokensOfManyEdges(t *testing.T) {
	onEach(t, func(t *testing.T, c redis.UniversalClient) {
		for _, q := range []Quota{
			{Events: 3000, Per: time.Second, Burst: 50},
			{Events: 7_000_000, Per: time.Second, Burst: 100_000},
		} {
			require.NoError(t, c.FlushDB(t.Context()).Err())
			var taken atomic.Int64
			var edges sync.WaitGroup
			begin := time.Now()
			for range 4 {
				edges.Go(func() {
					for range 100 {
						got, err := TakeTokens(t.Context(), c, product, q, q.Burst/5)
						if err != nil {
							t.Error(err)
							return
						}
						taken.Add(int64(got.Taken))
					}
				})
			}
			edges.Wait()
			gives := float64(q.Burst) + time.Since(begin).Seconds()*float64(q.Events)
			require.LessOrEqual(t, float64(taken.Load()), gives+1)
			require.GreaterOrEqual(t, taken.Load(), int64(q.Burst))
		}
	})
}

func TestTokensRefuseNonsense(t *testing.T) {
	c := start(t, "miniredis")
	good := Quota{Events: 1, Per: time.Second, Burst: 1}
	for name, tc := range map[string]struct {
		product string
		q       Quota
		n       int
	}{
		"events":  {product, Quota{Per: time.Second, Burst: 1}, 1},
		"per":     {product, Quota{Events: 1, Per: 1, Burst: 1}, 1},
		"burst":   {product, Quota{Events: 1, Per: time.Second}, 1},
		"n":       {product, good, 0},
		"product": {"{1}", good, 1},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := TakeTokens(t.Context(), c, tc.product, tc.q, tc.n)
			require.Error(t, err)
		})
	}
}
