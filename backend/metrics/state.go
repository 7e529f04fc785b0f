package metrics

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Stock is one activity's counters in units, as one scrape shows them.
type Stock struct {
	Product                               string
	Total, Available, Frozen, Sold, Drift int64
	Outbox                                int64
	// DriftUnknown leaves the drift out: the broker did not say what is on its way.
	DriftUnknown bool
}

// Source reads, while somebody scrapes, what is counted elsewhere. A failure is
// shown as a missing value, never as 0.
type Source interface {
	// Stocks may return some with an error that says why others are missing.
	Stocks(ctx context.Context) ([]Stock, error)
	Depth(ctx context.Context) (waiting, dead int, err error)
	Unsettled() int
	// RefundsDue counts payments whose money is due back.
	RefundsDue(ctx context.Context) (int64, error)
	// Unready counts, by what stands in their way, the activities that should be
	// ready to sell and are not.
	Unready(ctx context.Context) (map[string]int, error)
}

// Watch adds the values of source to the registry. One scrape asks for at most
// timeout.
func (m *Metrics) Watch(source Source, timeout time.Duration) {
	m.Registry.MustRegister(&state{source: source, timeout: timeout})
}

type state struct {
	source  Source
	timeout time.Duration
}

var (
	totalDesc     = unitDesc("total", "Units the activity sells in all.")
	availableDesc = unitDesc("available", "Units nobody has reserved.")
	frozenDesc    = unitDesc("frozen", "Units reserved and not settled.")
	soldDesc      = unitDesc("sold", "Units settled.")
	driftDesc     = unitDesc("drift", "Units on which Redis and SQL disagree; 0 is right.")
	outboxDesc    = prometheus.NewDesc("seckill_activity_outbox_orders", "Orders the broker has not confirmed yet.", []string{"product"}, nil)
	depthDesc     = prometheus.NewDesc("seckill_backend_queue_messages", "Messages in the broker: waiting, or among the dead letters.", []string{"queue"}, nil)
	refundsDesc   = prometheus.NewDesc("seckill_backend_refunds_due", "Payments that came too late or twice and were not given back yet.", nil, nil)
	unreadyDesc   = prometheus.NewDesc("seckill_backend_activities_unready", "Activities that are due and not ready to sell, by what stands in their way.", []string{"obstacle"}, nil)
	unsettledDesc = prometheus.NewDesc("seckill_backend_unsettled_orders", "Stored orders that wait for Redis.", nil, nil)
)

func unitDesc(name, help string) *prometheus.Desc {
	return prometheus.NewDesc("seckill_activity_"+name+"_units", help, []string{"product"}, nil)
}

// Describe implements prometheus.Collector.
func (s *state) Describe(out chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{totalDesc, availableDesc, frozenDesc, soldDesc, driftDesc, outboxDesc, depthDesc, unsettledDesc, refundsDesc, unreadyDesc} {
		out <- d
	}
}

// Collect implements prometheus.Collector.
func (s *state) Collect(out chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), s.timeout)
	defer cancel()
	gauge := func(d *prometheus.Desc, value float64, labels ...string) {
		out <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, value, labels...)
	}
	gauge(unsettledDesc, float64(s.source.Unsettled()))
	// A broker that hangs must not use up the time of all others.
	asking, enough := context.WithTimeout(ctx, s.timeout/3)
	defer enough()
	if waiting, dead, err := s.source.Depth(asking); err == nil {
		gauge(depthDesc, float64(waiting), "waiting")
		gauge(depthDesc, float64(dead), "dead")
	}
	if due, err := s.source.RefundsDue(ctx); err == nil {
		gauge(refundsDesc, float64(due))
	}
	unready, _ := s.source.Unready(ctx)
	for obstacle, n := range unready {
		gauge(unreadyDesc, float64(n), obstacle)
	}
	stocks, _ := s.source.Stocks(ctx) // what cannot be read is missing
	for _, stock := range stocks {
		gauge(totalDesc, float64(stock.Total), stock.Product)
		gauge(availableDesc, float64(stock.Available), stock.Product)
		gauge(frozenDesc, float64(stock.Frozen), stock.Product)
		gauge(soldDesc, float64(stock.Sold), stock.Product)
		if !stock.DriftUnknown {
			gauge(driftDesc, float64(stock.Drift), stock.Product)
		}
		gauge(outboxDesc, float64(stock.Outbox), stock.Product)
	}
}
