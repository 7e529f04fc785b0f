// Package promise keeps what the edges promise: the fate of an order that was
// answered "queued" can be read by its resolve_by. A broker that is away or slow is
// no reason to reject anything; but what it does not deliver in time is stored
// straight from Redis's records, the same way in which the consumer stores it. The
// message that comes later is a repeat.
//
//	outbox   orders that nobody could publish until they are After old
//	walk     orders that the broker has confirmed and then does not deliver, because it
//	         is away or has lost them, looked for in the buyers' records
//	store    one transaction, then Redis is told, which empties the outbox too
//
// No list of confirmed orders is kept for the walk: it would make each purchase
// dearer for a loss that is rare. A walk reads all records of a sale, and is made only
// when something can be due in it, see walkIfDue.
//
// Every step may be repeated and may happen in two places at once: ids are unique
// in SQL, and a move in Redis is made once. While SQL or Redis is away nothing can
// be done: the promise is broken, counted, and kept late.
package promise

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/seckill-edge/seckill/backend/duty"
	"github.com/seckill-edge/seckill/backend/metrics"
	"github.com/seckill-edge/seckill/backend/settle"
	"github.com/seckill-edge/seckill/backend/store"
	"github.com/seckill-edge/seckill/internal/order"
	"github.com/seckill-edge/seckill/internal/queue"
	"github.com/seckill-edge/seckill/lua"
)

// Config of a keeper. Zero values mean the defaults.
type Config struct {
	// Within is what the edges promise, their resolve_within. Default 30 s.
	Within time.Duration
	// After is the age from which an order is stored without the broker. Default
	// half of Within.
	After time.Duration
}

// WithDefaults fills what is zero.
func (c Config) WithDefaults() Config {
	if c.Within == 0 {
		c.Within = 30 * time.Second
	}
	if c.After == 0 {
		c.After = c.Within / 2
	}
	return c
}

// Validate says what is wrong with a config, if anything, by the names of the
// options.
func (c Config) Validate() error {
	c = c.WithDefaults()
	if c.Within < order.MinResolveWithin || c.Within > order.MaxResolveWithin {
		return fmt.Errorf("--resolve-within %s: must be the edges' resolve_within, %s to 1h", c.Within, order.MinResolveWithin)
	}
	if most := c.Within * 2 / 3; c.After < 0 || c.After > most {
		return fmt.Errorf("--store-directly-after %s: must leave a third of --resolve-within %s to act in: at most %s, or 0", c.After, c.Within, most)
	}
	return nil
}

// Deps are what a keeper works with. All are required.
type Deps struct {
	Redis   redis.UniversalClient
	Store   *store.Store
	Queue   queue.Inspector
	Settler *settle.Settler
	// Stalled says that storing waits for the database: what a keeper would store
	// would wait beside it.
	Stalled func() bool
	Metrics *metrics.Metrics
	Log     *slog.Logger
}

const (
	every       = time.Second
	callTimeout = 5 * time.Second
	// forget is how often a sale that is over and settled is looked at again.
	forget = time.Minute
)

// Keeper looks at all activities that are not archived, again and again. One at a time, over all backends,
// is enough, and more do no harm. Run is called once at a time.
type Keeper struct {
	Config
	Deps
	broker broker
	inHand atomic.Int64

	// known is the last list that SQL gave, listed when it was asked for it; able says
	// that SQL answers and stores.
	known  []store.Activity
	listed time.Time
	able   bool
	// resting says until when a sale that is over is not looked at, walks when the
	// next one is due; both by activity.
	resting, walks map[string]time.Time
	// took is how long the last walk of an activity has taken, without its storing.
	took map[string]time.Duration
	// late counts, by activity, the broken promises that a walk has seen.
	late map[string]int
}

// New makes a keeper. c must have its defaults.
func New(c Config, d Deps) *Keeper {
	return &Keeper{
		Config: c, Deps: d,
		resting: map[string]time.Time{}, walks: map[string]time.Time{}, took: map[string]time.Duration{}, late: map[string]int{},
	}
}

// InHand is the number of orders that are being stored.
func (k *Keeper) InHand() int { return int(k.inHand.Load()) }

// Run keeps promises until ctx ends. tell is given each pass's failure, also a
// *duty.PanicError, nil if there was none.
func (k *Keeper) Run(ctx context.Context, tell func(error)) {
	asked := make(chan struct{})
	go func() {
		defer close(asked)
		k.broker.watch(ctx, k.Queue)
	}()
	defer func() { <-asked }()
	defer k.Metrics.OverdueUnknown() // another backend counts them now
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		err := duty.Safely(func() error { return k.pass(ctx, time.Now()) })
		tell(err)
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// pass goes over all activities once. It goes on after a failure of one, and
// returns the first.
func (k *Keeper) pass(ctx context.Context, now time.Time) error {
	failed := k.list(ctx)
	overdue := 0
	for _, a := range k.known {
		if a.State == store.Scheduled || now.Before(k.resting[a.ID]) {
			continue
		}
		var late int
		err := duty.Safely(func() (err error) {
			late, err = k.look(ctx, a, now)
			return err
		})
		overdue += late
		if err != nil && failed == nil {
			failed = fmt.Errorf("promise: product %s: %w", a.ProductID, err)
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
	}
	if !k.listed.IsZero() { // else SQL has been away from the start, and which sales there are is unknown
		k.Metrics.Overdue(overdue)
	}
	return failed
}

func (k *Keeper) list(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	asked := time.Now()
	all, err := k.Store.Unarchived(ctx)
	if k.able = err == nil && !k.Stalled(); err != nil {
		return fmt.Errorf("promise: listing activities: %w", err)
	}
	k.known, k.listed = all, asked
	k.forgetArchived()
	return nil
}

// forgetArchived drops what is remembered of activities that are over for good.
func (k *Keeper) forgetArchived() {
	known := make(map[string]bool, len(k.known))
	for _, a := range k.known {
		known[a.ID] = true
	}
	gone := func(id string, _ time.Time) bool { return !known[id] }
	maps.DeleteFunc(k.resting, gone)
	maps.DeleteFunc(k.walks, gone)
	maps.DeleteFunc(k.took, func(id string, _ time.Duration) bool { return !known[id] })
	maps.DeleteFunc(k.late, func(id string, _ int) bool { return !known[id] })
}

// look sees to one activity and returns how many of its promises are broken now.
func (k *Keeper) look(ctx context.Context, a store.Activity, now time.Time) (late int, err error) {
	s, ours, err := k.audit(ctx, a)
	if err != nil {
		return k.late[a.ID], err
	}
	if !ours || s.Outbox == 0 && s.Frozen == 0 {
		delete(k.late, a.ID)
		if a.State == store.Closed {
			k.resting[a.ID] = now.Add(forget)
		}
		return 0, nil
	}
	b := &batch{Keeper: k, activity: s.Activity, now: s.Now, counting: !k.able}
	if s.Outbox > 0 {
		err = b.outbox(ctx)
	}
	if err == nil || errors.Is(err, errStore) { // the walk counts what is broken by it
		err = errors.Join(err, k.walkIfDue(ctx, a, s, now))
	}
	return max(b.late, k.late[a.ID]), err
}

// audit reads an activity; false if Redis does not have it, or has another one of
// its product.
func (k *Keeper) audit(ctx context.Context, a store.Activity) (lua.Snapshot, bool, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	s, there, err := lua.Audit(ctx, k.Redis, a.ProductID)
	return s, there && s.ID == a.ID, err
}

// age is how long ago an order was promised, by the clock its resolve_by is told by:
// the edge's, which is in its id.
func age(id string, now time.Time) time.Duration {
	made, ok := order.IDTime(id)
	if !ok {
		return 0
	}
	return now.Sub(made)
}
