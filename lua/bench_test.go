package lua

import (
	"fmt"
	"regexp"
	"strconv"
	"sync/atomic"
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"
)

// BenchmarkReserve reserves for buyers who come for the first time, on a private
// Redis (append-only file, fsync every second), four calls in flight.
func BenchmarkReserve(b *testing.B) {
	for _, size := range []int{1, 16, 64, 128} {
		b.Run(fmt.Sprintf("%d", size), func(b *testing.B) {
			c := start(b, "redis")
			a := sale(1_000_000_000, 1)
			load(b, c, a)
			var buyers atomic.Uint64
			b.SetParallelism(2)
			b.ReportAllocs()
			before := cpuMicros(b, c)
			b.ResetTimer()
			b.RunParallel(func(pb *testing.PB) {
				reqs := make([]Request, size)
				for pb.Next() {
					last := buyers.Add(uint64(size))
					for i := range reqs {
						n := ids(last - uint64(i))
						reqs[i] = Request{OrderID: n.next(), UserID: "buyer-" + strconv.FormatUint(uint64(n), 10), Quantity: 1}
					}
					batch, err := Reserve(b.Context(), c, product, 1, reqs)
					if err != nil || batch.Results[0].Outcome != Reserved {
						b.Errorf("%v %v", batch, err)
						return
					}
				}
			})
			b.StopTimer()
			b.ReportMetric(float64(b.N*size)/b.Elapsed().Seconds(), "requests/s")
			b.ReportMetric((cpuMicros(b, c)-before)/float64(b.N*size), "redis-cpu-us/request")
			require.EqualValues(b, b.N*size, audit(b, c).Frozen)
		})
	}
}

// cpuMicros is the processor time that Redis has used. It says more than the
// clock on a machine that is busy with other things.
func cpuMicros(b *testing.B, c redis.UniversalClient) float64 {
	info, err := c.Info(b.Context(), "cpu").Result()
	require.NoError(b, err)
	sum := 0.0
	for _, found := range regexp.MustCompile(`used_cpu_(?:sys|user):([\d.]+)`).FindAllStringSubmatch(info, -1) {
		seconds, err := strconv.ParseFloat(found[1], 64)
		require.NoError(b, err)
		sum += seconds * 1e6
	}
	return sum
}

// BenchmarkSettle tells Redis of stored orders, as many a call as go into one.
func BenchmarkSettle(b *testing.B) {
	c := start(b, "redis")
	load(b, c, sale(1_000_000_000, 1))
	var id ids
	moves := make([]Move, MaxPerCall)
	reqs := make([]Request, MaxPerCall)
	cpu := 0.0
	for b.Loop() {
		b.StopTimer()
		for i := range reqs {
			one := id.next()
			reqs[i] = Request{OrderID: one, UserID: "buyer-" + one, Quantity: 1}
			moves[i] = Move{UserID: reqs[i].UserID, OrderID: one}
		}
		_, err := Reserve(b.Context(), c, product, 1, reqs)
		require.NoError(b, err)
		before := cpuMicros(b, c)
		b.StartTimer()
		moved, err := Settle(b.Context(), c, product, MarkSettled, moves)
		require.NoError(b, err)
		require.Equal(b, Done, moved[0])
		b.StopTimer()
		cpu += cpuMicros(b, c) - before
		b.StartTimer()
	}
	b.ReportMetric(cpu/float64(b.N*MaxPerCall), "redis-cpu-us/order")
}
