package gate

import (
	"context"
	"sync"
	"time"

	"github.com/seckill-edge/seckill/internal/order"
	"github.com/seckill-edge/seckill/lua"
)

const (
	// gather is how long confirmed ids are collected before they leave the
	// outbox together; cleanChunk is the most in one command.
	gather     = 50 * time.Millisecond
	cleanChunk = 512
	// unclean bounds the confirmed ids kept while Redis is away. What is
	// forgotten beyond it is published once more by the relay, which is harmless.
	unclean = 1 << 16
)

// cleaner takes what the broker has confirmed out of the outbox.
type cleaner struct {
	gate *Gate
	wake chan struct{}
	quit chan struct{} // closed by drain
	done chan struct{}

	mu    sync.Mutex
	ids   map[string][]string // product → confirmed order ids
	total int
}

func newCleaner(g *Gate) *cleaner {
	c := &cleaner{
		gate: g,
		wake: make(chan struct{}, 1), quit: make(chan struct{}), done: make(chan struct{}),
		ids: make(map[string][]string),
	}
	g.start(c.run)
	return c
}

func (c *cleaner) confirmed(orders []order.Order) {
	c.mu.Lock()
	if c.total+len(orders) <= unclean {
		product := orders[0].ProductID
		for i := range orders {
			c.ids[product] = append(c.ids[product], orders[i].ID)
		}
		c.total += len(orders)
	}
	c.mu.Unlock()
	select {
	case c.wake <- struct{}{}:
	default:
	}
}

func (c *cleaner) run() {
	defer close(c.done)
	for wait := gather; ; {
		select {
		case <-c.wake:
		case <-c.quit:
			c.clean()
			return
		}
		t := time.NewTimer(wait)
		select {
		case <-t.C:
		case <-c.quit:
		}
		t.Stop()
		if c.clean() {
			wait = gather
			continue
		}
		wait = min(2*wait, time.Second)
		select {
		case c.wake <- struct{}{}: // try again
		default:
		}
	}
}

// clean removes all confirmed ids; it keeps those of a product whose removal
// failed and returns false then.
func (c *cleaner) clean() bool {
	c.mu.Lock()
	ids := c.ids
	c.ids, c.total = make(map[string][]string, len(ids)), 0
	c.mu.Unlock()
	ok := true
	for product, list := range ids {
		for len(list) > 0 {
			n := min(len(list), cleanChunk)
			ctx, cancel := context.WithTimeout(c.gate.ctx, c.gate.cfg.callTimeout)
			err := lua.Confirm(ctx, c.gate.deps.Redis, product, list[:n])
			cancel()
			if err != nil {
				ok = false
				c.mu.Lock()
				c.ids[product] = append(c.ids[product], list...)
				c.total += len(list)
				c.mu.Unlock()
				break
			}
			list = list[n:]
		}
	}
	return ok
}

// drain cleans once more and ends the goroutine.
func (c *cleaner) drain() {
	close(c.quit)
	<-c.done
}
