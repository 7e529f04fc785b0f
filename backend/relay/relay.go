// Package relay brings orders on their way that an edge left behind: one that
// died, or could not reach the broker, leaves them in Redis's outbox, and they are
// published from there. A pass may be repeated and may overlap with an edge that
// is alive after all: orders keep their ids.
package relay

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/seckill-edge/seckill/backend/duty"
	"github.com/seckill-edge/seckill/backend/metrics"
	"github.com/seckill-edge/seckill/backend/store"
	"github.com/seckill-edge/seckill/internal/queue"
	"github.com/seckill-edge/seckill/lua"
)

// Deps are what a relay works with. All are required.
type Deps struct {
	Redis     redis.UniversalClient
	Store     *store.Store
	Publisher queue.Publisher
	Metrics   *metrics.Metrics
	Log       *slog.Logger
}

const (
	// Patience is how long an edge may take to publish and confirm; younger
	// entries of the outbox are its own business.
	Patience    = 3 * time.Second
	callTimeout = 5 * time.Second
	// forget is how often a sale that is closed and drained is looked at again.
	forget = time.Minute
)

// Relay looks at all activities in SQL, again and again. One Pass at a time, over
// all backends, is enough.
type Relay struct {
	Deps
	// known is the last list SQL gave: a database that is away must not keep
	// reservations from the broker.
	known []store.Activity
	// drained says until when a closed activity is not looked at.
	drained map[string]time.Time
}

// New makes a relay.
func New(d Deps) *Relay {
	return &Relay{Deps: d, drained: map[string]time.Time{}}
}

// Pass goes over all activities once. It goes on after a failure of one, and
// returns the first.
func (r *Relay) Pass(ctx context.Context) error {
	all, err := r.Store.Activities(ctx)
	if err == nil {
		r.known = all
	} else {
		err = fmt.Errorf("relay: listing activities: %w", err)
	}
	for _, a := range r.known {
		if a.State == store.Scheduled || time.Now().Before(r.drained[a.ID]) {
			continue
		}
		if failed := duty.Safely(func() error { return r.look(ctx, a) }); failed != nil && err == nil {
			err = fmt.Errorf("relay: product %s: %w", a.ProductID, failed)
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
	}
	return err
}

func (r *Relay) look(ctx context.Context, a store.Activity) error {
	asking, cancel := context.WithTimeout(ctx, callTimeout)
	snapshot, there, err := lua.Audit(asking, r.Redis, a.ProductID)
	cancel()
	if err != nil {
		return err
	}
	if !there || snapshot.ID != a.ID || snapshot.Outbox == 0 {
		if a.State == store.Closed {
			r.drained[a.ID] = time.Now().Add(forget)
		}
		return nil
	}
	return r.PublishOutbox(ctx, snapshot, Patience)
}
