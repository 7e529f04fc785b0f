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
	"github.com/seckill-edge/seckill/caddyplugin/limit"
	"github.com/seckill-edge/seckill/lua"
)

type figures struct {
	stats gate.Stats
	ready error
}

func (f figures) Stats() gate.Stats           { return f.stats }
func (f figures) Ready(context.Context) error { return f.ready }

func TestMetrics(t *testing.T) {
	limits := limit.Stats{Addresses: 5}
	limits.Levels[limit.IP].Refused = 2
	limits.Levels[limit.SharedTotal] = limit.Count{Allowed: 9, Shadowed: 3}
	f := figures{stats: gate.Stats{
		Outcomes: map[lua.Outcome]uint64{lua.Reserved: 7, lua.SoldOut: 3},
		Late:     1, Carried: 4,
		LateOutcomes: map[lua.Outcome]uint64{lua.SoldOut: 1},
		Limits:       limits,
		BatchSize:    gate.Histogram{Count: 3, Sum: 12, Buckets: map[float64]uint64{1: 1, 8: 2}},
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
# HELP caddy_seckill_late_outcomes_total Buyers told "queued" before Redis had answered, by what it answered later.
# TYPE caddy_seckill_late_outcomes_total counter
caddy_seckill_late_outcomes_total{outcome="sold_out"} 1
# HELP caddy_seckill_limit_calls_total Calls that a limit was asked about, by what it said.
# TYPE caddy_seckill_limit_calls_total counter
caddy_seckill_limit_calls_total{level="activity",verdict="allowed"} 0
caddy_seckill_limit_calls_total{level="activity",verdict="refused"} 0
caddy_seckill_limit_calls_total{level="activity",verdict="shadowed"} 0
caddy_seckill_limit_calls_total{level="ip",verdict="allowed"} 0
caddy_seckill_limit_calls_total{level="ip",verdict="refused"} 2
caddy_seckill_limit_calls_total{level="ip",verdict="shadowed"} 0
caddy_seckill_limit_calls_total{level="shared_activity",verdict="allowed"} 0
caddy_seckill_limit_calls_total{level="shared_activity",verdict="refused"} 0
caddy_seckill_limit_calls_total{level="shared_activity",verdict="shadowed"} 0
caddy_seckill_limit_calls_total{level="shared_total",verdict="allowed"} 9
caddy_seckill_limit_calls_total{level="shared_total",verdict="refused"} 0
caddy_seckill_limit_calls_total{level="shared_total",verdict="shadowed"} 3
caddy_seckill_limit_calls_total{level="total",verdict="allowed"} 0
caddy_seckill_limit_calls_total{level="total",verdict="refused"} 0
caddy_seckill_limit_calls_total{level="total",verdict="shadowed"} 0
caddy_seckill_limit_calls_total{level="user",verdict="allowed"} 0
caddy_seckill_limit_calls_total{level="user",verdict="refused"} 0
caddy_seckill_limit_calls_total{level="user",verdict="shadowed"} 0
# HELP caddy_seckill_limit_keys Addresses, users and products that the limits tell apart now.
# TYPE caddy_seckill_limit_keys gauge
caddy_seckill_limit_keys{level="activity"} 0
caddy_seckill_limit_keys{level="ip"} 5
caddy_seckill_limit_keys{level="user"} 0
# HELP caddy_seckill_ready 1 while Redis answers and the queue takes messages.
# TYPE caddy_seckill_ready gauge
caddy_seckill_ready 1
`), "caddy_seckill_answers_total", "caddy_seckill_batch_requests", "caddy_seckill_carried_orders", "caddy_seckill_late_outcomes_total", "caddy_seckill_limit_calls_total", "caddy_seckill_limit_keys", "caddy_seckill_ready"))

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
