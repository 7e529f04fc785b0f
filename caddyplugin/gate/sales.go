package gate

import (
	"context"
	"sync"
	"time"

	"github.com/seckill-edge/seckill/lua"
)

const (
	// lookups bounds the first looks at products that run at once: made-up ids
	// must not become a load on Redis.
	lookups = 8
	// unknownFor is how long "no such product" is believed without asking again,
	// unknownMax how many such ids are remembered.
	unknownFor = time.Second
	unknownMax = 4096
)

// salesBook finds the sale of a product, and looks at Redis once for a product
// seen for the first time.
type salesBook struct {
	mu      sync.RWMutex
	sales   map[string]*sale
	looking map[string]*look
	unknown map[string]time.Time // product → when it was found missing
	closed  bool
	slots   chan struct{}
}

// look is a first look that several clicks wait for.
type look struct {
	done    chan struct{}
	sale    *sale
	outcome lua.Outcome
}

func (b *salesBook) init() {
	b.sales = make(map[string]*sale)
	b.looking = make(map[string]*look)
	b.unknown = make(map[string]time.Time)
	b.slots = make(chan struct{}, lookups)
}

// sale returns the product's sale, or why there is none: NoProduct, or Held when
// Redis could not be asked in time.
func (g *Gate) sale(ctx context.Context, product string) (*sale, lua.Outcome) {
	b := &g.sales
	b.mu.RLock()
	s := b.sales[product]
	b.mu.RUnlock()
	if s != nil {
		return s, lua.Reserved
	}
	return g.firstLook(ctx, product)
}

func (g *Gate) firstLook(ctx context.Context, product string) (*sale, lua.Outcome) {
	b := &g.sales
	now := g.deps.Now()
	b.mu.Lock()
	if s := b.sales[product]; s != nil {
		b.mu.Unlock()
		return s, lua.Reserved
	}
	if since, ok := b.unknown[product]; ok && now.Sub(since) < unknownFor {
		b.mu.Unlock()
		return nil, lua.NoProduct
	}
	if b.closed {
		b.mu.Unlock()
		return nil, lua.Held
	}
	l := b.looking[product]
	if l == nil {
		select {
		case b.slots <- struct{}{}:
		default:
			b.mu.Unlock()
			return nil, lua.Held
		}
		l = &look{done: make(chan struct{})}
		b.looking[product] = l
		g.start(func() { g.look(product, l); <-b.slots })
	}
	b.mu.Unlock()

	timeout := time.NewTimer(g.cfg.ReserveTimeout)
	defer timeout.Stop()
	select {
	case <-l.done:
		return l.sale, l.outcome
	case <-timeout.C:
	case <-ctx.Done():
	}
	return nil, lua.Held
}

// look asks Redis for the product and opens its sale.
func (g *Gate) look(product string, l *look) {
	ctx, cancel := context.WithTimeout(g.ctx, callTimeout)
	snapshot, found, err := lua.Audit(ctx, g.deps.Redis, product)
	cancel()
	now := g.deps.Now()

	b := &g.sales
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.looking, product)
	switch {
	case err != nil:
		l.outcome = lua.Held
		g.deps.Log.Warn("cannot look at an activity", "product", product, "error", err)
	case !found:
		l.outcome = lua.NoProduct
		if len(b.unknown) >= unknownMax {
			clear(b.unknown)
		}
		b.unknown[product] = now
	case b.closed || len(b.sales) >= maxSales:
		l.outcome = lua.Held
	default:
		l.sale = newSale(g, product, snapshot, now)
		b.sales[product] = l.sale
		delete(b.unknown, product)
	}
	close(l.done)
}

// forget drops a sale whose activity Redis no longer has.
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
