package queue

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/seckill-edge/seckill/internal/servicetest"
)

// benchmarked are the brokers to measure: only memory with -short.
func benchmarked() map[string]func(*testing.B) Broker {
	brokers := map[string]func(*testing.B) Broker{
		"memory": func(*testing.B) Broker { return newMemory(memoryLimits{messages: 1 << 30, bytes: 1 << 40}) },
	}
	if !testing.Short() {
		brokers["rabbitmq"] = func(b *testing.B) Broker {
			broker, err := Open(servicetest.SharedRabbitMQ(b).VHost(b))
			require.NoError(b, err)
			return broker
		}
	}
	return brokers
}

// callers is how many publish at once: the confirm window.
const callers = 64

func publishMany(b *testing.B, p Publisher, n int) {
	b.Helper()
	body := make([]byte, 200)
	work := make(chan struct{}, n)
	for range n {
		work <- struct{}{}
	}
	close(work)
	failures := make(chan error, callers)
	var wg sync.WaitGroup
	for range callers {
		wg.Go(func() {
			for range work {
				if err := p.Publish(context.Background(), Orders, Message{ID: "01j0000000000000000000000", Body: body}); err != nil {
					failures <- err
					return
				}
			}
		})
	}
	wg.Wait()
	select {
	case err := <-failures:
		b.Fatal(err)
	default:
	}
}

// BenchmarkPublish: 64 callers, 200 bytes, each waits for its confirmation.
func BenchmarkPublish(b *testing.B) {
	for name, open := range benchmarked() {
		b.Run(name, func(b *testing.B) {
			broker := open(b)
			p := broker.Publisher(Options{})
			publishMany(b, p, 1)
			b.ReportAllocs()
			b.ResetTimer()
			publishMany(b, p, b.N)
			b.StopTimer()
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "msg/s")
			drain(b, broker, b.N+1)()
			require.NoError(b, p.Close(b.Context()))
		})
	}
}

// BenchmarkConsume: a backlog, taken and acknowledged one by one.
func BenchmarkConsume(b *testing.B) {
	for name, open := range benchmarked() {
		b.Run(name, func(b *testing.B) {
			broker := open(b)
			p := broker.Publisher(Options{})
			publishMany(b, p, b.N)
			b.ReportAllocs()
			b.ResetTimer()
			drain(b, broker, b.N)()
			b.StopTimer()
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "msg/s")
			require.NoError(b, p.Close(b.Context()))
		})
	}
}

// drain takes n messages in the background; the function it returns waits.
func drain(b *testing.B, broker Broker, n int) (wait func()) {
	b.Helper()
	out := make(chan Delivery, 256)
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	var wg sync.WaitGroup
	failures := make(chan error, 2)
	wg.Go(func() { failures <- broker.Consumer(Options{Prefetch: 256}).Consume(ctx, out) })
	wg.Go(func() {
		defer cancel()
		for range n {
			select {
			case d := <-out:
				if err := d.Ack(); err != nil {
					failures <- err
					return
				}
			case <-ctx.Done():
				failures <- ctx.Err()
				return
			}
		}
		failures <- nil
	})
	return func() {
		wg.Wait()
		require.NoError(b, <-failures)
		require.NoError(b, <-failures)
	}
}
