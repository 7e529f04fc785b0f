package faults

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/seckill-edge/seckill/e2e/history"
	"github.com/seckill-edge/seckill/internal/order"
	"github.com/seckill-edge/seckill/lua"
)

const (
	// clickers is how many buyers are busy at once, and thinkTime how long each
	// waits between two purchases before the rush: about 250 clicks a second.
	clickers  = 16
	thinkTime = 64 * time.Millisecond
	// tries is how often a buyer who was told to come again, or nothing, does.
	tries = 4
	// pollers ask for the fates of orders, each every pollEvery.
	pollers   = 2
	pollEvery = 25 * time.Millisecond
	// reminders ask for what is due, all at once if need be.
	reminders = 8
)

// crowd is the buyers of one sale and what they were told.
type crowd struct {
	*client
	seed   uint64
	buyers int
	think  time.Duration
	// content buyers do not click again when they have bought.
	content bool
	ctx     context.Context
	rush    atomic.Bool
	stop    chan struct{}
	work    sync.WaitGroup

	mu       sync.Mutex
	clicks   []history.Click
	told     []history.Told
	open     []history.Click // accepted, fate not known yet
	promised []history.Click // accepted, as they came
	reminded int             // how many of them have been asked for when they were due
	healed   time.Time       // zero until the fault is over
	selling  []time.Time     // each edge's first useful answer after that
	sellingC chan struct{}   // closed when all have
	soldOut  []bool          // each edge has said so after that
}

// gather lets the crowd begin. finish must be called.
func gather(ctx context.Context, c *client, seed uint64, k Kind) *crowd {
	w := &crowd{
		client: c, seed: seed, buyers: int(c.sale.total) * 2, think: thinkTime, content: k.Plenty, ctx: ctx, stop: make(chan struct{}),
		selling: make([]time.Time, len(c.edges)), sellingC: make(chan struct{}), soldOut: make([]bool, len(c.edges)),
	}
	if k.Clicks > 0 {
		w.think = clickers * time.Second / time.Duration(k.Clicks)
	}
	for i := range clickers {
		w.work.Go(func() { w.shop(rand.New(rand.NewPCG(seed, uint64(i)))) })
	}
	for range reminders {
		w.work.Go(w.remind)
	}
	for i := range pollers {
		w.work.Go(func() { w.poll(rand.New(rand.NewPCG(seed, uint64(1000+i)))) })
	}
	return w
}

// finish sends the crowd home and waits for it.
func (w *crowd) finish() {
	close(w.stop)
	w.work.Wait()
}

// shop is one buyer after the other at one screen.
func (w *crowd) shop(r *rand.Rand) {
	for {
		buyer, quantity := fmt.Sprint("buyer-", r.IntN(w.buyers)), 1
		if w.sale.limit > 1 {
			quantity = 1 + r.IntN(w.sale.limit)
		}
		w.buy(r, buyer, quantity)
		if !w.content && r.IntN(5) == 0 {
			w.buy(r, buyer, quantity) // once more, in case it helps
		}
		if !w.rest(w.thinking()) {
			return
		}
	}
}

func (w *crowd) thinking() time.Duration {
	if w.rush.Load() {
		return time.Millisecond
	}
	return w.think
}

// buy clicks until there is a real answer, at one edge after the other.
func (w *crowd) buy(r *rand.Rand, buyer string, quantity int) {
	edge := r.IntN(len(w.edges))
	for range tries {
		c := w.click(w.ctx, edge, buyer, quantity)
		w.note(c)
		if c.Status != 0 && c.Status != http.StatusServiceUnavailable {
			return
		}
		edge = (edge + 1) % len(w.edges)
		if !w.rest(100*time.Millisecond + rand.N(200*time.Millisecond)) {
			return
		}
	}
}

func (w *crowd) note(c history.Click) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.clicks = append(w.clicks, c)
	if c.Status == http.StatusAccepted {
		w.open = append(w.open, c)
		w.promised = append(w.promised, c)
	}
	if w.healed.IsZero() || c.Start.Before(w.healed) || c.Status == 0 || c.Status == http.StatusServiceUnavailable {
		return
	}
	w.soldOut[c.Edge] = w.soldOut[c.Edge] || c.Code == lua.SoldOut
	if w.selling[c.Edge].IsZero() {
		w.selling[c.Edge] = c.End
		for _, at := range w.selling {
			if at.IsZero() {
				return
			}
		}
		close(w.sellingC)
	}
}

// isHealed tells the crowd that what it is told from now on counts.
func (w *crowd) isHealed(at time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.healed = at
}

// recovered is when the last edge sold again; false if one does not.
func (w *crowd) recovered() (last time.Time, ok bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, at := range w.selling {
		if at.IsZero() {
			return at, false
		}
		if at.After(last) {
			last = at
		}
	}
	return last, true
}

// allSoldOut says whether every edge has nothing left.
func (w *crowd) allSoldOut() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, out := range w.soldOut {
		if !out {
			return false
		}
	}
	return true
}

// poll asks for the fate of a random order that has none yet, now and then of
// one that has.
func (w *crowd) poll(r *rand.Rand) {
	for w.rest(pollEvery) {
		w.mu.Lock()
		if len(w.open) == 0 {
			w.mu.Unlock()
			continue
		}
		at := r.IntN(len(w.open))
		c := w.open[at]
		w.mu.Unlock()
		told := w.fate(w.ctx, r.IntN(len(w.edges)), c.Buyer, c.OrderID)
		w.mu.Lock()
		w.told = append(w.told, told)
		if final(told) && r.IntN(10) > 0 {
			for i := range w.open {
				if w.open[i].OrderID == c.OrderID {
					w.open[i] = w.open[len(w.open)-1]
					w.open = w.open[:len(w.open)-1]
					break
				}
			}
		}
		w.mu.Unlock()
	}
}

// remind asks for the fate of each order when it has been promised, while the fault
// may last.
func (w *crowd) remind() {
	for {
		c, n, ok := w.nextPromised()
		if !ok {
			if !w.rest(pollEvery) {
				return
			}
			continue
		}
		if !w.rest(time.Until(c.ResolveBy)) {
			return
		}
		told := w.fate(w.ctx, n%len(w.edges), c.Buyer, c.OrderID)
		w.mu.Lock()
		w.told = append(w.told, told)
		w.mu.Unlock()
	}
}

// nextPromised takes the next order to ask for when it is due.
func (w *crowd) nextPromised() (c history.Click, n int, ok bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if n = w.reminded; n == len(w.promised) {
		return c, n, false
	}
	w.reminded++
	return w.promised[n], n, true
}

func final(t history.Told) bool { return t.Status == http.StatusOK && t.State != order.Queued }

// rest waits, and says whether the crowd is to go on.
func (w *crowd) rest(d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-w.stop:
		return false
	case <-w.ctx.Done():
		return false
	}
}
