package metrics

import (
	"context"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/seckill-edge/seckill/backend/duty"
	"github.com/seckill-edge/seckill/backend/readiness"
)

// Stock is one activity's counters in units, as one scrape shows them.
type Stock struct {
	Product                               string
	Total, Available, Frozen, Sold, Drift int64
	Outbox                                int64
	// DriftUnknown leaves the drift out: the broker did not say what is on its way,
	// or SQL what is stored.
	DriftUnknown bool
}

// Source reads, while somebody scrapes, what is counted elsewhere. A failure is
// shown as a missing value, never as 0.
type Source interface {
	// NotReady is what keeps orders from being stored, by part, see package readiness.
	NotReady(ctx context.Context) map[string]error
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
	readyDesc     = prometheus.NewDesc("seckill_backend_ready", "1 while orders can be stored.", nil, nil)
	notReadyDesc  = prometheus.NewDesc("seckill_backend_not_ready", "1 while orders cannot be stored for this cause.", []string{"part", "cause"}, nil)
	completeDesc  = prometheus.NewDesc("seckill_activity_scrape_complete", "1 if this scrape shows every live activity with its drift; 0 if the time or a store was not enough.", nil, nil)
	unsettledDesc = prometheus.NewDesc("seckill_backend_unsettled_orders", "Stored orders that wait for Redis.", nil, nil)
)

func unitDesc(name, help string) *prometheus.Desc {
	return prometheus.NewDesc("seckill_activity_"+name+"_units", help, []string{"product"}, nil)
}

// Describe implements prometheus.Collector.
func (s *state) Describe(out chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{totalDesc, availableDesc, frozenDesc, soldDesc, driftDesc, outboxDesc, depthDesc, unsettledDesc, refundsDesc, unreadyDesc, readyDesc, notReadyDesc, completeDesc} {
		out <- d
	}
}

// Collect implements prometheus.Collector. The stores are asked at once: one that
// hangs must not use up the time of all others.
func (s *state) Collect(out chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), s.timeout)
	defer cancel()
	var asking sync.WaitGroup
	for _, part := range []func(context.Context, chan<- prometheus.Metric){s.ready, s.depth, s.refunds, s.unready, s.stocks} {
		asking.Go(func() { _ = duty.Safely(func() error { part(ctx, out); return nil }) }) // what cannot be read is missing
	}
	gauge(out, unsettledDesc, float64(s.source.Unsettled()))
	asking.Wait()
}

func gauge(out chan<- prometheus.Metric, d *prometheus.Desc, value float64, labels ...string) {
	out <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, value, labels...)
}

func (s *state) ready(ctx context.Context, out chan<- prometheus.Metric) {
	causes := readiness.CausesOf(s.source.NotReady(ctx))
	gauge(out, readyDesc, oneIf(len(causes) == 0))
	for _, part := range readiness.Parts {
		for _, cause := range readiness.Causes(part) {
			gauge(out, notReadyDesc, oneIf(causes[part] == cause), part, cause)
		}
	}
}

func oneIf(is bool) float64 {
	if is {
		return 1
	}
	return 0
}

func (s *state) depth(ctx context.Context, out chan<- prometheus.Metric) {
	if waiting, dead, err := s.source.Depth(ctx); err == nil {
		gauge(out, depthDesc, float64(waiting), "waiting")
		gauge(out, depthDesc, float64(dead), "dead")
	}
}

func (s *state) refunds(ctx context.Context, out chan<- prometheus.Metric) {
	if due, err := s.source.RefundsDue(ctx); err == nil {
		gauge(out, refundsDesc, float64(due))
	}
}

func (s *state) unready(ctx context.Context, out chan<- prometheus.Metric) {
	unready, _ := s.source.Unready(ctx)
	for obstacle, n := range unready {
		gauge(out, unreadyDesc, float64(n), obstacle)
	}
}

func (s *state) stocks(ctx context.Context, out chan<- prometheus.Metric) {
	stocks, err := s.source.Stocks(ctx)
	gauge(out, completeDesc, oneIf(err == nil))
	for _, stock := range stocks {
		gauge(out, totalDesc, float64(stock.Total), stock.Product)
		gauge(out, availableDesc, float64(stock.Available), stock.Product)
		gauge(out, frozenDesc, float64(stock.Frozen), stock.Product)
		gauge(out, soldDesc, float64(stock.Sold), stock.Product)
		if !stock.DriftUnknown {
			gauge(out, driftDesc, float64(stock.Drift), stock.Product)
		}
		gauge(out, outboxDesc, float64(stock.Outbox), stock.Product)
	}
}
