package gate

import (
	"context"
	"time"

	"github.com/seckill-edge/seckill/internal/order"
	"github.com/seckill-edge/seckill/lua"
)

// Reserve decides on a click. It returns after ReserveTimeout at the latest (and
// a few milliseconds): a buyer whom Redis has not answered by then is told
// "queued", his reservation goes on, and Fate tells how it ended. ctx is only
// looked at while a product is seen for the first time: a click that has gone to
// Redis is not taken back because its client hung up.
func (g *Gate) Reserve(ctx context.Context, c Click) Decision {
	s, seen := g.sale(ctx, c.ProductID)
	now := g.deps.Now()
	refusal, retry := seen.outcome, retryHeld(seen.outcome)
	if s != nil {
		refusal, retry = s.refusal(now, c.Quantity)
	}
	key := hashedKey(c)
	if d, ok := g.repeatOfLate(c, key); ok {
		return d
	}
	if refusal != lua.Reserved {
		if d, ok := g.repeatOfKnown(s, c, key, refusal); ok {
			return d
		}
		g.stats.local.Add(1)
		return g.refuse(refusal, "", retry)
	}
	passed, weight, ok := g.pass(s, int64(c.Quantity))
	if !ok {
		g.stats.local.Add(1)
		g.stats.outcome(passed.Outcome)
		return passed
	}
	d := g.ask(s, c, key, weight, now)
	d.Limit = passed.Limit
	return d
}

// ask reserves for a click that was let through.
func (g *Gate) ask(s *sale, c Click, key string, weight int64, now time.Time) Decision {
	id := c.OrderID
	if id == "" {
		var err error
		if id, err = g.newOrderID(c.ProductID, c.UserID, now); err != nil {
			s.crowd.leave(weight)
			return g.refuse(lua.Unavailable, "", time.Second)
		}
	}
	t := newTicket(lua.Request{OrderID: id, UserID: c.UserID, Quantity: c.Quantity, Key: key}, now)
	t.activity, t.weight = c.ActivityID, weight
	if !s.group.join(t) {
		s.crowd.leave(weight)
		g.stats.local.Add(1)
		return g.refuse(lua.Unavailable, "", time.Second)
	}
	<-t.answered
	late, result := t.late, t.result
	if late {
		// The group still holds the ticket, so it is not given back to the pool.
		g.stats.late.Add(1)
		g.stats.outcome(lua.Reserved)
		return Decision{OrderID: id, ResolveBy: g.resolveBy(now), Quantity: c.Quantity}
	}
	t.free()
	switch e := result.Earlier; {
	case result.Repeat:
		made, _ := order.IDTime(result.OrderID)
		return g.repeat(result.OrderID, made.Add(g.cfg.TicketLife), c.Quantity)
	case e != nil && c.OrderID != "": // else: of a call that was sent again
		return g.repeat(id, g.begun(id, e.At), e.Quantity)
	}
	if result.Outcome == lua.NoTicket && c.OrderID == "" {
		result.Outcome = lua.Unavailable // another edge's clock is ahead; the next id is greater
	}
	if result.Outcome != lua.Reserved {
		return g.refuse(result.Outcome, result.OrderID, retryHeld(result.Outcome))
	}
	g.stats.outcome(lua.Reserved)
	return Decision{OrderID: id, ResolveBy: g.resolveBy(now), Quantity: c.Quantity}
}

// newOrderID makes the id of an order to come.
func (g *Gate) newOrderID(product, user string, now time.Time) (string, error) {
	id, err := order.NewID(now, g.deps.Random)
	if err != nil {
		g.deps.Log.Error("cannot make an order id", "error", err)
		return "", err
	}
	return order.OwnID(id, product, user), nil
}

func (g *Gate) refuse(o lua.Outcome, orderID string, retry time.Duration) Decision {
	g.stats.outcome(o)
	return Decision{Outcome: o, OrderID: orderID, RetryAfter: retry}
}

func (g *Gate) resolveBy(made time.Time) time.Time { return made.Add(g.cfg.ResolveWithin) }

// retryHeld is when to come back after a refusal that Redis or the lack of it
// gave. NotStarted from the script is at most clockSlack too early.
func retryHeld(o lua.Outcome) time.Duration {
	if o == lua.Held || o == lua.Unavailable || o == lua.NotStarted {
		return time.Second
	}
	return 0
}

// View returns the activity of a product as this edge sees it. The outcome is
// lua.Reserved with a view, NoProduct without an activity, Unavailable when Redis
// could not be asked.
func (g *Gate) View(ctx context.Context, product string) (View, lua.Outcome) {
	s, seen := g.sale(ctx, product)
	switch now := g.deps.Now(); {
	case s != nil:
		return s.current(now), lua.Reserved
	case seen.view != nil:
		view := View{Snapshot: seen.view.Snapshot, Fresh: true}
		view.Now = seen.view.serverNow(now)
		return view, lua.Reserved
	}
	return View{}, seen.outcome
}

// Views returns the activities this edge has sold or looked at since it started.
func (g *Gate) Views() []View {
	now := g.deps.Now()
	sales := g.sales.all()
	views := make([]View, 0, len(sales))
	for _, s := range sales {
		views = append(views, s.current(now))
	}
	return views
}

func (s *sale) current(now time.Time) View {
	v := s.view.Load()
	view := View{Snapshot: v.Snapshot, Fresh: !s.closed() && !s.stale(now) && v.Proven()}
	view.Now = v.serverNow(now)
	if s.soldOut.Load() {
		view.Available = 0
	}
	return view
}
