package gate

import (
	"context"
	"time"

	"github.com/seckill-edge/seckill/lua"
)

// Offer is what a product's activity offers now, by this edge's own view.
type Offer struct {
	// Outcome is lua.Reserved if a unit can be had, else the refusal.
	Outcome lua.Outcome
	// RetryAfter is when asking again makes sense; 0 if it does not.
	RetryAfter time.Duration
	// ActivityID is the activity, empty if none is known.
	ActivityID string
	// Now is an estimate of Redis's clock, which all edges share; zero without an
	// activity.
	Now time.Time
}

// Offer says whether a product can be bought now, without asking Redis but for a
// product seen for the first time.
func (g *Gate) Offer(ctx context.Context, product string) Offer {
	s, seen := g.sale(ctx, product)
	now := g.deps.Now()
	if s == nil {
		o := Offer{Outcome: seen.outcome, RetryAfter: retryHeld(seen.outcome)}
		if seen.view != nil {
			o.ActivityID, o.Now = seen.view.ID, seen.view.serverNow(now)
		}
		return o
	}
	v := s.view.Load()
	o := Offer{ActivityID: v.ID, Now: v.serverNow(now)}
	o.Outcome, o.RetryAfter = s.refusal(now, 1)
	if early := v.Start.Sub(o.Now); o.Outcome == lua.Reserved && early > 0 {
		o.Outcome, o.RetryAfter = lua.NotStarted, early
	}
	return o
}

// Refused counts a purchase that the caller has refused for want of a ticket.
func (g *Gate) Refused() { g.stats.outcome(lua.NoTicket) }

// Admit makes the order id that one ticket is good for. It fails only if
// randomness does, and has logged it then.
func (g *Gate) Admit(product, user string) (orderID string, err error) {
	return g.newOrderID(product, user, g.deps.Now())
}
