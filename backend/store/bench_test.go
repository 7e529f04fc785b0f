package store

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/seckill-edge/seckill/internal/order"
)

// One order a transaction, as simple consumers do, against batches. The clock and
// the making of orders are outside; orders/s is what counts.
func BenchmarkSaveOrders(b *testing.B) {
	for _, d := range databases() {
		for _, size := range []int{1, 100, 500, 1000, 2000} {
			b.Run(fmt.Sprintf("%s/%d", d.name, size), func(b *testing.B) {
				benchmark(b, d.fresh(b), size, 1)
			})
		}
		b.Run(d.name+"/500by2backends", func(b *testing.B) { benchmark(b, d.fresh(b), 500, 2) })
	}
}

func benchmark(b *testing.B, address string, size, backends int) {
	stores := make([]*Store, backends)
	for i := range stores {
		stores[i] = open(b, address)
	}
	_, err := stores[0].Migrate(b.Context())
	require.NoError(b, err)
	a := sale(b, stores[0], order.MaxUnits, 1)
	batches := make(chan []order.Order, b.N)
	for range b.N {
		batches <- a.crowd(size)
	}
	close(batches)
	b.ReportAllocs()
	b.ResetTimer()
	began := time.Now()
	var group errgroup.Group
	for _, s := range stores {
		group.Go(func() error {
			for batch := range batches {
				if _, err := s.SaveOrders(b.Context(), batch); err != nil {
					return err
				}
			}
			return nil
		})
	}
	require.NoError(b, group.Wait())
	b.ReportMetric(float64(b.N*size)/time.Since(began).Seconds(), "orders/s")
	b.StopTimer()
	require.EqualValues(b, b.N*size, requireExact(b, stores[0], a.ID))
}
