package main

import (
	"context"
	"crypto/rand"
	"fmt"
	"log/slog"
	"time"

	"github.com/seckill-edge/seckill/backend/store"
	"github.com/seckill-edge/seckill/internal/order"
)

// batchSize is how many orders the backend stores in one transaction under load.
const batchSize = 1000

func openStore(ctx context.Context, address string) (*store.Store, error) {
	s, err := store.New(ctx, address, slog.New(slog.DiscardHandler))
	if err != nil {
		return nil, err
	}
	_, err = s.Migrate(ctx)
	return s, err
}

// measureBatched stores orders by one writer, one a transaction and a thousand.
func measureBatched(ctx context.Context, s *stack, o options, r *report) error {
	single, err := s.save(ctx, o, 1)
	if err != nil {
		return err
	}
	r.figure("orders stored /s, one a transaction", single)
	batched, err := s.save(ctx, o, batchSize)
	if err != nil {
		return err
	}
	r.figure(fmt.Sprintf("orders stored /s, %d a transaction", batchSize), batched)
	r.ratio("batched", batched/single)
	return nil
}

func (s *stack) save(ctx context.Context, o options, perTransaction int) (float64, error) {
	a := fresh("batched", order.MaxUnits)
	a.State = store.Scheduled // Redis has none of it, and the backend looks for none
	if err := s.store.CreateActivity(ctx, a); err != nil {
		return 0, err
	}
	orders := make([]order.Order, perTransaction)
	stored, buyer := 0, 0
	var took time.Duration // without the making of orders
	for took < o.duration()/2 {
		now := time.Now().Truncate(time.Millisecond)
		for i := range orders {
			id, err := order.NewID(now, rand.Reader)
			if err != nil {
				return 0, err
			}
			buyer++
			orders[i] = order.Order{
				ID: id, ActivityID: a.ID, ProductID: a.ProductID, UserID: fmt.Sprintf("buyer-%d", buyer),
				Quantity: 1, Claim: 1, ReservedAt: now,
			}
		}
		start := time.Now()
		saved, err := s.store.SaveOrders(ctx, orders)
		took += time.Since(start)
		if err != nil {
			return 0, err
		}
		for _, s := range saved {
			if s.State != order.Created {
				return 0, fmt.Errorf("order %s is %s %s", s.OrderID, s.State, s.Reason)
			}
		}
		stored += len(saved)
	}
	return float64(stored) / took.Seconds(), nil
}
