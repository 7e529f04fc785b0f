package gate

import (
	"sync"
	"time"

	"github.com/seckill-edge/seckill/internal/order"
	"github.com/seckill-edge/seckill/lua"
)

// lateMax bounds the remembered late orders; the oldest are forgotten first.
const lateMax = 1 << 16

// lateOrders remembers the clicks that were told "queued" before Redis had
// answered, so that their buyers can be told how it ended when nothing about
// them is in Redis.
type lateOrders struct {
	keep time.Duration

	mu     sync.Mutex
	orders map[string]lateOrder
	queue  []lateID // in order of addition
}

type lateID struct {
	id    string
	added time.Time
}

type lateOrder struct {
	product, user string
	quantity      int
	refused       bool
	outcome       lua.Outcome // if refused
}

func newLateOrders(keep time.Duration) *lateOrders {
	return &lateOrders{keep: keep, orders: make(map[string]lateOrder)}
}

func (l *lateOrders) add(product string, t *ticket) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for len(l.queue) > 0 && (len(l.queue) >= lateMax || t.joined.Sub(l.queue[0].added) > l.keep) {
		delete(l.orders, l.queue[0].id)
		l.queue = l.queue[1:]
	}
	id := t.request.OrderID
	if _, ok := l.orders[id]; ok {
		return // it was told in an earlier round
	}
	l.orders[id] = lateOrder{product: product, user: t.request.UserID, quantity: t.request.Quantity}
	l.queue = append(l.queue, lateID{id: id, added: t.joined})
}

// refuse notes that Redis refused a late order after all.
func (l *lateOrders) refuse(id string, o lua.Outcome) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if order, ok := l.orders[id]; ok {
		order.refused, order.outcome = true, o
		l.orders[id] = order
	}
}

func (l *lateOrders) get(product, user, id string) (lateOrder, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	o, ok := l.orders[id]
	return o, ok && o.product == product && o.user == user
}

// fate of a late order that Redis knows nothing of, at now.
func (o lateOrder) fate(id string, now, resolveBy time.Time) Fate {
	f := Fate{OrderID: id, State: order.Queued, Quantity: o.quantity, ResolveBy: resolveBy}
	switch {
	case o.refused:
		f.State, f.Reason = order.Rejected, order.Reason(o.outcome.String())
	case now.After(resolveBy):
		f.State, f.Reason = order.Rejected, order.ReasonLost
	}
	return f
}
