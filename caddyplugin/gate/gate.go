// Package gate decides on one click: limits, local view of the activity,
// reservation in Redis together with everybody else who waits now, answer, and
// the publishing of what was reserved. It knows nothing of Caddy or HTTP; time
// and randomness are passed in.
//
// The order of things in one click:
//
//	limits    of the address and the edge, then of the buyer: from memory
//	view      window, closed, sold out: from memory, at most a second old
//	limits    of the product, and of what is on its way for the units left
//	group     requests of a product that wait now go to Redis as one script call
//	records   what a buyer asks of his order, again one command for all who wait
//	forward   what was reserved goes to the queue, after the buyer has his answer;
//	          what the broker confirmed leaves the outbox
package gate

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/seckill-edge/seckill/caddyplugin/limit"
	"github.com/seckill-edge/seckill/internal/order"
	"github.com/seckill-edge/seckill/internal/queue"
	"github.com/seckill-edge/seckill/lua"
)

// Deps are what a gate works with. All but Archive are required.
type Deps struct {
	Redis     redis.UniversalClient
	Publisher queue.Publisher
	Now       func() time.Time
	Random    io.Reader
	Log       *slog.Logger
	// Archive is asked about orders that Redis no longer has; nil for nobody.
	Archive Archive
	// Limits are the limits on this edge; nil for none. They may outlive the gate.
	Limits *limit.Limits
}

// Click is one request to buy, its fields already checked (order.ValidProduct,
// order.ValidUser, 1 to order.MaxQuantity).
type Click struct {
	ProductID string
	UserID    string
	Quantity  int
	// Key is the client's Idempotency-Key; empty for none. A click with the key and
	// the quantity of an earlier one of the same buyer is answered like that one.
	Key string
	// OrderID is the order that the click's proof of entry is for, and ActivityID
	// the activity it was given for; both empty for a click without one. Whatever
	// number of clicks have the same OrderID, one of them buys, and all are
	// answered with its order, even when that has been cancelled since. It must
	// come from Offer.
	OrderID    string
	ActivityID string
}

// Decision is the answer to a click.
type Decision struct {
	// Outcome is lua.Reserved for "queued", else the refusal.
	Outcome lua.Outcome
	// OrderID is the buyer's order: the new one with Reserved, the one he has
	// with AlreadyBought.
	OrderID string
	// ResolveBy is when the order's fate is known at the latest, with Reserved.
	ResolveBy time.Time
	// RetryAfter is when asking again makes sense; 0 if it does not.
	RetryAfter time.Duration
	// Limit is what the limits of the product say.
	Limit limit.Verdict
	// Repeat says, with Reserved, that the order is that of an earlier click with
	// the same key or OrderID.
	Repeat bool
	// Quantity is the units of the order, with Reserved.
	Quantity int
}

// View is an activity as this edge sees it; Now is an estimate of Redis's clock.
type View struct {
	lua.Snapshot
	// Fresh says that Redis has confirmed it within the last seconds and its
	// stock is proven. A view that is not fresh sells nothing.
	Fresh bool
}

// Gate decides on clicks. It is safe for concurrent use.
type Gate struct {
	id     string // names this gate among the edges
	cfg    Config
	deps   Deps
	limits *limit.Limits
	lease  *limit.Lease // of the total that all edges share
	stats  *counters
	late   *lateOrders
	// ends tells all edges how late orders ended.
	ends *lateEnds

	born   time.Time
	outage *outage // of Redis, for the log and for Ready

	// ctx ends the workers; it ends only after Close has drained them.
	ctx     context.Context
	stop    context.CancelFunc
	workers sync.WaitGroup

	sales        salesBook
	records      *records
	streams      *streams
	archiveSlots chan struct{} // archiveCalls
	publish      *forwarder
}

// New checks the config and starts the workers. It dials nothing: a gate without
// Redis refuses with lua.Unavailable until Redis answers. Close must be called.
func New(cfg Config, deps Deps) (*Gate, error) {
	cfg.setDefaults()
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	id, err := order.NewID(deps.Now(), deps.Random)
	if err != nil {
		return nil, fmt.Errorf("naming this edge: %w", err)
	}
	g := &Gate{id: id, cfg: cfg, deps: deps, stats: newCounters(), late: newLateOrders(2 * cfg.ResolveWithin)}
	g.born = deps.Now()
	g.outage = &outage{log: deps.Log, now: deps.Now}
	if g.limits = deps.Limits; g.limits == nil {
		g.limits = limit.New()
	}
	g.lease = g.newLease("")
	g.ctx, g.stop = context.WithCancel(context.Background())
	g.sales.init()
	g.records = newRecords(g)
	g.ends = newLateEnds(g)
	g.streams = newStreams(g)
	g.archiveSlots = make(chan struct{}, archiveCalls)
	g.publish = newForwarder(g)
	g.start(g.watchdog)
	g.start(g.hear)
	return g, nil
}

// Stats returns the counters since New.
func (g *Gate) Stats() Stats {
	s := g.stats.snapshot()
	s.Streams = int64(g.streams.count())
	s.Limits = g.limits.Stats()
	s.Leases = g.leaseStats()
	return s
}

// Ready is nil while Redis answers and takes purchases and the queue takes
// messages; else it says what does not, and why: Redis does not answer, refuses
// purchases for now with which error code, or the edge's user lacks which right. The gate
// itself is usable either way.
func (g *Gate) Ready(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, g.cfg.callTimeout)
	defer cancel()
	if err := g.outage.of(len(g.sales.all())); err != nil {
		return &NotReady{PartRedis, err}
	}
	if err := lua.Writable(ctx, g.deps.Redis); err != nil {
		return &NotReady{PartRedis, causeOf(err)}
	}
	if err := queue.Probe(ctx, g.deps.Publisher); err != nil {
		return &NotReady{PartQueue, err}
	}
	return nil
}

// Connect begins to connect, so that the first buyer need not wait for it, and
// logs what does not answer. It returns at once; clicks need no Connect.
func (g *Gate) Connect() {
	// Asking begins it, and the publisher tells of a broker that is away itself.
	_ = g.deps.Publisher.Ready()
	g.sales.mu.Lock()
	defer g.sales.mu.Unlock()
	if g.sales.closed {
		return
	}
	g.start(func() {
		ctx, cancel := context.WithTimeout(g.ctx, g.cfg.callTimeout)
		defer cancel()
		if err := g.deps.Redis.Ping(ctx).Err(); err != nil && g.ctx.Err() == nil {
			g.deps.Log.Warn("Redis does not answer; every purchase is refused until it does", "error", err)
		}
	})
}

// Close refuses new clicks, waits until those under way are answered and what
// was reserved is published and confirmed and what was refused late is noted, but not
// longer than ctx, and stops the workers. It may be called again. What is not confirmed
// by then is in the outbox, and the backend publishes it. The Redis client and the publisher stay open: they are the
// caller's.
func (g *Gate) Close(ctx context.Context) {
	sales := g.sales.close()
	g.streams.close()
	g.records.close()
	for _, s := range sales {
		s.group.drain(ctx)
	}
	g.publish.drain(ctx)
	for _, s := range sales {
		s.leave(ctx)
	}
	g.ends.drain(ctx)
	g.stop()
	g.workers.Wait()
}

// start runs f in a goroutine that Close waits for.
func (g *Gate) start(f func()) { g.workers.Go(f) }
