package gate

import (
	"context"
	"fmt"
	"time"

	"github.com/seckill-edge/seckill/internal/order"
	"github.com/seckill-edge/seckill/lua"
)

const (
	// archiveCalls bounds the questions to the archive on their way at once,
	// archiveTimeout each of them.
	archiveCalls   = 16
	archiveTimeout = 2 * time.Second
	// fastClock is how far another edge's clock may be ahead of this one's.
	fastClock = time.Minute
)

// Archive knows the orders that Redis no longer has.
type Archive interface {
	// Order returns a stored order; false if there is none of this id. It ends
	// with ctx at the latest and is safe for concurrent use.
	Order(ctx context.Context, orderID string) (Archived, bool, error)
}

// Archived is a stored order.
type Archived struct {
	ProductID string
	UserID    string
	Quantity  int
	State     order.State
	Reason    order.Reason
	// PayBy is until when a created order waits for its payment; zero if it waits
	// for none.
	PayBy time.Time
}

// archived tells the fate of an order that is not in its buyer's record. "No such
// order" is said only by who can know: not while Redis may have forgotten
// something, and not while the archive cannot be asked.
func (g *Gate) archived(ctx context.Context, product, user, orderID string) (Fate, error) {
	s, seen := g.sale(ctx, product)
	switch {
	case s == nil && seen.outcome == lua.Unavailable:
		return Fate{}, fmt.Errorf("%w: the activity cannot be read", ErrUnavailable)
	case s != nil && (s.closed() || s.view.Load().Forgetful()):
		return Fate{}, fmt.Errorf("%w: Redis may have forgotten it", ErrUnavailable)
	}
	return g.inArchive(ctx, product, user, orderID)
}

// inArchive tells the fate of a stored order; ErrNoOrder if there is none, or no archive.
func (g *Gate) inArchive(ctx context.Context, product, user, orderID string) (Fate, error) {
	made, _ := order.IDTime(orderID)
	if g.deps.Archive == nil || made.Sub(g.deps.Now()) > fastClock {
		return Fate{}, ErrNoOrder
	}
	select {
	case g.archiveSlots <- struct{}{}:
	default:
		return Fate{}, fmt.Errorf("%w: too many ask for old orders", ErrUnavailable)
	}
	defer func() { <-g.archiveSlots }()
	ctx, cancel := context.WithTimeout(ctx, archiveTimeout)
	defer cancel()
	stored, found, err := g.deps.Archive.Order(ctx, orderID)
	if err != nil {
		g.deps.Log.Debug("the backend does not tell of an order", "order", orderID, "error", err)
		return Fate{}, fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	if !found || stored.UserID != user || stored.ProductID != product {
		return Fate{}, ErrNoOrder
	}
	f := Fate{
		OrderID: orderID, State: stored.State, Reason: stored.Reason, Quantity: stored.Quantity, ResolveBy: g.resolveBy(made),
		PayBy: stored.PayBy, Final: stored.State != order.Queued && stored.PayBy.IsZero(),
	}
	f.pace(g.deps.Now().Sub(made))
	return f, nil
}
