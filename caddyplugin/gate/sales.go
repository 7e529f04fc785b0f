package gate

import (
	"context"
	"sync"
	"time"

	"github.com/seckill-edge/seckill/lua"
)

const (
	// lookups bounds the first looks at products that are on their way to Redis,
	// looksWaiting those that wait for their turn: made-up ids must not become a
	// load on Redis.
	lookups      = 8
	looksWaiting = 1024
	// sightFor is how long "no such product" and "over" are believed without
	// asking again; sightsMax is how many such products are remembered.
	sightFor  = time.Second
	sightsMax = 4096
	// lookTellEvery is how often the log tells of first looks that fail: anybody can
	// ask for any product.
	lookTellEvery = 10 * time.Second
	// blindFor is how long after a look that Redis did not answer nobody waits for a
	// first look; one is made every lookShut.
	blindFor = 5 * time.Second
)

// salesBook finds the sale of a product, and looks at Redis once for a product
// seen for the first time. Only what can sell has a sale, with its workers; what
// is over or unknown is a sight, and costs a look a second if somebody asks.
type salesBook struct {
	mu      sync.RWMutex
	sales   map[string]*sale
	looking map[string]*look
	sights  map[string]sight
	closed  bool
	slots   chan struct{}
	told    time.Time // when the log was told of a first look that failed
	// failed is when Redis did not answer the last first look, probed when one was
	// begun since that nobody waits for; zero when it answers.
	failed, probed time.Time
}

// sight is a product that sells nothing: NoProduct, or Ended with its view, or
// Unavailable when it could not be looked at. Nobody waits for another look at it then.
type sight struct {
	outcome lua.Outcome
	view    *localView
	until   time.Time
}

// look is a first look that several clicks wait for.
type look struct {
	done  chan struct{}
	sale  *sale
	sight sight
}

func (b *salesBook) init() {
	b.sales = make(map[string]*sale)
	b.looking = make(map[string]*look)
	b.sights = make(map[string]sight)
	b.slots = make(chan struct{}, lookups)
}

// sale returns the product's sale, or what was seen instead.
func (g *Gate) sale(ctx context.Context, product string) (*sale, sight) {
	b := &g.sales
	b.mu.RLock()
	s := b.sales[product]
	b.mu.RUnlock()
	if s != nil {
		return s, sight{}
	}
	return g.firstLook(ctx, product)
}

func (g *Gate) firstLook(ctx context.Context, product string) (*sale, sight) {
	b := &g.sales
	b.mu.Lock()
	if s := b.sales[product]; s != nil {
		b.mu.Unlock()
		return s, sight{}
	}
	now := g.deps.Now()
	seen, known := b.sights[product]
	if known && now.Before(seen.until) {
		b.mu.Unlock()
		return nil, seen
	}
	blind := now.Sub(b.failed) < blindFor
	if blind && now.Sub(b.probed) < lookShut {
		b.mu.Unlock()
		return nil, sight{outcome: lua.Unavailable}
	}
	b.probed = now
	l := b.looking[product]
	if l == nil {
		if b.closed || len(b.looking) >= looksWaiting {
			b.mu.Unlock()
			return nil, sight{outcome: lua.Unavailable}
		}
		l = &look{done: make(chan struct{})}
		b.looking[product] = l
		g.start(func() {
			b.slots <- struct{}{} // freed by looks, each bounded by callTimeout
			g.look(product, l)
			<-b.slots
		})
	}
	b.mu.Unlock()
	if blind || known && seen.outcome == lua.Unavailable {
		return nil, sight{outcome: lua.Unavailable}
	}

	timeout := time.NewTimer(g.cfg.ReserveTimeout)
	defer timeout.Stop()
	select {
	case <-l.done:
		return l.sale, l.sight
	case <-timeout.C:
	case <-ctx.Done():
	}
	return nil, sight{outcome: lua.Unavailable}
}

// look asks Redis for the product and opens its sale if it has one.
func (g *Gate) look(product string, l *look) {
	ctx, cancel := context.WithTimeout(g.ctx, g.cfg.callTimeout)
	snapshot, found, err := lua.Audit(ctx, g.deps.Redis, product)
	now := g.deps.Now()
	view := &localView{Snapshot: snapshot, seen: now}
	if err == nil && found && !view.over(now) {
		// A right that is missing is found here, before a purchase fails half-way.
		err = lua.Probe(ctx, g.deps.Redis, product)
	}
	cancel()

	b := &g.sales
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.looking, product)
	b.failed = time.Time{}
	if noReply(err) {
		b.failed, b.probed = now, now
	}
	switch {
	case err != nil:
		l.sight = b.rememberLocked(product, sight{outcome: lua.Unavailable, until: now.Add(lookShut)})
		if now.Sub(b.told) >= lookTellEvery {
			b.told = now
			g.deps.Log.Warn("cannot sell a product", "product", product, "fault", lua.FaultOf(err).String(), "error", causeOf(err))
		}
	case !found:
		l.sight = b.rememberLocked(product, sight{outcome: lua.NoProduct, until: now.Add(sightFor)})
	case !snapshot.Damaged && view.over(now):
		l.sight = b.rememberLocked(product, sight{outcome: lua.Ended, view: view, until: now.Add(sightFor)})
	case b.closed || len(b.sales) >= maxSales:
		l.sight = sight{outcome: lua.Unavailable}
	default:
		l.sale = newSale(g, product, snapshot, now)
		b.sales[product] = l.sale
		delete(b.sights, product)
	}
	close(l.done)
}

// noReply says that Redis did not answer at all: what it says of one product, such
// as that its key is of another kind, is no sign of the next.
func noReply(err error) bool {
	fault := lua.FaultOf(err)
	return fault == lua.FaultNotSent || fault == lua.FaultUnanswered
}

func (b *salesBook) rememberLocked(product string, s sight) sight {
	if len(b.sights) >= sightsMax {
		clear(b.sights)
	}
	b.sights[product] = s
	return s
}

// changed makes the next click look again at a product that had nothing to sell;
// at all of them if product is empty.
func (b *salesBook) changed(product string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if product == "" {
		clear(b.sights)
	}
	delete(b.sights, product)
}

// forget drops a sale that is over.
func (b *salesBook) forget(product string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.sales, product)
}

// all returns the sales there are.
func (b *salesBook) all() []*sale {
	b.mu.RLock()
	defer b.mu.RUnlock()
	list := make([]*sale, 0, len(b.sales))
	for _, s := range b.sales {
		list = append(list, s)
	}
	return list
}

// close lets no further sale in and returns those there are.
func (b *salesBook) close() []*sale {
	b.mu.Lock()
	b.closed = true
	b.mu.Unlock()
	return b.all()
}
