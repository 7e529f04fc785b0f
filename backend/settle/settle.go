// Package settle tells Redis what SQL has stored: units of stored orders move
// from frozen to sold, units of refused ones back to available. It runs beside
// the storing, so that a Redis that is away does not stop it; what waits is
// bounded, and what is lost by a crash is found again by the reconciler,
// because a move may be repeated.
package settle

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/seckill-edge/seckill/backend/duty"
	"github.com/seckill-edge/seckill/backend/metrics"
	"github.com/seckill-edge/seckill/internal/killpoint"
	"github.com/seckill-edge/seckill/lua"
)

const (
	// waiting bounds the batches that wait for Redis. With 1000 orders each it is
	// about 10 MB of memory, and a few seconds of storing at full speed.
	waiting     = 64
	callTimeout = 5 * time.Second
	firstPause  = 50 * time.Millisecond
	longPause   = 2 * time.Second
)

// Order is one stored order that Redis is to be told of.
type Order struct {
	ProductID string
	// ActivityID is its activity's; empty if Redis has that one for certain.
	ActivityID string
	lua.Move
	// To is the mark of the row's state, see MarkOf.
	To lua.Mark
	// First says that a move which is done now brings the order out of "queued": the
	// edge's promise to its buyer is kept by it, in time or late.
	First bool
}

type batch struct {
	orders []Order
	since  time.Time
}

// Settler moves orders in Redis, in the order they were stored in. It is safe
// for concurrent use.
type Settler struct {
	// Within is what the edges promise (their resolve_within); it is set before the
	// first move.
	Within time.Duration

	redis   redis.UniversalClient
	metrics *metrics.Metrics
	log     *slog.Logger
	passes  *duty.Log
	queue   chan batch
	pending atomic.Int64
	// mu lets Close wait for those who put.
	mu     sync.RWMutex
	closed bool
}

// ErrClosed answers a Put after Close.
var ErrClosed = errors.New("the settler is closed")

// New makes a settler for edges with their default promise; nothing moves before
// Run or Now.
func New(client redis.UniversalClient, m *metrics.Metrics, log *slog.Logger) *Settler {
	return &Settler{
		Within: 30 * time.Second, redis: client, metrics: m, log: log, passes: duty.NewLog(log, m, time.Now), queue: make(chan batch, waiting),
	}
}

// Pending is the number of orders that wait for Redis.
func (s *Settler) Pending() int { return int(s.pending.Load()) }

// Put hands over stored orders; the slice is the settler's from then on. It
// waits while too many wait already, until ctx ends, then returns its error:
// the orders are left to the reconciler.
func (s *Settler) Put(ctx context.Context, orders []Order) error {
	if len(orders) == 0 {
		return nil
	}
	s.mu.RLock()
	defer s.mu.RUnlock()
	if s.closed {
		return ErrClosed
	}
	s.pending.Add(int64(len(orders)))
	select {
	case s.queue <- batch{orders, time.Now()}:
		return nil
	case <-ctx.Done():
		s.pending.Add(-int64(len(orders)))
		return context.Cause(ctx)
	}
}

// Close ends the taking: a later Put is ErrClosed. Run returns when all is moved.
func (s *Settler) Close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	close(s.queue)
}

// Run moves what was put, until Close or the end of ctx. While Redis is away, or
// refuses for a reason that may pass, it tries again for ever.
func (s *Settler) Run(ctx context.Context) {
	tick := time.NewTicker(longPause)
	defer tick.Stop()
	for {
		select {
		case b, more := <-s.queue:
			if !more {
				return
			}
			_ = s.passes.Pass(ctx, duty.Settle, func() error { // what a panic leaves the reconciler finds
				defer s.pending.Add(-int64(len(b.orders)))
				for _, g := range group(b.orders) {
					s.move(ctx, g)
				}
				s.metrics.SettleLag(time.Since(b.since))
				return nil
			})
		case <-tick.C: // no call has failed and waits: the end of an outage is told of without a next order
			s.passes.Tell(ctx, duty.Settle, "", nil)
		case <-ctx.Done():
			return
		}
	}
}

// Now moves orders at once, for those who can wait for the answer, and returns
// how many moved. The first failure ends it.
func (s *Settler) Now(ctx context.Context, orders []Order) (moved int, err error) {
	for _, g := range group(orders) {
		n, err := s.call(ctx, g, false)
		moved += n
		if err != nil {
			return moved, err
		}
	}
	return moved, nil
}

// part is one script call: moves of one product to one mark.
type part struct {
	product    string
	to         lua.Mark
	moves      []lua.Move
	activities []string // see Order.ActivityID
	first      []bool   // see Order.First
}

// group sorts orders into script calls; the calls come in the order of their
// first orders.
func group(orders []Order) []part {
	type key struct {
		product string
		to      lua.Mark
	}
	last := make(map[key]int, 2)
	var parts []part
	for _, o := range orders {
		k := key{o.ProductID, o.To}
		i, known := last[k]
		if !known || len(parts[i].moves) == lua.MaxPerCall {
			i = len(parts)
			last[k] = i
			parts = append(parts, part{product: o.ProductID, to: o.To})
		}
		parts[i].moves = append(parts[i].moves, o.Move)
		parts[i].activities = append(parts[i].activities, o.ActivityID)
		parts[i].first = append(parts[i].first, o.First)
	}
	return parts
}

// move repeats one call until Redis has made it or ctx ends. A refusal that may
// pass is waited for, whatever its cause: the orders are stored, and their units
// must not stay frozen. A fault of the product's own keys is the reconciler's;
// waiting for it would hold up the other products.
func (s *Settler) move(ctx context.Context, p part) {
	pause := firstPause
	for again := false; ctx.Err() == nil; again = true {
		_, err := s.call(ctx, p, again)
		switch fault := lua.FaultOf(err); {
		case err == nil:
			return
		case !fault.Transient():
			s.metrics.Settled("failed", len(p.moves))
			s.log.Error("settle: the product's keys in Redis are damaged; its units stay frozen until its stock is rebuilt",
				"product", p.product, "orders", len(p.moves), "error", err)
			return
		case fault == lua.FaultForbidden && !again:
			err = lua.Forbidden(ctx, s.redis, err)
		}
		s.passes.Tell(ctx, duty.Settle, "", err)
		if !wait(ctx, pause) {
			return
		}
		pause = min(pause*2, longPause)
	}
}

// call runs the script for one part. again says that an earlier call may have made
// the moves without our hearing of it.
func (s *Settler) call(ctx context.Context, p part, again bool) (done int, err error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	run := lua.Release
	if !p.to.GivenBack() {
		run = lua.Settle
	}
	moved, err := run(ctx, s.redis, p.product, p.to, p.moves)
	if err != nil {
		return 0, err
	}
	killpoint.Here(killpoint.AfterSettle)
	counts := map[lua.Moved]int{}
	for _, m := range moved {
		counts[m]++
	}
	over := s.strange(ctx, p, moved)
	s.metrics.Settled("done", counts[lua.Done])
	s.metrics.Settled("already", counts[lua.Already])
	s.metrics.Settled("over", over)
	s.metrics.Settled("unknown", counts[lua.Unknown]-over)
	s.metrics.Settled("conflict", counts[lua.Conflict])
	s.promised(p, moved, again)
	return counts[lua.Done], nil
}

func wait(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}
