package history

import (
	"fmt"

	"github.com/seckill-edge/seckill/lua"
)

// origins looks for orders that nobody can have asked for: every order belongs to
// a click that was accepted, or to one of its buyer without an answer. A click
// that was told to come again (503) has left nothing behind.
func (c *check) origins() {
	open := map[string]int{} // buyer, quantity → clicks without an answer
	key := func(buyer string, quantity int) string { return fmt.Sprint(buyer, "\x00", quantity) }
	for i := range c.Clicks {
		if click := &c.Clicks[i]; click.Status == 0 {
			open[key(click.Buyer, click.Quantity)]++
		}
	}
	explain := func(place, id, buyer string, quantity int) {
		if click, ok := c.clicks[id]; ok && click.Buyer == buyer {
			return
		}
		if k := key(buyer, quantity); open[k] > 0 {
			open[k]--
			return
		}
		c.fail(Duplicated, "order %s of %s, %d units, is in %s, but nobody was given it", id, buyer, quantity, place)
	}
	for _, r := range c.End.Rows {
		explain("SQL", r.OrderID, r.Buyer, r.Quantity)
	}
	for _, e := range c.End.Entries {
		if _, stored := c.rows[e.OrderID]; !stored {
			explain("Redis", e.OrderID, e.Buyer, e.Quantity)
		}
	}
}

// ends looks at what must have come to rest.
func (c *check) ends() {
	e := c.End
	if !e.Open {
		c.fail(Stuck, "the activity is not open and proven in Redis")
	}
	if !e.Selling {
		c.fail(Stuck, "an edge does not sell again")
	}
	if e.Outbox != 0 || e.Frozen != 0 || e.Queued != 0 {
		c.fail(Stuck, "%d orders in the outbox, %d units frozen, %d messages queued", e.Outbox, e.Frozen, e.Queued)
	}
	if e.Dead != 0 {
		c.fail(Stuck, "%d dead letters", e.Dead)
	}
	if e.Drift != 0 {
		c.fail(Stuck, "the audit says drift %d", e.Drift)
	}
	for id, r := range c.rows {
		entry, known := c.entries[id]
		if r.State.HoldsStock() && (!known || !sold(entry.Mark)) {
			c.fail(Stuck, "order %s is %q in SQL, in Redis %q", id, r.State, mark(entry, known))
		}
		if !r.State.HoldsStock() && known && holds(entry.Mark) {
			c.fail(Stuck, "order %s is %q in SQL, in Redis it holds units (%q)", id, r.State, mark(entry, known))
		}
	}
	for id, entry := range c.entries {
		if _, stored := c.rows[id]; !stored && holds(entry.Mark) {
			c.fail(Stuck, "order %s of %s holds units in Redis (%q) and is not in SQL", id, entry.Buyer, mark(entry, true))
		}
	}
}

func holds(m lua.Mark) bool {
	return m == lua.MarkQueued || m == lua.MarkCreated || sold(m)
}

func sold(m lua.Mark) bool { return m == lua.MarkSettled || m == lua.MarkPaid }

func mark(e Entry, known bool) string {
	if !known {
		return ""
	}
	return string(rune(e.Mark))
}
