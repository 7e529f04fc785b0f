package metrics

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/seckill-edge/seckill/internal/order"
)

// life counts what becomes of stored orders.
type life struct {
	payments *prometheus.CounterVec
	ended    *prometheus.CounterVec
	promises *prometheus.CounterVec
	overdue  *prometheus.GaugeVec // without labels; empty while nothing is known
	direct   prometheus.Counter
}

func newLife(r prometheus.Registerer) life {
	counters := func(name, help, label string, values ...string) *prometheus.CounterVec {
		c := prometheus.NewCounterVec(prometheus.CounterOpts{Namespace: namespace, Subsystem: subsystem, Name: name, Help: help}, []string{label})
		for _, v := range values {
			c.WithLabelValues(v)
		}
		r.MustRegister(c)
		return c
	}
	overdue := prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Namespace: namespace, Subsystem: subsystem, Name: "promises_overdue",
		Help: "Orders that still read queued though the time the edge promises is over, as the backend that keeps promises counted last. Absent where and while nobody counts.",
	}, nil)
	direct := prometheus.NewCounter(prometheus.CounterOpts{
		Namespace: namespace, Subsystem: subsystem, Name: "orders_direct_total",
		Help: "Orders stored straight from Redis because the broker had not delivered them in time.",
	})
	r.MustRegister(overdue, direct)
	return life{
		payments: counters("payments_total", "Payments by what became of them; refund_due came too late.", "outcome", "applied", "refund_due"),
		ended:    counters("orders_ended_total", "Orders that gave their units back after they were stored.", "state", string(order.Cancelled), string(order.Expired)),
		promises: counters("promises_total", "Orders whose buyers could read their fate within the time the edge promises, or later.", "kept", "yes", "late"),
		overdue:  overdue,
		direct:   direct,
	}
}

// Payment counts one payment: applied or refund_due.
func (l *life) Payment(outcome string) { l.payments.WithLabelValues(outcome).Inc() }

// Ended counts orders that were cancelled or have expired.
func (l *life) Ended(state order.State, orders int) {
	l.ended.WithLabelValues(string(state)).Add(float64(orders))
}

// Promised counts one order whose buyer can read its fate from now on: in the time
// he was promised, or later.
func (l *life) Promised(inTime bool) {
	if inTime {
		l.promises.WithLabelValues("yes").Inc()
		return
	}
	l.promises.WithLabelValues("late").Inc()
}

// Overdue says how many promises are broken and not kept late yet.
func (l *life) Overdue(orders int) { l.overdue.WithLabelValues().Set(float64(orders)) }

// OverdueUnknown takes the number back: this backend does not count, or cannot.
func (l *life) OverdueUnknown() { l.overdue.Reset() }

// Direct counts orders that were stored without the broker.
func (l *life) Direct(orders int) { l.direct.Add(float64(orders)) }
