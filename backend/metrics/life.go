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
	return life{
		payments: counters("payments_total", "Payments by what became of them; refund_due came too late.", "outcome", "applied", "refund_due"),
		ended:    counters("orders_ended_total", "Orders that gave their units back after they were stored.", "state", string(order.Cancelled), string(order.Expired)),
		promises: counters("promises_total", "Orders stored within the time the edge promises, or later.", "kept", "yes", "no"),
	}
}

// Payment counts one payment: applied or refund_due.
func (l *life) Payment(outcome string) { l.payments.WithLabelValues(outcome).Inc() }

// Ended counts orders that were cancelled or have expired.
func (l *life) Ended(state order.State, orders int) {
	l.ended.WithLabelValues(string(state)).Add(float64(orders))
}

// Promised counts one order that was stored for the first time, within the time
// its buyer was promised or not.
func (l *life) Promised(kept bool) {
	if kept {
		l.promises.WithLabelValues("yes").Inc()
		return
	}
	l.promises.WithLabelValues("no").Inc()
}
