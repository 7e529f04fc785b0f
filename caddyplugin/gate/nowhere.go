package gate

import (
	"time"

	"github.com/seckill-edge/seckill/internal/order"
)

// lostFor is how long the buyer of an order that is nowhere is told that it is
// lost.
const lostFor = time.Hour

// nowhere tells the fate of an order that no store knows and that this edge does
// not remember. Such an order is not always made up: another edge has told its
// buyer "queued" before Redis had answered, and Redis may take it yet; or that
// edge has died, and the order with it. The id says whether it was made for who
// asks. Its quantity is known to nobody.
func (g *Gate) nowhere(product, user, orderID string) (Fate, error) {
	made, _ := order.IDTime(orderID)
	now := g.deps.Now()
	age := now.Sub(made)
	if age < -fastClock || age > lostFor || !order.OwnedBy(orderID, product, user) {
		return Fate{}, ErrNoOrder
	}
	f := Fate{OrderID: orderID, State: order.Queued, ResolveBy: g.resolveBy(made.Add(g.cfg.TicketLife))}
	if now.After(f.ResolveBy) {
		f.State, f.Reason, f.Final = order.Rejected, order.ReasonLost, true
	}
	f.pace(age)
	return f, nil
}
