package lua

import (
	"context"
	"encoding/binary"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/seckill-edge/seckill/internal/order"
	"github.com/seckill-edge/seckill/internal/servicetest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// onEach runs a test on a real Redis and on miniredis; in -short on the latter
// only.
func onEach(t *testing.T, test func(t *testing.T, c redis.UniversalClient)) {
	kinds := []string{"miniredis"}
	if !testing.Short() {
		kinds = append(kinds, "redis")
	}
	for _, kind := range kinds {
		t.Run(kind, func(t *testing.T) { test(t, start(t, kind)) })
	}
}

func start(t testing.TB, kind string) redis.UniversalClient {
	t.Helper()
	if kind == "miniredis" {
		return connect(t, "redis://"+miniredis.RunT(t).Addr())
	}
	return connect(t, servicetest.RedisForTest(t).URL())
}

func connect(t testing.TB, url string) redis.UniversalClient {
	t.Helper()
	c, err := NewClient(url+servicetest.PatientRedis(), "lua-test")
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, c.Close()) })
	return c
}

// ids makes order ids that differ and sort by making.
type ids uint64

func (n *ids) Read(p []byte) (int, error) {
	*n++
	clear(p)
	binary.BigEndian.PutUint64(p[len(p)-8:], uint64(*n))
	return len(p), nil
}

func (n *ids) next() string {
	id, err := order.NewID(time.UnixMilli(1_800_000_000_000), n)
	if err != nil {
		panic(err)
	}
	return id
}

const product = "p-1"

// sale is an activity that is open now.
func sale(total int64, limit int) Activity {
	now := time.Now().Truncate(time.Millisecond)
	return Activity{
		ID: "a-1", ProductID: product, Title: "Phone: 1 €, {today}",
		Start: now.Add(-time.Hour), End: now.Add(time.Hour), Total: total, Limit: limit, PayWindow: 15 * time.Minute,
	}
}

func load(t testing.TB, c redis.Scripter, a Activity) {
	t.Helper()
	p, err := Preheat(t.Context(), c, a)
	require.NoError(t, err)
	require.Equal(t, Loaded, p)
}

func audit(t testing.TB, c redis.Scripter) Snapshot {
	t.Helper()
	s, found, err := Audit(t.Context(), c, product)
	require.NoError(t, err)
	require.True(t, found)
	return s
}

// reserve asks under epoch 1 and returns the results.
func reserve(t testing.TB, c redis.Scripter, reqs ...Request) []Result {
	t.Helper()
	b, err := Reserve(t.Context(), c, product, 1, reqs)
	require.NoError(t, err)
	require.Len(t, b.Results, len(reqs))
	return b.Results
}

func outcomes(results []Result) []Outcome {
	out := make([]Outcome, len(results))
	for i, r := range results {
		out[i] = r.Outcome
	}
	return out
}

// dump reads everything that Redis holds of the product.
func dump(t testing.TB, c redis.UniversalClient) map[string]any {
	t.Helper()
	ctx := context.Background()
	all := map[string]any{}
	for _, key := range KeysOf(product).list() {
		kind, err := c.Type(ctx, key).Result()
		require.NoError(t, err)
		switch kind {
		case "none":
		case "hash":
			all[key], err = c.HGetAll(ctx, key).Result()
		case "string":
			all[key], err = c.Get(ctx, key).Result()
		default:
			all[key] = kind
		}
		require.NoError(t, err)
	}
	return all
}
