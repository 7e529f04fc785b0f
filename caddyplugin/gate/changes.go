package gate

import (
	"context"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/seckill-edge/seckill/lua"
)

const (
	// hearWithin is how long nothing may be heard before the connection is proven
	// by a ping; a server that does not answer that is left.
	hearWithin = 3 * time.Second
	// hearAgain is the first pause after a lost connection; it doubles up to
	// hearLate.
	hearAgain = 100 * time.Millisecond
	hearLate  = 2 * time.Second
)

// hear looks at products as soon as Redis says that units are back or that the
// activity is another. It may miss a word: each sale looks every second anyway,
// and after a lost connection all are looked at.
func (g *Gate) hear() {
	for pause := hearAgain; ; pause = min(2*pause, hearLate) {
		if g.hearOnce() {
			pause = hearAgain
		}
		if !g.sleep(pause) {
			return
		}
	}
}

// hearOnce listens until the connection is lost or the gate ends; true if it had
// heard anything.
func (g *Gate) hearOnce() (heard bool) {
	sub := g.deps.Redis.Subscribe(g.ctx, lua.Changes, lua.Moves)
	defer func() { _ = sub.Close() }()
	// A read does not look at the context: closing the connection ends it.
	defer context.AfterFunc(g.ctx, func() { _ = sub.Close() })()
	for silent := false; ; {
		message, err := sub.ReceiveTimeout(g.ctx, hearWithin)
		switch {
		case g.ctx.Err() != nil:
			return heard
		case isTimeout(err) && !silent:
			silent = true
			if sub.Ping(g.ctx) != nil {
				return heard
			}
			continue
		case err != nil:
			return heard
		}
		silent = false
		switch m := message.(type) {
		case *redis.Subscription: // nothing before it was heard
			heard = true
			g.changed("")
		case *redis.Message:
			if m.Channel == lua.Moves {
				product, orders, _ := strings.Cut(m.Payload, " ")
				g.streams.moved(product, orders)
				continue
			}
			g.changed(m.Payload)
		}
	}
}

// changed looks at a product, at all if it is empty. What became of the orders
// themselves lua.Moves tells: their streams are looked at only after a silence, and
// by the sale when its epoch is another (see sale.look). A product whose units come
// back fifty times a second must not have all its streams read each time.
func (g *Gate) changed(product string) {
	g.sales.changed(product)
	for _, s := range g.sales.all() {
		if product == "" || s.product == product {
			s.lookNow()
		}
	}
	if product == "" {
		g.streams.nudge("")
	}
}
