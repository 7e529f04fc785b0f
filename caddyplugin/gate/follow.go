package gate

import (
	"errors"
	"sync/atomic"
	"time"
)

const (
	// Orders of streams are looked at every followSoon, later ever less often, up
	// to followLate: at one more every followSlower of their age. What becomes of them
	// mostly comes through lua.Moves, and this is for what gets lost.
	followSoon   = 300 * time.Millisecond
	followLate   = 3 * time.Second
	followSlower = 20
	// followGap is the least time between two rounds, however many changes come.
	followGap = 100 * time.Millisecond
)

// follower looks at the orders of one product's streams, many with one command.
type follower struct {
	gate    *Gate
	product string
	streams map[*Stream]struct{} // under streams.mu
	orders  map[string][]*Stream // the same by order id, under streams.mu
	hurry   atomic.Bool          // look at all of them
	wake    chan struct{}
}

func newFollower(g *Gate, product string) *follower {
	return &follower{gate: g, product: product, streams: make(map[*Stream]struct{}), orders: make(map[string][]*Stream), wake: make(chan struct{}, 1)}
}

func (f *follower) wakeUp() {
	select {
	case f.wake <- struct{}{}:
	default:
	}
}

// run looks until no stream is left.
func (f *follower) run() {
	for pause := followGap; ; {
		f.rest(pause)
		streams, left := f.take()
		if !left {
			return
		}
		pause = followSoon
		if !f.look(streams) {
			pause = followLate // the sale's breaker has told the log
		}
	}
}

// rest waits for the next round: followGap for certain, the rest of pause unless
// somebody wakes it up. The end of the gate ends all streams, and so the rest.
func (f *follower) rest(pause time.Duration) {
	timer := time.NewTimer(followGap)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-f.gate.ctx.Done():
		return
	}
	if pause <= followGap {
		return
	}
	timer.Reset(jitter(pause - followGap))
	select {
	case <-timer.C:
	case <-f.wake:
	case <-f.gate.ctx.Done():
	}
}

// take returns the streams whose time has come; false ends the follower.
func (f *follower) take() ([]*Stream, bool) {
	book := f.gate.streams
	now, all := f.gate.deps.Now(), f.hurry.Swap(false)
	book.mu.Lock()
	defer book.mu.Unlock()
	if len(f.streams) == 0 {
		delete(book.followers, f.product)
		return nil, false
	}
	var due []*Stream
	for s := range f.streams {
		if all || !s.due.After(now) {
			s.due = now.Add(min(max(followSoon, now.Sub(s.made)/followSlower), followLate))
			due = append(due, s)
		}
	}
	return due, true
}

// look reads the records of the streams' buyers and tells what has changed. It
// returns false when Redis does not answer.
func (f *follower) look(streams []*Stream) bool {
	users := make([]string, 0, min(len(streams), readMax))
	orders := make([]string, 0, cap(users))
	for len(streams) > 0 {
		n := min(len(streams), readMax)
		part := streams[:n]
		streams = streams[n:]
		users, orders = users[:0], orders[:0]
		for _, s := range part {
			users, orders = append(users, s.user), append(orders, s.orderID)
		}
		asked := f.gate.deps.Now()
		read, err := f.gate.readBatch(f.product, users, orders)
		if err != nil {
			return false
		}
		f.tell(part, asked, read)
	}
	return true
}

func (f *follower) tell(streams []*Stream, asked time.Time, read []recordAnswer) {
	g := f.gate
	for i, s := range streams {
		q := question{product: s.product, user: s.user, orderID: s.orderID, asked: asked}
		q.late, q.isLate = g.late.get(s.product, s.user, s.orderID)
		fate, found, err := g.fateIn(q, read[i].text, read[i].note)
		if err != nil || !found && read[i].err != nil && !errors.Is(read[i].err, errGone) {
			continue // damaged or forgotten; a backend will mend it
		}
		g.streams.mu.Lock()
		now := standing{fate.State, fate.Final}
		switch {
		case s.ended:
		case !found:
			if f.trusted() {
				g.streams.endLocked(s) // its client asks anew, and hears of the archive
			}
		case now != s.seen:
			s.seen = now
			g.streams.tellLocked(s, fate)
		}
		g.streams.mu.Unlock()
	}
}

// trusted says that what Redis does not have is not there: it has forgotten
// neither the product nor any of its orders.
func (f *follower) trusted() bool {
	b := &f.gate.sales
	b.mu.RLock()
	s := b.sales[f.product]
	b.mu.RUnlock()
	return s == nil || !s.closed() && !s.view.Load().Forgetful()
}
