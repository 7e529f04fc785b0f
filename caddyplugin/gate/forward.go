package gate

import (
	"context"
	"sync"
	"time"

	"github.com/seckill-edge/seckill/internal/killpoint"
	"github.com/seckill-edge/seckill/internal/order"
	"github.com/seckill-edge/seckill/internal/queue"
)

const (
	// window is the most messages on their way to the broker at once.
	window = 32
	// publishTries is how often a message is tried before its orders are left in
	// the outbox for the backend's relay, about 3 s with the waits between.
	publishTries = 5
	publishWait  = 100 * time.Millisecond
)

// forwarder carries reserved orders to the queue. Orders of one activity that
// were reserved within a linger go into one message. Whatever it cannot deliver
// it leaves in the outbox: the buyer's order is safe there, only slower.
type forwarder struct {
	gate   *Gate
	outbox *cleaner
	wake   chan struct{} // something waits
	flush  chan struct{} // closed by drain: do not linger
	done   chan struct{} // closed when the pump has ended
	slots  chan struct{} // window
	flying sync.WaitGroup
	left   leftBehind

	mu      sync.Mutex
	waiting map[origin][]order.Order
	closed  bool
}

// origin is what the orders of one message have in common.
type origin struct {
	sale     *sale
	activity string
}

func newForwarder(g *Gate) *forwarder {
	f := &forwarder{
		gate: g, outbox: newCleaner(g),
		wake: make(chan struct{}, 1), flush: make(chan struct{}), done: make(chan struct{}),
		slots:   make(chan struct{}, window),
		waiting: make(map[origin][]order.Order),
		left:    leftBehind{log: g.deps.Log, now: g.deps.Now},
	}
	g.start(f.pump)
	return f
}

// add takes over orders of one activity that Redis has just granted to s. It
// never waits: what exceeds the buffer stays in the outbox.
func (f *forwarder) add(s *sale, orders []order.Order) {
	n := int64(len(orders))
	f.mu.Lock()
	if f.closed || f.gate.stats.carried.Load()+n > int64(f.gate.cfg.Buffer) {
		f.mu.Unlock()
		f.gate.stats.leftBehind.Add(uint64(n))
		return
	}
	f.gate.stats.carried.Add(n)
	s.carried.Add(n)
	key := origin{s, orders[0].ActivityID}
	f.waiting[key] = append(f.waiting[key], orders...)
	f.mu.Unlock()
	select {
	case f.wake <- struct{}{}:
	default:
	}
}

// pump makes messages of what has gathered, one linger after the first order.
func (f *forwarder) pump() {
	defer close(f.done)
	timer := time.NewTimer(0)
	<-timer.C
	for {
		select {
		case <-f.wake:
		case <-f.flush:
			f.sendAll()
			f.flying.Wait()
			f.outbox.drain()
			return
		}
		timer.Reset(f.gate.cfg.Linger)
		select {
		case <-timer.C:
		case <-f.flush:
		}
		f.sendAll()
	}
}

func (f *forwarder) sendAll() {
	f.mu.Lock()
	waiting := f.waiting
	f.waiting = make(map[origin][]order.Order, len(waiting))
	f.mu.Unlock()
	for from, orders := range waiting {
		for len(orders) > 0 {
			n := min(len(orders), f.gate.cfg.OrdersPerMessage)
			message := orders[:n]
			orders = orders[n:]
			f.slots <- struct{}{} // freed by send, which ends with the gate
			f.flying.Go(func() { f.send(from.sale, message); <-f.slots })
		}
	}
}

// send publishes one message until the broker confirms it, or leaves its orders
// in the outbox.
func (f *forwarder) send(s *sale, orders []order.Order) {
	g, n := f.gate, len(orders)
	defer func() {
		g.stats.carried.Add(-int64(n))
		s.carried.Add(-int64(n))
	}()
	size := 0
	for i := range orders {
		size += order.IDLength + len(orders[i].UserID) + 24
	}
	m := queue.Message{ID: orders[0].ID, Body: order.AppendMessage(make([]byte, 0, size+160), orders)}
	for try, wait := 1, publishWait; ; try, wait = try+1, 2*wait {
		start := g.deps.Now()
		err := g.deps.Publisher.Publish(g.ctx, queue.Orders, m)
		if err == nil {
			killpoint.Here(killpoint.AfterPublish)
			g.stats.forwarded.Add(uint64(n))
			g.stats.messageSize.observe(float64(n))
			g.stats.publishSeconds.since(start, g.deps.Now())
			f.outbox.confirmed(orders)
			f.left.over()
			return
		}
		g.stats.publishErrors.Add(1)
		if try == publishTries || !g.sleep(wait) {
			g.stats.leftBehind.Add(uint64(n))
			f.left.add(n, orders[0].ProductID, err)
			return
		}
	}
}

// drain publishes what waits, without lingering, and returns when all of it is
// confirmed or left behind, or ctx ends.
func (f *forwarder) drain(ctx context.Context) {
	f.mu.Lock()
	if !f.closed {
		f.closed = true
		close(f.flush)
	}
	f.mu.Unlock()
	select {
	case <-f.done:
	case <-ctx.Done():
	}
}
