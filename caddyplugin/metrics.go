package caddyplugin

import (
	"context"
	"errors"
	"fmt"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/seckill-edge/seckill/caddyplugin/gate"
	"github.com/seckill-edge/seckill/caddyplugin/limit"
)

const namespace, subsystem = "caddy", "seckill"

// metric is one figure of a gate.
type metric struct {
	desc  *prometheus.Desc
	kind  prometheus.ValueType
	value func(gate.Stats) float64
}

// distribution is one histogram of a gate.
type distribution struct {
	desc  *prometheus.Desc
	value func(gate.Stats) gate.Histogram
}

func describe(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc(prometheus.BuildFQName(namespace, subsystem, name), help, labels, nil)
}

var (
	answersDesc = describe("answers_total", "Requests to buy that were answered, by outcome.", "outcome")
	lateDesc    = describe("late_outcomes_total", "Buyers told \"queued\" before Redis had answered, by what it answered later.", "outcome")
	limitDesc   = describe("limit_calls_total", "Calls that a limit was asked about, by what it said.", "level", "verdict")
	keysDesc    = describe("limit_keys", "Addresses, users and products that the limits tell apart now.", "level")
	readyDesc   = describe("ready", "1 while Redis answers and the queue takes messages.")
	missingDesc = describe("not_ready", "1 while the edge cannot sell for this cause.", "part", "cause")

	metrics = []metric{
		{
			describe("local_refusals_total", "Requests to buy that were refused without asking Redis."),
			prometheus.CounterValue, func(s gate.Stats) float64 { return float64(s.Local) },
		},
		{
			describe("limit_denied_total", "Calls of addresses on the deny list, refused."),
			prometheus.CounterValue, func(s gate.Stats) float64 { return float64(s.Limits.Denied) },
		},
		{
			describe("limit_exempt_total", "Calls of addresses on the allow list, which the limit of an address spares."),
			prometheus.CounterValue, func(s gate.Stats) float64 { return float64(s.Limits.Exempt) },
		},
		{
			describe("limit_lease_calls_total", "Calls to Redis for tokens of the limits that all edges share."),
			prometheus.CounterValue, func(s gate.Stats) float64 { return float64(s.Leases.Calls) },
		},
		{
			describe("limit_lease_errors_total", "Calls to Redis for tokens that failed."),
			prometheus.CounterValue, func(s gate.Stats) float64 { return float64(s.Leases.Failures) },
		},
		{
			describe("limit_alone_total", "Decisions of shared limits by this edge alone, because Redis did not answer."),
			prometheus.CounterValue, func(s gate.Stats) float64 { return float64(s.Leases.Alone) },
		},
		{
			describe("limit_alone", "Shared limits that this edge goes by alone now, because Redis does not answer."),
			prometheus.GaugeValue, func(s gate.Stats) float64 { return float64(s.Leases.Away) },
		},
		{
			describe("late_total", "Buyers told \"queued\" before Redis had answered."),
			prometheus.CounterValue, func(s gate.Stats) float64 { return float64(s.Late) },
		},
		{
			describe("repeats_total", "Requests to buy that were answered with the first order of their Idempotency-Key."),
			prometheus.CounterValue, func(s gate.Stats) float64 { return float64(s.Repeats) },
		},
		{
			describe("record_reads_total", "Reads of buyers' records, many buyers each."),
			prometheus.CounterValue, func(s gate.Stats) float64 { return float64(s.Reads) },
		},
		{
			describe("record_read_errors_total", "Reads of buyers' records that failed."),
			prometheus.CounterValue, func(s gate.Stats) float64 { return float64(s.ReadErrors) },
		},
		{
			describe("streams", "Open event streams of orders, now."),
			prometheus.GaugeValue, func(s gate.Stats) float64 { return float64(s.Streams) },
		},
		{
			describe("redis_calls_total", "Reserve calls to Redis."),
			prometheus.CounterValue, func(s gate.Stats) float64 { return float64(s.Calls) },
		},
		{
			describe("redis_call_errors_total", "Reserve calls to Redis that failed."),
			prometheus.CounterValue, func(s gate.Stats) float64 { return float64(s.CallErrors) },
		},
		{
			describe("forwarded_orders_total", "Orders that the broker has confirmed."),
			prometheus.CounterValue, func(s gate.Stats) float64 { return float64(s.Forwarded) },
		},
		{
			describe("publish_errors_total", "Messages that the broker has not confirmed."),
			prometheus.CounterValue, func(s gate.Stats) float64 { return float64(s.PublishErrors) },
		},
		{
			describe("left_behind_orders_total", "Orders left in the outbox for the backend to publish."),
			prometheus.CounterValue, func(s gate.Stats) float64 { return float64(s.LeftBehind) },
		},
		{
			describe("carried_orders", "Orders reserved and not yet confirmed by the broker, now."),
			prometheus.GaugeValue, func(s gate.Stats) float64 { return float64(s.Carried) },
		},
	}
	distributions = []distribution{
		{
			describe("batch_requests", "Requests to buy in one call to Redis."),
			func(s gate.Stats) gate.Histogram { return s.BatchSize },
		},
		{
			describe("redis_call_seconds", "Duration of the reserve calls to Redis."),
			func(s gate.Stats) gate.Histogram { return s.CallSeconds },
		},
		{
			describe("message_orders", "Orders in one confirmed message."),
			func(s gate.Stats) gate.Histogram { return s.MessageSize },
		},
		{
			describe("publish_seconds", "Time until the broker confirmed a message."),
			func(s gate.Stats) gate.Histogram { return s.PublishSeconds },
		},
	}
)

// watched is what the collector needs of a gate.
type watched interface {
	Stats() gate.Stats
	Ready(context.Context) error
}

// collector reads a gate when it is scraped, so that counting costs the hot path
// nothing here, and the figures go on over a reload that keeps the gate.
type collector struct{ gate watched }

// registerMetrics adds the gate's figures to a config's registry. A twin that is
// there already tells the same.
func registerMetrics(registry *prometheus.Registry, g watched) error {
	if registry == nil {
		return nil // a context without one: nobody scrapes it
	}
	var twin prometheus.AlreadyRegisteredError
	if err := registry.Register(collector{g}); err != nil && !errors.As(err, &twin) {
		return fmt.Errorf("registering the seckill metrics: %w", err)
	}
	return nil
}

// Describe implements prometheus.Collector.
func (collector) Describe(to chan<- *prometheus.Desc) {
	to <- answersDesc
	to <- lateDesc
	to <- limitDesc
	to <- keysDesc
	to <- readyDesc
	to <- missingDesc
	for i := range metrics {
		to <- metrics[i].desc
	}
	for i := range distributions {
		to <- distributions[i].desc
	}
}

// Collect implements prometheus.Collector.
func (c collector) Collect(to chan<- prometheus.Metric) {
	stats := c.gate.Stats()
	for outcome, n := range stats.Outcomes {
		to <- prometheus.MustNewConstMetric(answersDesc, prometheus.CounterValue, float64(n), outcome.String())
	}
	for outcome, n := range stats.LateOutcomes {
		to <- prometheus.MustNewConstMetric(lateDesc, prometheus.CounterValue, float64(n), outcome.String())
	}
	collectLimits(to, stats.Limits)
	collectReady(to, c.gate.Ready(context.Background())) // a gate bounds the wait itself
	for _, m := range metrics {
		to <- prometheus.MustNewConstMetric(m.desc, m.kind, m.value(stats))
	}
	for _, d := range distributions {
		h := d.value(stats)
		to <- prometheus.MustNewConstHistogram(d.desc, h.Count, h.Sum, h.Buckets)
	}
}

func collectReady(to chan<- prometheus.Metric, err error) {
	gauge := func(desc *prometheus.Desc, is bool, labels ...string) {
		value := 0.0
		if is {
			value = 1
		}
		to <- prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, value, labels...)
	}
	gauge(readyDesc, err == nil)
	missing, _ := errors.AsType[*gate.NotReady](err)
	for _, part := range []string{gate.PartRedis, gate.PartQueue} {
		for _, cause := range gate.Causes(part) {
			gauge(missingDesc, missing != nil && missing.Part == part && missing.Cause() == cause, part, cause)
		}
	}
}

func collectLimits(to chan<- prometheus.Metric, s limit.Stats) {
	for level, count := range s.Levels {
		name := limit.Level(level).String()
		for verdict, n := range map[string]uint64{"allowed": count.Allowed, "refused": count.Refused, "shadowed": count.Shadowed} {
			to <- prometheus.MustNewConstMetric(limitDesc, prometheus.CounterValue, float64(n), name, verdict)
		}
	}
	for level, n := range map[limit.Level]int{limit.IP: s.Addresses, limit.User: s.Users, limit.Activity: s.Products} {
		to <- prometheus.MustNewConstMetric(keysDesc, prometheus.GaugeValue, float64(n), level.String())
	}
}
