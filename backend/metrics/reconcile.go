package metrics

import "time"

// FindingKinds says which kinds there are, so that each is shown as 0 before it
// happens.
func (m *Metrics) FindingKinds(kinds []string) {
	for _, kind := range kinds {
		m.findings.WithLabelValues(kind)
		m.mended.WithLabelValues(kind)
	}
}

// Findings counts what an inspection has found and what was mended of it.
func (m *Metrics) Findings(kind string, found, mended int) {
	m.findings.WithLabelValues(kind).Add(float64(found))
	m.mended.WithLabelValues(kind).Add(float64(mended))
}

// Rebuilt counts one stock that was proven, and how long its gate was shut.
func (m *Metrics) Rebuilt(held time.Duration) {
	m.rebuilds.Inc()
	m.held.Observe(held.Seconds())
}
