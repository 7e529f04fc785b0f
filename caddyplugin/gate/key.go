package gate

import (
	"time"

	"github.com/seckill-edge/seckill/internal/order"
	"github.com/seckill-edge/seckill/lua"
)

// A click with an Idempotency-Key is answered like the buyer's first one with it,
// whichever edge that came to, and whatever has become of the sale since. The key
// lies in the buyer's record, so the script that reserves knows it. Two cases
// need more: an order that was told "queued" before Redis knew it, and a sale
// that this edge refuses without asking.

// repeatOfLate answers a click whose key is that of a late order.
func (g *Gate) repeatOfLate(c Click, key string) (Decision, bool) {
	id, quantity, ok := g.late.keyed(key)
	if !ok {
		return Decision{}, false
	}
	return g.repeat(id, quantity == c.Quantity), true
}

// repeatOfKnown answers a click that is refused from memory, by its buyer's
// record; false if there is no order of this key, and the refusal stands.
func (g *Gate) repeatOfKnown(s *sale, c Click, key string, refusal lua.Outcome) (Decision, bool) {
	away := refusal == lua.Held && (s == nil || s.closed()) // the refusal says: come again
	if key == "" || away || refusal == lua.BadArguments || refusal == lua.NoProduct {
		return Decision{}, false
	}
	text, err := g.records.read(c.ProductID, c.UserID)
	if err != nil {
		return g.refuse(lua.Held, "", time.Second), true
	}
	e, ok, err := lua.FindKey(text, key)
	switch {
	case err != nil:
		return g.refuse(lua.Held, "", time.Second), true
	case !ok:
		return Decision{}, false
	}
	return g.repeat(e.OrderID, e.Quantity == c.Quantity), true
}

// repeat answers with the first order of a key, or refuses another body.
func (g *Gate) repeat(first string, same bool) Decision {
	if !same {
		return g.refuse(lua.KeyReused, "", 0)
	}
	g.stats.repeats.Add(1)
	made, _ := order.IDTime(first)
	return Decision{OrderID: first, ResolveBy: g.resolveBy(made), Repeat: true}
}
