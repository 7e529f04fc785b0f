package activities

import (
	"context"
	"fmt"
	"log/slog"
	"slices"

	"github.com/seckill-edge/seckill/backend/rails"
	"github.com/seckill-edge/seckill/backend/store"
)

// Option changes one Preheat or Open.
type Option int

// AcceptRedisRisk goes on though Redis is not fit to hold a stock: it may evict
// keys, forgets them in a restart, or is too small. For development.
const AcceptRedisRisk Option = 1

// fit refuses a Redis that is not fit to hold the units that a has still to sell,
// and returns what it does not tell, or what is accepted.
func (s *Service) fit(ctx context.Context, a store.Activity, units int64, options []Option) ([]rails.Problem, error) {
	problems, err := rails.Inspect(ctx, s.Redis, map[string]int64{a.ProductID: units})
	if err != nil {
		return nil, err
	}
	if bad := rails.Refusable(problems); len(bad) > 0 && !slices.Contains(options, AcceptRedisRisk) {
		return nil, blockedBy(Unfit, rails.Join(bad)+" (or accept the risk, for development: --accept-redis-risk, in the API accept_redis_risk=true)")
	}
	return problems, nil
}

// warn tells the log of what a sale begins with all the same.
func (s *Service) warn(ctx context.Context, a store.Activity, problems []rails.Problem, options []Option) {
	level := slog.LevelWarn
	if slices.Contains(options, AcceptRedisRisk) {
		level = slog.LevelInfo // it is known and meant
	}
	if len(problems) > 0 {
		s.Log.Log(ctx, level, "activity: starting on a Redis that may not be fit to hold a stock", "activity", a.ID, "product", a.ProductID,
			"problems", rails.Join(problems))
	}
}

// Guard says whether Redis is fit to hold the stock of all live activities.
func (s *Service) Guard(ctx context.Context) ([]rails.Problem, error) {
	all, err := s.Store.Unarchived(ctx)
	if err != nil {
		return nil, fmt.Errorf("guarding Redis: %w", err)
	}
	units := map[string]int64{}
	for _, a := range all {
		if a.State != store.Open && a.State != store.Held {
			continue
		}
		snapshot, err := s.snapshot(ctx, a.ProductID)
		if err != nil {
			return nil, fmt.Errorf("guarding Redis: %w", err)
		}
		if snapshot != nil && snapshot.ID == a.ID {
			units[a.ProductID] = snapshot.Available
		}
	}
	problems, err := rails.Inspect(ctx, s.Redis, units)
	if err != nil {
		return nil, fmt.Errorf("guarding Redis: %w", err)
	}
	return problems, nil
}
