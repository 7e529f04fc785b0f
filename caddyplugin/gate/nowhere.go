package gate

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/seckill-edge/seckill/internal/order"
)

// lostFor is how long the buyer of an order that is nowhere is told that it is
// lost.
const lostFor = time.Hour

// lastWord is the last moment, by the clock of who made the order's id, at which
// anything may become of an order: its ticket may be used until the end of TicketLife,
// and what was clicked then is decided within ResolveWithin. Every edge reckons it from
// the id alone, so that all tell from the same moment on that the order is lost.
func (g *Gate) lastWord(orderID string) time.Time {
	made, _ := order.IDTime(orderID)
	return g.resolveBy(made.Add(g.cfg.TicketLife))
}

// nowhere tells the fate of an order that no store knows, asked for at the time asked:
// before its buyer's record and what is noted of it were read. Such an order is not
// always made up: another edge has told its buyer "queued" before Redis had answered,
// and Redis may take it yet; or that edge has died, and the order with it. The id says
// whether it was made for who asks. Its quantity is known to nobody.
//
// Redis takes nothing and notes nothing of the order any more once it is told to be
// lost. Only a Redis that forgets its last second may forget an end that was noted:
// then the order is lost to an edge that does not remember it either.
func (g *Gate) nowhere(product, user, orderID string, asked time.Time) (Fate, error) {
	made, _ := order.IDTime(orderID)
	age := asked.Sub(made)
	if age < -fastClock || age > lostFor || !order.OwnedBy(orderID, product, user) {
		return Fate{}, ErrNoOrder
	}
	f := Fate{OrderID: orderID, State: order.Queued, ResolveBy: g.lastWord(orderID)}
	if g.lost(orderID, asked) {
		f.State, f.Reason, f.Final = order.Rejected, order.ReasonLost, true
	}
	f.pace(age)
	return f, nil
}

// forgotten tells the fate of an order that Redis does not have and may have forgotten,
// for the reason why. What is stored is true whatever Redis has forgotten. Else nothing
// can be said of an order that was made for who asks, until it is brought back; one that
// no backend brings back is unknown, ErrNoOrder, after lostFor.
func (g *Gate) forgotten(ctx context.Context, product, user, orderID string, asked time.Time, why error) (Fate, error) {
	f, err := g.inArchive(ctx, product, user, orderID)
	if !errors.Is(err, ErrNoOrder) {
		return f, err
	}
	made, _ := order.IDTime(orderID)
	age := asked.Sub(made)
	if !order.OwnedBy(orderID, product, user) || errors.Is(why, errGone) && (age < -fastClock || age > lostFor) {
		return Fate{}, ErrNoOrder
	}
	return Fate{}, fmt.Errorf("%w: %w", ErrUnavailable, why)
}

// lost says that nothing becomes any more of an order of which nothing was known at
// that time or later.
func (g *Gate) lost(orderID string, asked time.Time) bool {
	return asked.After(g.lastWord(orderID))
}
