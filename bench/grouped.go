package main

import (
	"context"
	"crypto/rand"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/seckill-edge/seckill/internal/order"
	"github.com/seckill-edge/seckill/lua"
)

// measureGrouped reserves on the same Redis one request a call, by as many
// callers as the edge has connections, and 64 requests a call, by the two
// callers an edge has at most.
func measureGrouped(ctx context.Context, s *stack, o options, r *report) error {
	single, err := s.reserve(ctx, o, o.connections, 1)
	if err != nil {
		return err
	}
	r.figure("reservations /s, one per call", single)
	grouped, err := s.reserve(ctx, o, 2, 64)
	if err != nil {
		return err
	}
	r.figure("reservations /s, 64 per call", grouped)
	r.ratio("grouped", grouped/single)
	return nil
}

// reserve counts reservations a second over half of a measurement's time.
func (s *stack) reserve(ctx context.Context, o options, callers, perCall int) (float64, error) {
	product, end, err := s.redisSale(ctx, "grouped")
	if err != nil {
		return 0, err
	}
	defer end()
	snapshot, _, err := lua.Audit(ctx, s.rdb, product)
	if err != nil {
		return 0, err
	}
	client, err := lua.NewClient(s.redis.URL()+fmt.Sprintf("?pool_size=%d", callers), "bench")
	if err != nil {
		return 0, err
	}
	defer client.Close()
	var reserved, buyers atomic.Int64
	start := time.Now()
	stop := start.Add(o.duration() / 2)
	errs := make([]error, callers)
	var wg sync.WaitGroup
	for i := range callers {
		wg.Go(func() {
			for time.Now().Before(stop) && errs[i] == nil {
				errs[i] = reserveOnce(ctx, client, product, snapshot.Epoch, perCall, &reserved, &buyers)
			}
		})
	}
	wg.Wait()
	took := time.Since(start)
	for _, err := range errs {
		if err != nil {
			return 0, err
		}
	}
	return float64(reserved.Load()) / took.Seconds(), nil
}

func reserveOnce(ctx context.Context, c redis.Scripter, product string, epoch int64, n int, reserved, buyers *atomic.Int64) error {
	requests := make([]lua.Request, n)
	for i := range requests {
		id, err := order.NewID(time.Now(), rand.Reader)
		if err != nil {
			return err
		}
		requests[i] = lua.Request{OrderID: id, UserID: fmt.Sprintf("buyer-%d", buyers.Add(1)), Quantity: 1}
	}
	batch, err := lua.Reserve(ctx, c, product, epoch, requests)
	if err != nil {
		return err
	}
	for _, result := range batch.Results {
		if result.Outcome != lua.Reserved {
			return fmt.Errorf("a sale of plenty refused: %v", result.Outcome)
		}
	}
	reserved.Add(int64(n))
	return nil
}
