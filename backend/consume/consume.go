// Package consume takes messages from the queue, stores their orders in batches
// and has Redis told. Every step may happen twice: the message is acknowledged
// only after the commit, and whatever comes again is recognised by its order id.
//
//	gather   up to a thousand orders, or what comes within the linger
//	check    what a proven stock in Redis does not know was not reserved
//	store    one transaction; a database that is away is waited for, an order
//	         that cannot be stored is found by halving the batch
//	dead     what is wrong in itself goes to the dead letters, alone, confirmed
//	ack      only then the broker forgets
//	settle   Redis is told, beside the next batch
package consume

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/seckill-edge/seckill/backend/duty"
	"github.com/seckill-edge/seckill/backend/metrics"
	"github.com/seckill-edge/seckill/backend/readiness"
	"github.com/seckill-edge/seckill/backend/settle"
	"github.com/seckill-edge/seckill/backend/store"
	"github.com/seckill-edge/seckill/internal/killpoint"
	"github.com/seckill-edge/seckill/internal/queue"
)

// Config of a consumer. Zero values mean the defaults.
type Config struct {
	// Orders bounds a batch; a message more may make it up to
	// order.MaxPerMessage-1 larger. Default 1000.
	Orders int
	// Linger is how long a batch waits for more after its first message.
	// Default 20 ms.
	Linger time.Duration
	// Prefetch bounds the messages taken and not acknowledged. Default 64.
	Prefetch int
	// RecordWithin bounds how long a batch waits for Redis to tell whether its orders
	// were reserved. Default 200 ms.
	RecordWithin time.Duration
	// Margin is how long after this backend has first seen a stock as proven an order
	// must have been reserved for Redis to be believed that it was not: longer than
	// clocks differ, and than a primary that was replaced goes on. Default 1 minute.
	Margin time.Duration
}

// Deps are what a consumer works with. All are required. The consumer closes
// neither of them.
type Deps struct {
	Store     *store.Store
	Redis     redis.UniversalClient
	Consumer  queue.Consumer
	Publisher queue.Publisher
	Settler   *settle.Settler
	Metrics   *metrics.Metrics
	Log       *slog.Logger
}

// Consumer stores orders. Start returns, Stop waits.
type Consumer struct {
	Config
	Deps

	passes     *duty.Log
	sightings  *sightings
	askAfter   time.Time // Redis is not asked before
	deliveries chan queue.Delivery
	inHand     atomic.Int64
	// paused is what the database has said last while storing waits for it, else nil.
	paused atomic.Pointer[error]

	// stopping is closed when no further batch is to be taken; hard ends what is
	// still under way.
	stopping chan struct{}
	stopOnce sync.Once
	hard     context.CancelFunc
	done     chan struct{}
}

// New checks nothing and starts nothing.
func New(c Config, d Deps) *Consumer {
	c.Orders = cmp.Or(c.Orders, 1000)
	c.Linger = cmp.Or(c.Linger, 20*time.Millisecond)
	c.Prefetch = cmp.Or(c.Prefetch, 64)
	c.RecordWithin = cmp.Or(c.RecordWithin, 200*time.Millisecond)
	c.Margin = cmp.Or(c.Margin, time.Minute)
	return &Consumer{
		Config:     c,
		sightings:  newSightings(d.Redis),
		Deps:       d,
		passes:     duty.NewLog(d.Log, d.Metrics, time.Now),
		deliveries: make(chan queue.Delivery, c.Prefetch),
		stopping:   make(chan struct{}),
		done:       make(chan struct{}),
	}
}

// InHand is the number of messages taken from the broker and not acknowledged.
func (c *Consumer) InHand() int { return len(c.deliveries) + int(c.inHand.Load()) }

// Paused says that storing waits for the database.
func (c *Consumer) Paused() bool { return c.paused.Load() != nil }

// Ready is nil while messages come in and can be stored, else it says what is
// missing.
func (c *Consumer) Ready() error {
	if why := c.paused.Load(); why != nil {
		return fmt.Errorf("%w: %w", readiness.ErrStoring, *why)
	}
	if err := c.Consumer.Ready(); err != nil {
		return fmt.Errorf("queue: %w", err)
	}
	return nil
}

// Start begins to consume in the background. It is called once.
func (c *Consumer) Start() {
	// Not the caller's context: the end of taking and the end of working are two
	// moments, and Stop is what tells them.
	hard, cancel := context.WithCancel(context.Background())
	c.hard = cancel
	receiving, stopReceiving := context.WithCancel(hard)
	received, watched := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(watched)
		c.watch(receiving)
	}()
	go func() {
		defer close(received)
		if err := c.Consumer.Consume(receiving, c.deliveries); err != nil {
			c.Log.Error("consume: the consumer gave up", "error", err)
		}
	}()
	go func() {
		defer close(c.done)
		c.loop(hard)
		// Only now: acknowledgements need the session that delivered.
		stopReceiving()
		<-received
		<-watched
	}()
}

// Stop takes nothing more, finishes the batch under way as far as the database
// lets it, acknowledges it and ends the session; what was delivered beyond it
// the broker delivers again. If ctx ends first the batch is dropped too. It may
// be called twice, and returns when all is ended.
func (c *Consumer) Stop(ctx context.Context) {
	c.stopOnce.Do(func() { close(c.stopping) })
	select {
	case <-c.done:
	case <-ctx.Done():
	}
	c.hard()
	<-c.done
}

// loop stores batch after batch until Stop.
func (c *Consumer) loop(ctx context.Context) {
	for {
		batch := c.gather(ctx)
		if batch == nil {
			return
		}
		err := duty.Safely(func() error { c.handle(ctx, batch); return nil })
		c.passes.Panicked(duty.Consume, err) // what was stored and not told of the reconciler finds
		c.inHand.Store(0)
	}
}

// gather waits for a message and collects what follows. Nil when it is time to
// stop; what was collected by then is left to the broker.
func (c *Consumer) gather(ctx context.Context) *batch {
	var first queue.Delivery
	select {
	case <-c.stopping:
		return nil
	case <-ctx.Done():
		return nil
	case first = <-c.deliveries:
	}
	c.inHand.Store(1) // before it is read: who proves a stock must not find it nowhere
	b := &batch{}
	b.add(first)
	linger := time.NewTimer(c.Linger)
	defer linger.Stop()
	for b.size() < c.Orders {
		select {
		case d := <-c.deliveries:
			b.add(d)
			c.inHand.Add(1)
		case <-linger.C:
			return b
		case <-c.stopping:
			return b
		case <-ctx.Done():
			return nil
		}
	}
	return b
}

// handle brings one batch all the way. Whatever it cannot finish stays
// unacknowledged and comes again.
func (c *Consumer) handle(ctx context.Context, b *batch) {
	if err := c.setApart(ctx, b); err != nil {
		return // stopping
	}
	saved, failed, err := c.save(ctx, b.orders())
	if err != nil {
		return // stopping
	}
	killpoint.Here(killpoint.AfterCommit)
	b.failed(failed)
	for _, m := range b.messages {
		if err := c.sortSafely(ctx, m); err != nil {
			c.Log.Warn("consume: a message is not acknowledged: what is wrong in it could not be put aside",
				"message", m.delivery.Message().ID, "error", err)
			if _, ours := errors.AsType[*duty.PanicError](err); !ours { // else it would be here again at once, for ever
				c.giveBack(m)
			}
			continue
		}
		if err := m.delivery.Ack(); err != nil && !errors.Is(err, queue.ErrStale) {
			c.Log.Warn("consume: message not acknowledged; it comes again and is recognised",
				"message", m.delivery.Message().ID, "error", err)
		}
	}
	killpoint.Here(killpoint.AfterAck)
	if err := c.Settler.Put(ctx, c.settlements(b, saved)); err != nil {
		c.Log.Warn("consume: stored orders left to the reconciler", "orders", len(saved), "error", err)
	}
}

func (c *Consumer) giveBack(m *message) {
	if err := m.delivery.Requeue(); err != nil && !errors.Is(err, queue.ErrStale) {
		c.Log.Warn("consume: message not given back; the broker notices when the session ends",
			"message", m.delivery.Message().ID, "error", err)
	}
}

// settlements says what Redis is to be told of the stored orders.
func (c *Consumer) settlements(b *batch, saved []store.Saved) []settle.Order {
	var out []settle.Order
	for _, m := range b.messages {
		out = append(out, m.refused...)
	}
	return append(out, c.Settler.Saved(b.byID(), saved)...)
}
