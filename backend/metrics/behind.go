package metrics

import "github.com/prometheus/client_golang/prometheus"

// Behind adds the gauge of a database that has forgotten something, see package tide.
func (m *Metrics) Behind(behind func() bool) {
	m.Registry.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Namespace: namespace, Subsystem: subsystem, Name: "database_behind",
		Help: "1 while the database has forgotten what it had confirmed; every sale is held until seckilld recover has run.",
	}, func() float64 {
		if behind() {
			return 1
		}
		return 0
	}))
}
