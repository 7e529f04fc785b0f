package lua

import (
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"
)

// A probe changes nothing, whatever state the keys are in, and fails with what a
// purchase would fail with.
func TestProbe(t *testing.T) {
	onEach(t, func(t *testing.T, c redis.UniversalClient) {
		var id ids
		require.NoError(t, Probe(t.Context(), c, product), "nothing is there to try it on")
		require.Empty(t, dump(t, c))
		load(t, c, sale(10, 5))
		for range 2 { // without an outbox, and with one
			before := dump(t, c)
			require.NoError(t, Probe(t.Context(), c, product))
			require.Equal(t, before, dump(t, c))
			reserve(t, c, Request{OrderID: id.next(), UserID: "u", Quantity: 2})
		}
		require.NoError(t, c.Set(t.Context(), KeysOf(product).Stock, "x", 0).Err())
		before := dump(t, c)
		require.NoError(t, Probe(t.Context(), c, product))
		require.Equal(t, before, dump(t, c))
	})
	if testing.Short() {
		return
	}
	c := start(t, "redis")
	load(t, c, sale(10, 5))
	require.NoError(t, c.Do(t.Context(), "CONFIG", "SET", "min-replicas-to-write", "1").Err())
	require.Equal(t, FaultRefused, FaultOf(Probe(t.Context(), c, product)))
}
