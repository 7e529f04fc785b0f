package reconcile

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/seckill-edge/seckill/backend/compare"
	"github.com/seckill-edge/seckill/backend/fence"
	"github.com/seckill-edge/seckill/backend/metrics"
	"github.com/seckill-edge/seckill/backend/relay"
	"github.com/seckill-edge/seckill/backend/settle"
	"github.com/seckill-edge/seckill/backend/store"
	"github.com/seckill-edge/seckill/internal/queue"
	"github.com/seckill-edge/seckill/lua"
)

// Deps are what a reconciler works with. All are required.
type Deps struct {
	Redis   redis.UniversalClient
	Store   *store.Store
	Queue   Queue
	Relay   *relay.Relay
	Settler *settle.Settler
	Fence   *fence.Fence
	Metrics *metrics.Metrics
	Log     *slog.Logger
	// Patience is how old an order must be before it is missed where it should be;
	// 0 means relay.Patience.
	Patience time.Duration
}

// Queue is what is asked of the broker.
type Queue interface {
	queue.Inspector
	queue.DeadLetters
}

const (
	callTimeout = 5 * time.Second
	// secondLook is how long after the first look a difference must still be
	// there: longer than a delivery from a queue that is empty to a row takes.
	secondLook = 2 * time.Second
)

// Reconciler inspects activities. It is safe for concurrent use.
type Reconciler struct{ Deps }

// New makes a reconciler.
func New(d Deps) *Reconciler {
	kinds := make([]string, 0, len(mends))
	for _, kind := range compare.Kinds() {
		kinds = append(kinds, string(kind))
	}
	d.Metrics.FindingKinds(kinds)
	d.Patience = cmp.Or(d.Patience, relay.Patience)
	return &Reconciler{d}
}

// Reconcile inspects an activity, and mends it unless dry. The report says what
// was found in any case; an error means that it could not be finished, and names
// the store.
func (r *Reconciler) Reconcile(ctx context.Context, a store.Activity, dry bool) (Report, error) {
	report, err := r.Inspect(ctx, a)
	if err == nil && !dry {
		err = r.mend(ctx, a, &report)
	}
	for _, kind := range compare.Kinds() {
		if n := report.Counts[kind]; n > 0 {
			r.Metrics.Findings(string(kind), n, report.Mended[kind])
			r.Log.Warn("reconcile: found a difference", "product", a.ProductID, "activity", a.ID, "kind", kind,
				"findings", n, "mended", report.Mended[kind], "as", mends[kind])
		}
	}
	if err != nil {
		return report, fmt.Errorf("reconciling activity %s of product %s: %w", a.ID, a.ProductID, err)
	}
	return report, nil
}

// idle says that no order is on its way: queue and backends have none in hand.
// What edges carry is in the outbox.
func (r *Reconciler) idle(ctx context.Context) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	waiting, _, err := r.Queue.Depth(ctx)
	if err != nil {
		return false, fmt.Errorf("asking the broker for its depth: %w", err)
	}
	if waiting > 0 {
		return false, nil
	}
	backends, err := lua.Backends(ctx, r.Redis)
	if err != nil {
		return false, err
	}
	now, err := r.Redis.Time(ctx).Result()
	if err != nil {
		return false, fmt.Errorf("asking Redis for the time: %w", err)
	}
	for _, b := range backends {
		if b.InHand > 0 && now.Sub(b.At).Abs() < secondLook {
			return false, nil
		}
	}
	return true, nil
}

func (r *Reconciler) snapshot(ctx context.Context, product string) (lua.Snapshot, bool, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	return lua.Audit(ctx, r.Redis, product)
}

func wait(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}
