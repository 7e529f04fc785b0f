package gate

import (
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/seckill-edge/seckill/internal/order"
)

// Errors of Follow.
var (
	// ErrTooManyStreams: this edge has as many streams as it may.
	ErrTooManyStreams = errors.New("this edge has too many streams")
	// ErrTooManyOfBuyer: the buyer has as many streams as one may.
	ErrTooManyOfBuyer = errors.New("the buyer has too many streams")
)

// Stream tells what becomes of one order, as it happens. Close it.
type Stream struct {
	streams       *streams
	product, user string
	orderID       string
	made          time.Time
	// fates holds the latest fate that nobody has taken; closed when nothing more
	// will come.
	fates chan Fate

	// Below, under streams.mu.
	seen  standing
	due   time.Time // of the next look
	ended bool
}

// streams are all streams of an edge, by product. One follower a product looks
// for all of them; it lives while there is one.
type streams struct {
	gate *Gate

	mu        sync.Mutex
	followers map[string]*follower
	buyers    map[string]int
	open      int
	closed    bool
}

func newStreams(g *Gate) *streams {
	return &streams{gate: g, followers: make(map[string]*follower), buyers: make(map[string]int)}
}

// Follow opens a stream on an order whose fate the caller has just read and that
// is not final. Errors are ErrTooManyStreams and ErrTooManyOfBuyer.
func (g *Gate) Follow(product, user string, f Fate) (*Stream, error) {
	made, _ := order.IDTime(f.OrderID)
	s := &Stream{
		streams: g.streams, product: product, user: user, orderID: f.OrderID, made: made,
		fates: make(chan Fate, 1), seen: standing{f.State, f.Final}, due: g.deps.Now(),
	}
	return s, g.streams.add(s)
}

// Fates delivers each change, the last one if several came meanwhile. It is
// closed after a final one, and when the stream ends without one: because the
// gate closes, or Redis has the order no longer.
func (s *Stream) Fates() <-chan Fate { return s.fates }

// Close gives the stream's place back. It may be called again.
func (s *Stream) Close() {
	s.streams.mu.Lock()
	defer s.streams.mu.Unlock()
	s.streams.endLocked(s)
}

func (b *streams) add(s *Stream) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case b.closed || b.open >= b.gate.cfg.Streams:
		return ErrTooManyStreams
	case b.buyers[s.user] >= b.gate.cfg.StreamsPerBuyer:
		return ErrTooManyOfBuyer
	}
	f := b.followers[s.product]
	if f == nil {
		if len(b.followers) >= maxSales {
			return ErrTooManyStreams
		}
		f = newFollower(b.gate, s.product)
		b.followers[s.product] = f
		b.gate.start(f.run)
	}
	f.streams[s] = struct{}{}
	f.orders[s.orderID] = append(f.orders[s.orderID], s)
	b.buyers[s.user]++
	b.open++
	f.wakeUp()
	return nil
}

// endLocked takes a stream out and closes its channel, once.
func (b *streams) endLocked(s *Stream) {
	if s.ended {
		return
	}
	s.ended = true
	close(s.fates)
	b.open--
	if b.buyers[s.user]--; b.buyers[s.user] == 0 {
		delete(b.buyers, s.user)
	}
	f := b.followers[s.product]
	delete(f.streams, s)
	if left := slices.DeleteFunc(f.orders[s.orderID], func(o *Stream) bool { return o == s }); len(left) > 0 {
		f.orders[s.orderID] = left
	} else {
		delete(f.orders, s.orderID)
	}
}

// tellLocked delivers a fate in place of one that nobody has taken.
func (b *streams) tellLocked(s *Stream, f Fate) {
	select {
	case <-s.fates:
	default:
	}
	s.fates <- f
	if f.Final {
		b.endLocked(s)
	}
}

// nudge looks at all orders of a product now, all products if it is empty.
func (b *streams) nudge(product string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for name, f := range b.followers {
		if product == "" || product == name {
			f.hurry.Store(true)
			f.wakeUp()
		}
	}
}

// moved looks at those of a product's orders now that somebody follows; their ids
// have spaces between them.
func (b *streams) moved(product, orders string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	f := b.followers[product]
	if f == nil {
		return
	}
	now, any := b.gate.deps.Now(), false
	for id := range strings.SplitSeq(orders, " ") {
		for _, s := range f.orders[id] {
			s.due, any = now, true
		}
	}
	if any {
		f.wakeUp()
	}
}

func (b *streams) count() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.open
}

// close ends all streams, so that their clients go to another edge, and lets no
// further one in.
func (b *streams) close() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.closed = true
	for _, f := range b.followers {
		for s := range f.streams {
			b.endLocked(s)
		}
		f.wakeUp()
	}
}
