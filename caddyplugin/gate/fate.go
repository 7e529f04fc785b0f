package gate

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/seckill-edge/seckill/internal/order"
	"github.com/seckill-edge/seckill/lua"
)

// Errors of Fate.
var (
	// ErrNoOrder: the buyer has no such order; another buyer's looks the same.
	ErrNoOrder = errors.New("no such order")
	// ErrUnavailable: who knows of the order cannot be asked now.
	ErrUnavailable = errors.New("the order's fate cannot be read now")
)

const (
	// Askers come again after askSoon, later ever less often, up to askLate.
	askSoon = time.Second
	askLate = 4500 * time.Millisecond
	// slower: an order ten seconds old lets its asker wait a second longer.
	slower = 10
)

// Fate is what became of an order.
type Fate struct {
	OrderID string
	State   order.State
	// Reason says why it was rejected; empty if nobody knows.
	Reason order.Reason
	// Quantity is 0 if nobody knows.
	Quantity  int
	ResolveBy time.Time
	// PayBy is until when a created order can surely be paid: its pay window counted
	// from the reservation. Zero if it waits for no payment, or nobody knows.
	PayBy time.Time
	// Final says that nothing becomes of it any more.
	Final bool
	// RetryAfter is when asking again makes sense, in whole seconds; 0 if Final.
	RetryAfter time.Duration
}

// standing is what a mark of a buyer's record means to him.
type standing struct {
	state order.State
	final bool
}

var standings = map[lua.Mark]standing{
	lua.MarkQueued:    {order.Queued, false},
	lua.MarkCreated:   {order.Created, false}, // waits for the payment
	lua.MarkSettled:   {order.Created, true},
	lua.MarkPaid:      {order.Paid, true},
	lua.MarkRejected:  {order.Rejected, true},
	lua.MarkCancelled: {order.Cancelled, true},
	lua.MarkExpired:   {order.Expired, true},
}

// Fate tells a buyer what became of his own order. What is final stays so, and its
// reason, on every edge and for as long as the order can be asked for; only a new click
// with the ticket of an order that was refused is a new try of it. Errors are ErrNoOrder
// and ErrUnavailable, wrapped. It waits for Redis at most ReserveTimeout, and for the
// archive, which is asked about what Redis no longer has, archiveTimeout.
func (g *Gate) Fate(ctx context.Context, product, user, orderID string) (Fate, error) {
	if !order.ValidID(orderID) {
		return Fate{}, ErrNoOrder
	}
	// The time is taken first: what is not there once nothing may be written of the
	// order any more will never be. So is what this edge remembers: were it forgotten
	// later, Redis would know by then.
	q := question{product: product, user: user, orderID: orderID, asked: g.deps.Now()}
	q.late, q.isLate = g.late.get(product, user, orderID)
	text, note, unread := g.records.read(product, user, orderID)
	forgotten := errors.Is(unread, errForgotten) || errors.Is(unread, errGone)
	if unread != nil && !forgotten {
		return Fate{}, fmt.Errorf("%w: %w", ErrUnavailable, unread)
	}
	f, found, err := g.fateIn(q, text, note)
	if err != nil {
		return Fate{}, fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	if found {
		return f, nil
	}
	id := f.OrderID
	if forgotten {
		return g.forgotten(ctx, product, user, id, q.asked, unread)
	}
	f, err = g.archived(ctx, product, user, id)
	if errors.Is(err, ErrNoOrder) {
		return g.nowhere(product, user, id, q.asked)
	}
	return f, err
}

// question is what is asked of an order, and what the edge remembers of it.
type question struct {
	product, user, orderID string
	asked                  time.Time // before text and note were read
	late                   lateOrder
	isLate                 bool
}

// fateIn finds the order in the buyer's record, in what this edge remembers, or in
// what is noted of it. If it finds nothing, the fate's OrderID is the order to look for
// elsewhere.
func (g *Gate) fateIn(q question, text string, note lua.Refusal) (Fate, bool, error) {
	f, found, err := g.recordedFate(q, text, q.orderID)
	if found || err != nil {
		return f, found, err
	}
	end := q.late.ended
	pending := q.isLate && end.OrderID == ""
	switch {
	case pending && !g.lost(q.orderID, q.asked):
		f = Fate{OrderID: q.orderID, State: order.Queued, Quantity: q.late.quantity, ResolveBy: g.resolveBy(q.late.joined)}
		f.pace(q.asked.Sub(q.late.joined))
		return f, true, nil
	case end.OrderID == "":
		end = note
	}
	switch {
	case end.OrderID == "" || !order.OwnedBy(q.orderID, q.product, q.user):
		return Fate{OrderID: q.orderID}, false, nil
	case end.Instead != "":
		f, found, err = g.recordedFate(q, text, end.Instead)
		f.OrderID = end.Instead
		return f, found, err
	}
	return Fate{
		OrderID: q.orderID, State: order.Rejected, Reason: end.Reason, Final: true,
		Quantity: end.Quantity, ResolveBy: g.lastWord(q.orderID),
	}, true, nil
}

// recordedFate finds an order in the buyer's record.
func (g *Gate) recordedFate(q question, text, id string) (Fate, bool, error) {
	e, found, err := lua.FindOrder(text, id)
	if !found || err != nil {
		return Fate{}, false, err
	}
	s := standings[e.Mark]
	f := Fate{
		OrderID: id, State: s.state, Final: s.final, Reason: e.Reason, Quantity: e.Quantity,
		ResolveBy: g.resolveBy(g.begun(id, e.At)),
	}
	if e.Mark == lua.MarkCreated {
		f.PayBy = g.payBy(q.product, e.At)
	}
	made, _ := order.IDTime(id)
	f.pace(q.asked.Sub(made))
	return f, true, nil
}

// payBy is when the pay window of what was reserved at that time ends; zero if this
// edge does not know the window. The window itself begins a little later, when the
// order is stored.
func (g *Gate) payBy(product string, reserved time.Time) time.Time {
	b := &g.sales
	b.mu.RLock()
	defer b.mu.RUnlock()
	var view *localView
	if s := b.sales[product]; s != nil {
		view = s.view.Load()
	} else {
		view = b.sights[product].view
	}
	if view == nil || view.PayWindow <= 0 {
		return time.Time{}
	}
	return reserved.Add(view.PayWindow)
}

// pace says when to ask again. Chance spreads the crowd that asks in step.
func (f *Fate) pace(age time.Duration) {
	if f.Final {
		return
	}
	wait := min(askSoon+max(0, age)/slower, askLate) + rand.N(time.Second)
	f.RetryAfter = wait.Truncate(time.Second)
}
