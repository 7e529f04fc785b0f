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
	keys   map[string]string // Idempotency-Key, hashed → order id
	queue  []lateID          // in order of addition
}

type lateID struct {
	id    string
	added time.Time
}

type lateOrder struct {
	product, user string
	key           string // as in lua.Request
	quantity      int
	joined        time.Time // when its buyer clicked
	refused       bool
	outcome       lua.Outcome // if refused
	// instead is the order that an earlier click of the same key got meanwhile
	// from another edge; this one got nothing.
	instead string
	// ended is the end that Redis has noted; the zero value until it has.
	ended lua.Refusal
}

func newLateOrders(keep time.Duration) *lateOrders {
	return &lateOrders{keep: keep, orders: make(map[string]lateOrder), keys: make(map[string]string)}
}

func (l *lateOrders) add(product string, t *ticket) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for len(l.queue) > 0 && (len(l.queue) >= lateMax || t.joined.Sub(l.queue[0].added) > l.keep) {
		l.forgetLocked(l.queue[0].id)
		l.queue = l.queue[1:]
	}
	id := t.request.OrderID
	known, ok := l.orders[id]
	if ok && !known.refused {
		return // another click with the same order id was told the same
	}
	l.orders[id] = lateOrder{
		product: product, user: t.request.UserID, key: t.request.Key, quantity: t.request.Quantity, joined: t.joined,
	}
	if t.request.Key != "" {
		l.keys[t.request.Key] = id
	}
	if ok {
		return
	}
	l.queue = append(l.queue, lateID{id: id, added: t.joined})
}

// learn notes what Redis said to a late order after all: that it is refused, or
// that its buyer has another one under the same key. It returns the order, and whether
// that is its end.
func (l *lateOrders) learn(id string, r lua.Result) (lateOrder, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	o, ok := l.orders[id]
	switch {
	case !ok || r.Outcome == lua.Reserved && !r.Repeat:
		return o, false
	case r.Repeat:
		o.instead = r.OrderID
	default:
		// The next click of this key may try again.
		o.refused, o.outcome = true, r.Outcome
		l.forgetKeyLocked(o.key, id)
	}
	l.orders[id] = o
	return o, true
}

// end takes in the end of a late order that Redis has noted.
func (l *lateOrders) end(r lua.Refusal) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if o, ok := l.orders[r.OrderID]; ok {
		o.ended = r
		l.orders[r.OrderID] = o
	}
}

// refusal is the end of a late order that has one.
func (o lateOrder) refusal(id string) lua.Refusal {
	r := lua.Refusal{OrderID: id, Quantity: o.quantity, Instead: o.instead}
	if o.refused {
		r.Reason, r.Instead = order.Reason(o.outcome.String()), ""
	}
	return r
}

// keyed finds the late order of a key that Redis has not refused, and the id of
// the order that its buyer has.
func (l *lateOrders) keyed(key string) (id string, o lateOrder, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	id, ok = l.keys[key]
	o = l.orders[id]
	if o.instead != "" {
		id = o.instead
	}
	return id, o, ok
}

func (l *lateOrders) forgetLocked(id string) {
	l.forgetKeyLocked(l.orders[id].key, id)
	delete(l.orders, id)
}

func (l *lateOrders) forgetKeyLocked(key, id string) {
	if l.keys[key] == id {
		delete(l.keys, key)
	}
}

func (l *lateOrders) get(product, user, id string) (lateOrder, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	o, ok := l.orders[id]
	return o, ok && o.product == product && o.user == user
}
