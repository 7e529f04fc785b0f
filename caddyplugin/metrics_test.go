package caddyplugin

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/require"

	"github.com/seckill-edge/seckill/caddyplugin/gate"
	"github.com/seckill-edge/seckill/lua"
)

type figures struct {
	stats gate.Stats
	ready error
}

func (f figures) Stats() gate.Stats           { return f.stats }
func (f figures) Ready(context.Context) error { return f.ready }

func TestMetrics(t *testing.T) {
	f := figures{stats: gate.Stats{
		Outcomes: map[lua.Outcome]uint64{lua.Reserved: 7, lua.SoldOut: 3},
		Limited:  2, Late: 1, Carried: 4, Addresses: 5,
		BatchSize: gate.Histogram{Count: 3, Sum: 12, Buckets: map[float64]uint64{1: 1, 8: 2}},
	}}
	registry := prometheus.NewPedanticRegistry()
	require.NoError(t, registerMetrics(registry, f))
	require.NoError(t, registerMetrics(registry, f), "a twin is no error")
	require.NoError(t, registerMetrics(nil, f))
	require.NoError(t, testutil.GatherAndCompare(registry, strings.NewReader(`
# HELP caddy_seckill_answers_total Requests to buy that were answered, by outcome.
# TYPE caddy_seckill_answers_total counter
caddy_seckill_answers_total{outcome="reserved"} 7
caddy_seckill_answers_total{outcome="sold_out"} 3
# HELP caddy_seckill_batch_requests Requests to buy in one call to Redis.
# TYPE caddy_seckill_batch_requests histogram
caddy_seckill_batch_requests_bucket{le="1"} 1
caddy_seckill_batch_requests_bucket{le="8"} 2
caddy_seckill_batch_requests_bucket{le="+Inf"} 3
caddy_seckill_batch_requests_sum 12
caddy_seckill_batch_requests_count 3
# HELP caddy_seckill_carried_orders Orders reserved and not yet confirmed by the broker, now.
# TYPE caddy_seckill_carried_orders gauge
caddy_seckill_carried_orders 4
# HELP caddy_seckill_limited_total Calls refused by the limit per address.
# TYPE caddy_seckill_limited_total counter
caddy_seckill_limited_total 2
# HELP caddy_seckill_ready 1 while Redis answers and the queue takes messages.
# TYPE caddy_seckill_ready gauge
caddy_seckill_ready 1
`), "caddy_seckill_answers_total", "caddy_seckill_batch_requests", "caddy_seckill_carried_orders", "caddy_seckill_limited_total", "caddy_seckill_ready"))

	problems, err := testutil.GatherAndLint(registry)
	require.NoError(t, err)
	require.Empty(t, problems)

	f.ready = errors.New("redis: connection refused")
	registry = prometheus.NewPedanticRegistry()
	require.NoError(t, registerMetrics(registry, f))
	require.NoError(t, testutil.GatherAndCompare(registry, strings.NewReader(`
# HELP caddy_seckill_ready 1 while Redis answers and the queue takes messages.
# TYPE caddy_seckill_ready gauge
caddy_seckill_ready 0
`), "caddy_seckill_ready"))
}
