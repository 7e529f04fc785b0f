package backend_test

import (
	"testing"
	"time"
)

// BenchmarkDrain stores and settles a backlog of b.N orders.
func BenchmarkDrain(b *testing.B) {
	for _, k := range kinds() {
		b.Run(k.name, func(b *testing.B) {
			w := k.make(b)
			w.sale(int64(b.N), 0)
			w.publish(w.reserve(b.N))
			began := time.Now()
			b.ResetTimer()
			w.backend()
			look := time.NewTicker(10 * time.Millisecond)
			defer look.Stop()
			for range look.C {
				if w.snapshot().Sold == int64(b.N) {
					break
				}
				if time.Since(began) > time.Minute {
					b.Fatal("not drained within a minute")
				}
			}
			b.ReportMetric(float64(b.N)/time.Since(began).Seconds(), "orders/s")
		})
	}
}
