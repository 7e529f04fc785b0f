// Package metrics counts what the backend does, in a registry of its own.
// Labels are bounded: reasons and kinds from fixed lists, products from SQL;
// never a user or an address.
package metrics

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"github.com/seckill-edge/seckill/backend/duty"
	"github.com/seckill-edge/seckill/internal/order"
)

const (
	namespace = "seckill"
	subsystem = "backend"
)

// Metrics are the backend's counters. All methods are safe for concurrent use.
type Metrics struct {
	Registry *prometheus.Registry

	stored   prometheus.Counter
	repeats  prometheus.Counter
	rejected *prometheus.CounterVec
	batch    prometheus.Histogram
	write    prometheus.Histogram
	dead     *prometheus.CounterVec
	retried  prometheus.Counter
	relayed  prometheus.Counter
	settled  *prometheus.CounterVec
	lag      prometheus.Histogram
	paused   prometheus.Gauge
	findings *prometheus.CounterVec
	mended   *prometheus.CounterVec
	rebuilds prometheus.Counter
	held     prometheus.Histogram
	panics   *prometheus.CounterVec
	life
}

// New makes the counters and a registry that holds them, with those of the Go
// runtime and the process.
func New() *Metrics {
	counter := func(name, help string) prometheus.Counter {
		return prometheus.NewCounter(prometheus.CounterOpts{Namespace: namespace, Subsystem: subsystem, Name: name, Help: help})
	}
	counters := func(name, help, label string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Namespace: namespace, Subsystem: subsystem, Name: name, Help: help}, []string{label})
	}
	histogram := func(name, help string, buckets []float64) prometheus.Histogram {
		return prometheus.NewHistogram(prometheus.HistogramOpts{Namespace: namespace, Subsystem: subsystem, Name: name, Help: help, Buckets: buckets})
	}
	m := &Metrics{
		Registry: prometheus.NewRegistry(),
		stored:   counter("orders_stored_total", "Orders stored for the first time, rejected ones not counted."),
		repeats:  counter("orders_repeated_total", "Orders that came again and were stored already."),
		rejected: counters("orders_rejected_total", "Granted reservations that SQL did not accept.", "reason"),
		batch:    histogram("batch_orders", "Orders stored in one transaction.", prometheus.ExponentialBuckets(1, 2, 12)),
		write:    histogram("store_seconds", "Duration of one storing transaction.", prometheus.ExponentialBuckets(0.001, 2, 14)),
		dead:     counters("dead_letters_total", "Messages sent to the dead letters: a whole message, an entry, an order that cannot be stored, a reservation that Redis does not know.", "kind"),
		retried:  counter("orders_retried_total", "Orders sent to the delayed retry because storing them failed."),
		relayed:  counter("orders_relayed_total", "Orders the relay published because an edge had left them behind."),
		settled:  counters("orders_settled_total", "Moves in Redis after storing, by what Redis said.", "result"),
		lag:      histogram("settle_lag_seconds", "Time from an order's commit in SQL to its move in Redis.", prometheus.ExponentialBuckets(0.001, 2, 16)),
		paused: prometheus.NewGauge(prometheus.GaugeOpts{
			Namespace: namespace, Subsystem: subsystem, Name: "database_paused",
			Help: "1 while storing waits for the database to come back.",
		}),
		findings: counters("findings_total", "Differences between Redis, queue and SQL that inspections have found.", "kind"),
		mended:   counters("mended_total", "Differences that were mended.", "kind"),
		rebuilds: counter("rebuilds_total", "Times the stock of an activity was proven, and rebuilt where it was wrong."),
		held:     histogram("held_seconds", "How long a sale was shut for proving its stock.", prometheus.ExponentialBuckets(0.25, 2, 10)),
	}
	m.panics = counters("panics_total", "Passes of background work, and batches, that were given up because of a mistake of this program.", "duty")
	m.life = newLife(m.Registry)
	m.Registry.MustRegister(m.stored, m.repeats, m.rejected, m.batch, m.write, m.dead, m.retried, m.relayed,
		m.settled, m.lag, m.paused, m.findings, m.mended, m.rebuilds, m.held, m.panics,
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	// A label that has not happened yet is 0, not absent: alerts need that.
	for _, reason := range []order.Reason{order.ReasonOversold, order.ReasonDuplicate, order.ReasonUnknownActivity, order.ReasonInvalid, order.ReasonLost, order.ReasonDead} {
		m.rejected.WithLabelValues(string(reason))
	}
	for _, kind := range []DeadKind{DeadMessage, DeadEntry, DeadOrder, DeadUnknown} {
		m.dead.WithLabelValues(string(kind))
	}
	for _, name := range duty.Names() {
		m.panics.WithLabelValues(name)
	}
	for _, result := range []string{"done", "already", "over", "unknown", "conflict", "failed"} {
		m.settled.WithLabelValues(result)
	}
	return m
}

// DeadKind says what went to the dead letters.
type DeadKind string

// The kinds of dead letters.
const (
	DeadMessage DeadKind = "message"
	DeadEntry   DeadKind = "entry"
	DeadOrder   DeadKind = "order"
	DeadUnknown DeadKind = "unknown_reservation"
)

// Batch records one transaction of so many orders.
func (m *Metrics) Batch(orders int, took time.Duration) {
	m.batch.Observe(float64(orders))
	m.write.Observe(took.Seconds())
}

// Stored counts one order that became a row; repeat says that it was one before.
func (m *Metrics) Stored(repeat bool) {
	if repeat {
		m.repeats.Inc()
		return
	}
	m.stored.Inc()
}

// Rejected counts one order that SQL did not accept.
func (m *Metrics) Rejected(reason order.Reason) { m.rejected.WithLabelValues(string(reason)).Inc() }

// Dead counts one dead letter.
func (m *Metrics) Dead(kind DeadKind) { m.dead.WithLabelValues(string(kind)).Inc() }

// Retried counts one order sent to the delayed retry.
func (m *Metrics) Retried() { m.retried.Inc() }

// Relayed counts orders that the relay has published.
func (m *Metrics) Relayed(orders int) { m.relayed.Add(float64(orders)) }

// Settled counts moves in Redis: done, already, over (its sale is not there any
// more), unknown, conflict or failed.
func (m *Metrics) Settled(result string, orders int) {
	m.settled.WithLabelValues(result).Add(float64(orders))
}

// SettleLag records how long after its commit a batch was moved in Redis.
func (m *Metrics) SettleLag(d time.Duration) { m.lag.Observe(d.Seconds()) }

// Panicked counts a pass of a duty that ended in a panic.
func (m *Metrics) Panicked(duty string) { m.panics.WithLabelValues(duty).Inc() }

// Paused says whether storing waits for the database.
func (m *Metrics) Paused(paused bool) {
	if paused {
		m.paused.Set(1)
		return
	}
	m.paused.Set(0)
}
