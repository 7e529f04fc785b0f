package metrics

import "github.com/prometheus/client_golang/prometheus"

// Guard is the gauge of what makes Redis unfit to hold a stock.
type Guard struct {
	kinds []string
	gauge *prometheus.GaugeVec
}

// NewGuard adds the gauge to the registry. kinds are all its labels; nothing is
// shown until the first Set.
func (m *Metrics) NewGuard(kinds []string) *Guard {
	g := &Guard{kinds: kinds, gauge: prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Namespace: namespace, Subsystem: "redis", Name: "guard",
		Help: "1 while Redis is not fit to hold a stock: it evicts keys, does not persist, is too small, or does not tell.",
	}, []string{"problem"})}
	m.Registry.MustRegister(g.gauge)
	return g
}

// Set shows the problems there are now.
func (g *Guard) Set(problems map[string]bool) {
	for _, k := range g.kinds {
		value := 0.0
		if problems[k] {
			value = 1
		}
		g.gauge.WithLabelValues(k).Set(value)
	}
}
