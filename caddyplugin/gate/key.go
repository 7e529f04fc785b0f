package gate

import (
	"time"

	"github.com/seckill-edge/seckill/internal/order"
	"github.com/seckill-edge/seckill/lua"
)

// A click with an Idempotency-Key is answered like the buyer's first one with it,
// whichever edge that came to, and whatever has become of the sale since; so is
// one with an order id, like the first one with that. Both lie in the buyer's
// record, so the script that reserves knows them. Two cases need more: an order
// that was told "queued" before Redis knew it, and a sale that this edge refuses
// without asking.

// repeatOfLate answers a click whose key, or order id, is that of a late order.
func (g *Gate) repeatOfLate(c Click, key string) (Decision, bool) {
	if key != "" {
		if id, o, ok := g.late.keyed(key); ok {
			if o.quantity != c.Quantity {
				return g.refuse(lua.KeyReused, "", 0), true
			}
			return g.repeat(id, o.joined, o.quantity), true
		}
	}
	if c.OrderID != "" {
		if o, ok := g.late.get(c.ProductID, c.UserID, c.OrderID); ok && !o.refused && o.instead == "" {
			return g.repeat(c.OrderID, o.joined, o.quantity), true
		}
	}
	return Decision{}, false
}

// Known answers a click that may buy nothing any more with the first order of its
// key, or with that of its order id; false if this buyer has none. It asks Redis,
// grouped, so the caller should know that the product has an activity.
func (g *Gate) Known(c Click) (Decision, bool) {
	if c.Key == "" && c.OrderID == "" {
		return Decision{}, false
	}
	key := hashedKey(c)
	if d, ok := g.repeatOfLate(c, key); ok {
		return d, true
	}
	return g.recorded(c, key)
}

func hashedKey(c Click) string {
	if c.Key == "" {
		return ""
	}
	return lua.HashKey(c.ProductID, c.UserID, c.Key)
}

// repeatOfKnown answers a click that is refused from memory, by its buyer's
// record; false if there is no order of this key or id, and the refusal stands.
func (g *Gate) repeatOfKnown(s *sale, c Click, key string, refusal lua.Outcome) (Decision, bool) {
	away := refusal == lua.Unavailable && (s == nil || s.closed()) // the refusal says: come again
	if key == "" && c.OrderID == "" || away || refusal == lua.BadArguments || refusal == lua.NoProduct {
		return Decision{}, false
	}
	return g.recorded(c, key)
}

// recorded looks for a click's order in its buyer's record.
func (g *Gate) recorded(c Click, key string) (Decision, bool) {
	text, _, err := g.records.read(c.ProductID, c.UserID, "")
	if err != nil {
		return g.refuse(lua.Unavailable, "", time.Second), true
	}
	var e lua.Entry
	var found bool
	if key != "" {
		e, found, err = lua.FindKey(text, key)
	}
	if found && e.Quantity != c.Quantity {
		return g.refuse(lua.KeyReused, "", 0), true
	}
	if err == nil && !found && c.OrderID != "" {
		e, found, err = lua.FindOrder(text, c.OrderID)
	}
	if err != nil {
		return g.refuse(lua.Unavailable, "", time.Second), true
	}
	if !found {
		return Decision{}, false
	}
	return g.repeat(e.OrderID, g.begun(e.OrderID, e.At), e.Quantity), true
}

// repeat answers with an order that an earlier click has got at the time begun.
func (g *Gate) repeat(first string, begun time.Time, quantity int) Decision {
	g.stats.repeats.Add(1)
	return Decision{OrderID: first, ResolveBy: g.resolveBy(begun), Repeat: true, Quantity: quantity}
}

// begun says when an order that Redis took at the time at was clicked for. Its id
// is as old, unless it came from Offer.
func (g *Gate) begun(id string, at time.Time) time.Time {
	made, _ := order.IDTime(id)
	if g.cfg.TicketLife > 0 && at.After(made) {
		return at
	}
	return made
}
