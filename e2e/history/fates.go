package history

import (
	"maps"
	"slices"
	"time"

	"github.com/seckill-edge/seckill/internal/order"
	"github.com/seckill-edge/seckill/lua"
)

func (t *Told) ended() time.Time {
	if t.End.IsZero() {
		return t.At
	}
	return t.End
}

// final says that nothing more is to become of the order.
func (t *Told) final() bool { return t.Status == 200 && t.State != order.Queued }

// promised is until when the fate of an order must be known: its resolve_by; or, if
// Redis or SQL itself was away then, the end of that and of the recovery.
func (c *check) promised(click *Click) time.Time {
	due := click.ResolveBy
	for again := true; again; {
		again = false
		for i := range c.Outages {
			o := &c.Outages[i]
			back := o.Healed.Add(o.Recovery)
			if (o.Server == Redis || o.Server == Database) && o.Programs == nil && o.possible(due, due) && back.After(due) {
				due, again = back, true
			}
		}
	}
	return due
}

// promises looks for orders whose fate was not known in time. An answer "queued"
// proves it if it was asked for afterwards, and so does the time at which the order
// was stored: it does not matter how fast anybody asks.
func (c *check) promises() {
	late := map[string]bool{}
	for i := range c.Told {
		t := &c.Told[i]
		click := c.clicks[t.OrderID]
		if click == nil || late[t.OrderID] || t.Status != 200 || t.State != order.Queued {
			continue
		}
		if due := c.promised(click); t.At.After(due) {
			late[t.OrderID] = true
			c.fail(Late, "order %s still read queued %v after its resolve_by, which nothing excused after %v",
				t.OrderID, t.At.Sub(click.ResolveBy), due.Sub(click.ResolveBy))
		}
	}
	for _, id := range slices.Sorted(maps.Keys(c.rows)) {
		row, click := c.rows[id], c.clicks[id]
		if age := row.Stored.Sub(row.Reserved); !row.Stored.IsZero() && row.State.HoldsStock() && age > c.verdict.Age {
			c.verdict.Slowest, c.verdict.Age = id, age
		}
		if click == nil || late[id] || row.Stored.IsZero() {
			continue
		}
		if due := c.promised(click); row.Stored.After(due) {
			c.fail(Late, "order %s was stored %v after its resolve_by", id, row.Stored.Sub(click.ResolveBy))
		}
	}
}

// refusals counts the orders that were told "queued" and came to nothing, and looks
// for reasons that are none.
func (c *check) refusals() {
	held := map[int]int{} // by edge
	for i := range c.Clicks {
		if c.Clicks[i].Code == lua.Held && !c.Holds {
			held[c.Clicks[i].Edge]++
		}
	}
	for _, edge := range slices.Sorted(maps.Keys(held)) {
		c.fail(Untrue, "edge %d has told %d clicks that the sale is held, which nobody has done", edge+1, held[edge])
	}
	for id := range c.clicks {
		t := c.last[id]
		if t.Status != 200 || t.State != order.Rejected {
			continue
		}
		if c.verdict.Refused == nil {
			c.verdict.Refused = map[order.Reason]int{}
		}
		c.verdict.Refused[t.Reason]++
		switch {
		case t.Reason == reason(lua.Held) && !c.Holds:
			c.fail(Untrue, "order %s was rejected as held, and nobody has held the sale", id)
		case c.Plenty && (t.Reason == reason(lua.SoldOut) || t.Reason == reason(lua.TooFew)):
			c.fail(Untrue, "order %s was rejected as %s, and there were units for everybody", id, t.Reason)
		}
	}
}

func reason(o lua.Outcome) order.Reason { return order.Reason(o.String()) }

// steadiness looks for fates that were taken back, on whatever edge: a final state
// and its reason never change, and do not become unknown again.
func (c *check) steadiness() {
	first, told := map[string]*Told{}, map[string]bool{}
	for i := range c.Told {
		t := &c.Told[i]
		if !t.final() {
			continue
		}
		before := first[t.OrderID]
		if before == nil || t.ended().Before(before.ended()) {
			first[t.OrderID] = t
		}
		if before == nil || told[t.OrderID] || before.State == t.State && before.Reason == t.Reason {
			continue
		}
		told[t.OrderID] = true
		c.fail(Untrue, "order %s was told %q %s by edge %d, and %q %s by edge %d %v later", t.OrderID,
			before.State, before.Reason, before.Edge+1, t.State, t.Reason, t.Edge+1, t.At.Sub(before.At))
		if (before.State == order.Rejected) != (t.State == order.Rejected) {
			c.fail(Lost, "order %s was told %q, and later %q", t.OrderID, before.State, t.State)
		}
	}
	for i := range c.Told {
		t := &c.Told[i]
		before := first[t.OrderID]
		forgotten := t.Status == 404 || t.Status == 200 && t.State == order.Queued
		if before == nil || told[t.OrderID] || !forgotten || !t.At.After(before.ended()) {
			continue
		}
		told[t.OrderID] = true
		c.fail(Untrue, "order %s was told %q %s by edge %d, and %q (HTTP %d) by edge %d %v later", t.OrderID,
			before.State, before.Reason, before.Edge+1, t.State, t.Status, t.Edge+1, t.At.Sub(before.At))
	}
}
