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

// Fate tells a buyer what became of his own order. Errors are ErrNoOrder and
// ErrUnavailable, wrapped. It waits for Redis at most ReserveTimeout, and for the
// archive, which is asked about what Redis no longer has, archiveTimeout.
func (g *Gate) Fate(ctx context.Context, product, user, orderID string) (Fate, error) {
	if !order.ValidID(orderID) {
		return Fate{}, ErrNoOrder
	}
	// What this edge remembers is read first: were it forgotten later, Redis
	// would know by then.
	late, isLate := g.late.get(product, user, orderID)
	text, err := g.records.read(product, user)
	if err != nil {
		return Fate{}, fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	f, found, err := g.fateIn(product, text, orderID, late, isLate)
	if err != nil {
		return Fate{}, fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	if found {
		return f, nil
	}
	f, err = g.archived(ctx, product, user, orderID)
	if errors.Is(err, ErrNoOrder) {
		return g.nowhere(product, user, orderID)
	}
	return f, err
}

// fateIn finds the order in the buyer's record, or in what this edge remembers.
func (g *Gate) fateIn(product, text, orderID string, late lateOrder, isLate bool) (Fate, bool, error) {
	id := orderID
	if isLate && late.instead != "" {
		id = late.instead
	}
	e, found, err := lua.FindOrder(text, id)
	if err != nil {
		return Fate{}, false, err
	}
	made, _ := order.IDTime(id)
	now := g.deps.Now()
	var f Fate
	switch {
	case found:
		s := standings[e.Mark]
		f = Fate{
			OrderID: id, State: s.state, Final: s.final, Reason: e.Reason, Quantity: e.Quantity,
			ResolveBy: g.resolveBy(g.begun(id, e.At)),
		}
		if e.Mark == lua.MarkCreated {
			f.PayBy = g.payBy(product, e.At)
		}
	case isLate:
		f = late.fate(id, now, g.resolveBy(late.joined))
	default:
		return Fate{}, false, nil
	}
	f.pace(now.Sub(made))
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
