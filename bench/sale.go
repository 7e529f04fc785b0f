package main

import (
	"context"
	"fmt"
	"time"

	"github.com/seckill-edge/seckill/backend/store"
	"github.com/seckill-edge/seckill/internal/order"
	"github.com/seckill-edge/seckill/lua"
)

// fresh is an activity that starts now, named by its kind and the time; its
// product has the same id.
func fresh(kind string, units int64) store.Activity {
	now := time.Now().UTC().Truncate(time.Millisecond)
	id := fmt.Sprintf("%s-%d", kind, now.UnixMilli())
	return store.Activity{
		ID: id, ProductID: id, Title: kind, Start: now.Add(-time.Minute), End: now.Add(time.Hour),
		Total: units, Limit: 1, State: store.Open, CreatedAt: now,
	}
}

// newSale makes an open sale in SQL and Redis. end closes it in both, so that the
// backend has nothing to do with it during the next measurement.
func (s *stack) newSale(ctx context.Context, kind string, units int64) (product string, end func(), err error) {
	a := fresh(kind, units)
	if err := s.store.CreateActivity(ctx, a); err != nil {
		return "", nil, err
	}
	if err := s.preheat(ctx, a); err != nil {
		return "", nil, err
	}
	return a.ProductID, func() {
		_, _, _ = lua.SetState(ctx, s.rdb, a.ProductID, a.ID, lua.Closed)
		_ = s.store.SetActivityState(ctx, a.ID, []store.ActivityState{store.Open}, store.Closed)
	}, nil
}

// redisSale makes a sale that SQL and the backend know nothing of; end removes it.
func (s *stack) redisSale(ctx context.Context, kind string) (product string, end func(), err error) {
	a := fresh(kind, order.MaxUnits)
	if err := s.preheat(ctx, a); err != nil {
		return "", nil, err
	}
	return a.ProductID, func() {
		k := lua.KeysOf(a.ProductID)
		_ = s.rdb.Unlink(ctx, k.Activity, k.Stock, k.Frozen, k.Sold, k.Users, k.Outbox, k.Edges)
	}, nil
}

func (s *stack) preheat(ctx context.Context, a store.Activity) error {
	done, err := lua.Preheat(ctx, s.rdb, lua.Activity{
		ID: a.ID, ProductID: a.ProductID, Title: a.Title, Start: a.Start, End: a.End, Total: a.Total, Limit: a.Limit, State: lua.Open,
	})
	if err == nil && done != lua.Loaded {
		err = fmt.Errorf("preheating %s: %v", a.ProductID, done)
	}
	return err
}

// waitStored waits until every accepted order is stored and settled.
func (s *stack) waitStored(ctx context.Context, product string, accepted uint64) (stored int64, lag time.Duration, err error) {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	start := time.Now()
	for {
		snapshot, _, err := lua.Audit(ctx, s.rdb, product)
		if err == nil && snapshot.Sold == int64(accepted) && snapshot.Outbox == 0 && snapshot.Frozen == 0 {
			totals, err := s.store.Totals(ctx, product)
			if err != nil {
				return 0, 0, err
			}
			stored = totals[order.Created].Orders
			if stored != int64(accepted) {
				return 0, 0, fmt.Errorf("accepted %d, stored %d", accepted, stored)
			}
			return stored, time.Since(start), nil
		}
		select {
		case <-ctx.Done():
			return 0, 0, fmt.Errorf("accepted %d, but after two minutes Redis says %+v: %w", accepted, snapshot, err)
		case <-time.After(10 * time.Millisecond):
		}
	}
}
