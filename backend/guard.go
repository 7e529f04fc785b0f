package backend

import (
	"context"
	"log/slog"
	"maps"
	"sync"
	"time"

	"github.com/seckill-edge/seckill/backend/activities"
	"github.com/seckill-edge/seckill/backend/duty"
	"github.com/seckill-edge/seckill/backend/metrics"
	"github.com/seckill-edge/seckill/backend/rails"
)

const (
	// guardEvery is how often Redis is asked whether it is fit; guardSoon while it
	// has not answered yet.
	guardEvery  = 10 * time.Second
	guardSoon   = time.Second
	guardWithin = 5 * time.Second
)

// guard watches whether Redis is fit to hold a stock. It warns and never refuses:
// a sale that is on goes on.
type guard struct {
	activities *activities.Service
	gauge      *metrics.Guard
	passes     *duty.Log
	log        *slog.Logger
	accepted   bool // a Redis that is not fit is meant

	mu   sync.Mutex
	last map[rails.Kind]string
}

func newGuard(a *activities.Service, m *metrics.Metrics, passes *duty.Log, log *slog.Logger, accepted bool) *guard {
	names := make([]string, len(rails.Kinds))
	for i, k := range rails.Kinds {
		names[i] = string(k)
	}
	return &guard{activities: a, gauge: m.NewGuard(names), passes: passes, log: log, accepted: accepted}
}

// run asks again and again until ctx ends. While Redis or SQL is away the last
// answer stands.
func (g *guard) run(ctx context.Context) {
	wait := guardSoon
	for {
		_ = g.passes.Pass(ctx, duty.Guard, func() error {
			asking, cancel := context.WithTimeout(ctx, guardWithin)
			defer cancel()
			problems, err := g.activities.Guard(asking)
			if err == nil { // others say what is away
				g.set(problems)
				wait = guardEvery
			}
			return nil
		})
		timer := time.NewTimer(wait)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return
		}
	}
}

// set shows the problems, and logs each kind when it begins and when it is over.
func (g *guard) set(problems []rails.Problem) {
	level := slog.LevelWarn
	if g.accepted {
		level = slog.LevelInfo
	}
	now, shown := map[rails.Kind]string{}, map[string]bool{}
	for _, p := range problems {
		if g.accepted && p.Kind == rails.Unknown {
			continue // nobody needs to make sure of what is accepted in any case
		}
		shown[string(p.Kind)] = true
		if now[p.Kind] != "" {
			now[p.Kind] += " | "
		}
		now[p.Kind] += p.String()
	}
	g.gauge.Set(shown)
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, k := range rails.Kinds {
		switch before, is := g.last[k], now[k]; {
		case before == "" && is != "":
			g.log.Log(context.Background(), level, "redis: not fit to hold a stock", "problem", string(k), "what", is)
		case before != "" && is == "":
			g.log.Info("redis: a problem is over", "problem", string(k))
		}
	}
	g.last = now
}

// problems are those found in the last seconds, in words.
func (g *guard) problems() map[rails.Kind]string {
	g.mu.Lock()
	defer g.mu.Unlock()
	return maps.Clone(g.last)
}
