package history

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/seckill-edge/seckill/internal/order"
)

// Kind sorts violations by the promise that is broken.
type Kind string

// The kinds.
const (
	// Lost: an order that was taken is gone without its buyer's fault or knowledge.
	Lost Kind = "lost"
	// Oversold: more units are given away than there are, or counted wrong.
	Oversold Kind = "oversold"
	// Duplicated: something exists twice, beyond a buyer's limit, or that nobody
	// asked for.
	Duplicated Kind = "duplicated"
	// Stuck: something does not come to its end.
	Stuck Kind = "stuck"
	// Late: the fate of an order was not known by its resolve_by, and neither Redis
	// nor SQL was away then.
	Late Kind = "late"
	// Untrue: a program said what was not so: a state that was not there, or a final
	// state that it changed afterwards.
	Untrue Kind = "untrue"
)

// Violation is one broken promise.
type Violation struct {
	Kind Kind
	Text string
}

// Verdict is what a history shows.
type Verdict struct {
	Violations []Violation
	// Orders is the orders that were taken and are stored, Units their units.
	Orders, Units int64
	// GivenUp is the orders that were lost where the design allows it, and whose
	// buyers were told so.
	GivenUp int
	// Refused is the orders that were told "queued" and then rejected, by reason.
	Refused map[order.Reason]int
	// Slowest is the order that was stored last after it was reserved, and Age how
	// long that took; empty if none was.
	Slowest string
	Age     time.Duration
}

// Count is the violations of one kind.
func (v *Verdict) Count(k Kind) int {
	n := 0
	for i := range v.Violations {
		if v.Violations[i].Kind == k {
			n++
		}
	}
	return n
}

// Check judges a history. It changes nothing.
func Check(h *History) Verdict {
	c := &check{History: h, rows: map[string]Row{}, entries: map[string]Entry{}, clicks: map[string]*Click{}, last: map[string]Told{}}
	c.index()
	c.units()
	c.buyers()
	c.orders()
	c.promises()
	c.refusals()
	c.origins()
	c.steadiness()
	c.ends()
	c.statements()
	c.lines()
	slices.SortStableFunc(c.verdict.Violations, func(a, b Violation) int {
		return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Text, b.Text))
	})
	return c.verdict
}

type check struct {
	*History
	verdict Verdict
	rows    map[string]Row
	entries map[string]Entry
	clicks  map[string]*Click // by order id, those that were accepted
	last    map[string]Told   // the last answer that said something
}

func (c *check) fail(k Kind, format string, args ...any) {
	c.verdict.Violations = append(c.verdict.Violations, Violation{k, fmt.Sprintf(format, args...)})
}

// index finds everything by order id, and what has an id twice.
func (c *check) index() {
	for _, r := range c.End.Rows {
		if _, twice := c.rows[r.OrderID]; twice {
			c.fail(Duplicated, "order %s is stored twice", r.OrderID)
		}
		c.rows[r.OrderID] = r
	}
	for _, e := range c.End.Entries {
		if _, twice := c.entries[e.OrderID]; twice {
			c.fail(Duplicated, "order %s is in Redis's records twice", e.OrderID)
		}
		c.entries[e.OrderID] = e
	}
	for i := range c.Clicks {
		click := &c.Clicks[i]
		if !click.accepted() {
			continue
		}
		if before, twice := c.clicks[click.OrderID]; twice {
			c.fail(Duplicated, "order %s was given to two clicks, of %s and %s", click.OrderID, before.Buyer, click.Buyer)
		}
		c.clicks[click.OrderID] = click
	}
	for _, t := range c.Told {
		if before := c.last[t.OrderID]; t.Status == 200 && (t.final() || !before.final()) || t.Status == 404 {
			c.last[t.OrderID] = t // what was final stays it; steadiness finds who says otherwise
		}
	}
}

// units counts what is sold, in SQL, in Redis, and by what clients were told.
func (c *check) units() {
	var stored, told int64
	for _, r := range c.End.Rows {
		if r.State.HoldsStock() {
			c.verdict.Orders++
			stored += int64(r.Quantity)
		}
	}
	c.verdict.Units = stored
	if stored > c.Total {
		c.fail(Oversold, "SQL holds %d units of %d", stored, c.Total)
	}
	if stored != c.End.Reserved {
		c.fail(Oversold, "SQL's guard has counted %d units, its orders hold %d", c.End.Reserved, stored)
	}
	for id, click := range c.clicks {
		if t := c.last[id]; t.Status == 200 && t.State.HoldsStock() {
			told += int64(click.Quantity)
		}
	}
	if told > c.Total {
		c.fail(Oversold, "buyers were told of %d units of %d", told, c.Total)
	}
	if !c.End.Open {
		return // its counters are nobody's yet; ends says so
	}
	e := c.End
	if e.Available < 0 || e.Frozen < 0 || e.Sold < 0 || e.Available+e.Frozen+e.Sold != c.Total {
		c.fail(Oversold, "Redis has %d available + %d frozen + %d sold, not %d", e.Available, e.Frozen, e.Sold, c.Total)
	}
	if given := c.Total - e.Available; given < stored {
		c.fail(Oversold, "SQL holds %d units, Redis has given away only %d", stored, given)
	}
}

// buyers looks for those who hold more than the limit.
func (c *check) buyers() {
	inSQL, inRedis := map[string]int{}, map[string]int{}
	for _, r := range c.End.Rows {
		if r.State.HoldsStock() {
			inSQL[r.Buyer] += r.Quantity
		}
	}
	for _, e := range c.End.Entries {
		if holds(e.Mark) {
			inRedis[e.Buyer] += e.Quantity
		}
	}
	for buyer, n := range inSQL {
		if n > c.Limit {
			c.fail(Duplicated, "%s has %d units in SQL, the limit is %d", buyer, n, c.Limit)
		}
	}
	for buyer, n := range inRedis {
		if n > c.Limit {
			c.fail(Duplicated, "%s has %d units in Redis, the limit is %d", buyer, n, c.Limit)
		}
	}
}

// orders follows every order that was taken to its end.
func (c *check) orders() {
	for id, click := range c.clicks {
		row, stored := c.rows[id]
		entry, known := c.entries[id]
		told := c.last[id]
		final := told.Status == 200 && told.State != order.Queued
		switch due := c.due(click); {
		case final:
		case c.End.At.Before(due):
			c.fail(Stuck, "order %s is %q, the history ends %v before its fate is due", id, told.State, due.Sub(c.End.At))
			continue
		case told.Status == 200 || stored || known:
			c.fail(Stuck, "order %s is %q to its buyer (HTTP %d), in SQL %q, in Redis %q: its fate was due %v before the end",
				id, told.State, told.Status, row.State, mark(entry, known), c.End.At.Sub(due))
			continue
		}
		switch {
		case stored:
			c.sameOrder(id, click, row, told)
		case final && told.State == order.Rejected && told.Reason != order.ReasonLost:
			// Refused after "queued": Redis answered late. Nothing may hold its unit.
			if known && holds(entry.Mark) {
				c.fail(Stuck, "order %s was refused (%s) and still holds its unit in Redis", id, told.Reason)
			}
		case final && told.State == order.Rejected && !known && (c.Forgetful || c.unheard(click)):
			c.verdict.GivenUp++
		default:
			c.fail(Lost, "order %s of %s is not stored; he is told %q %s (HTTP %d), Redis has %q",
				id, click.Buyer, told.State, told.Reason, told.Status, mark(entry, known))
		}
	}
}

// unheard says that a click may have been told "queued" without Redis's word.
func (c *check) unheard(click *Click) bool {
	return c.Unheard > 0 && click.End.Sub(click.Start) >= c.Unheard
}

// sameOrder compares an order that was taken with what is stored and told.
func (c *check) sameOrder(id string, click *Click, row Row, told Told) {
	if row.Buyer != click.Buyer || row.Quantity != click.Quantity {
		c.fail(Duplicated, "order %s is stored for %s, %d units; it was given to %s, %d units",
			id, row.Buyer, row.Quantity, click.Buyer, click.Quantity)
	}
	if told.Status == 200 && told.State != order.Queued && told.State != row.State {
		c.fail(Lost, "order %s is %q to its buyer and %q in SQL", id, told.State, row.State)
	}
	// A rejected row is right only if it can be explained: Redis forgot, and the
	// guard had the last word.
	if row.State == order.Rejected && !c.Forgetful {
		c.fail(Lost, "order %s was taken and then rejected (%s), though Redis forgot nothing", id, row.Reason)
	}
}

// due is when an order's fate must be known.
func (c *check) due(click *Click) time.Time {
	if after := c.Healed.Add(c.Bound); after.After(click.ResolveBy) {
		return after
	}
	return click.ResolveBy
}
