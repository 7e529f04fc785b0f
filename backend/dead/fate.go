package dead

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/seckill-edge/seckill/backend/store"
	"github.com/seckill-edge/seckill/internal/order"
	"github.com/seckill-edge/seckill/lua"
)

// Fate is what the stores say of one order of a letter.
type Fate struct {
	Order order.Order
	// Stored is SQL's row, nil if there is none.
	Stored *store.Order
	// Mark is Redis's, 0 if the buyer's record has no such order.
	Mark lua.Mark
	// Bad says that its entry cannot be read; of Order only the id is known.
	Bad bool
}

// IfReplayed says in words what a replay would make of the order.
func (f Fate) IfReplayed() string {
	switch {
	case f.Stored != nil:
		return "nothing: it is stored as " + string(f.Stored.State)
	case f.Bad:
		return "a dead letter again, at once: drop it"
	case f.Mark == 0:
		return "rejected: Redis does not know it, so it holds no unit"
	case f.Mark.GivenBack():
		return "rejected: its units were given back"
	}
	return "stored, if SQL takes it and has the units left"
}

// fates asks the stores about the orders of a letter, first those that can be
// read, then the bad ones of which the id can.
func (s *Service) fates(ctx context.Context, l Letter) ([]Fate, error) {
	fates := make([]Fate, 0, len(l.Orders)+len(l.Bad))
	users := make([]string, len(l.Orders))
	for i, o := range l.Orders {
		fates, users[i] = append(fates, Fate{Order: o}), o.UserID
	}
	for _, b := range l.Bad {
		if b.OrderID != "" {
			fates = append(fates, Fate{Order: order.Order{ID: b.OrderID}, Bad: true})
		}
	}
	if len(fates) == 0 {
		return nil, nil
	}
	ids := make([]string, len(fates))
	for i, f := range fates {
		ids[i] = f.Order.ID
	}
	rows, err := s.Store.Orders(ctx, ids)
	if err != nil {
		return nil, err
	}
	records, err := lua.Records(ctx, s.Redis, l.ProductID, users)
	if err != nil {
		return nil, err
	}
	for i := range fates {
		f := &fates[i]
		if row, stored := rows[f.Order.ID]; stored {
			f.Stored = &row
		}
		if f.Bad {
			continue
		}
		if at := slices.IndexFunc(records[i], func(e lua.Entry) bool { return e.OrderID == f.Order.ID }); at >= 0 {
			f.Mark = records[i][at].Mark
		}
	}
	return fates, nil
}

// reject makes sure that no order of l that holds no unit in Redis can be stored
// as created, and returns how many such it found. What it leaves alone still
// holds its units, and whoever gives them back later rejects the row first.
func (s *Service) reject(ctx context.Context, l Letter) (int, error) {
	if len(l.Orders) == 0 {
		return 0, nil
	}
	if err := s.proven(ctx, l); err != nil {
		return 0, err
	}
	fates, err := s.fates(ctx, l)
	if err != nil {
		return 0, err
	}
	rejected := 0
	for _, f := range fates {
		switch {
		case f.Bad:
			continue
		case f.Stored != nil:
			if f.Stored.State == order.Rejected {
				rejected++
			}
			continue
		case f.Mark != 0 && !f.Mark.GivenBack():
			continue
		}
		if _, err := s.Store.RejectOrder(ctx, f.Order, order.ReasonDead); err != nil {
			return rejected, err
		}
		rejected++
	}
	return rejected, nil
}

// proven refuses a replay while Redis cannot be believed about the units of l: it
// has lost them, or a backend is proving the stock and has waited for an empty
// queue. An activity that SQL has closed, and one it does not know, need no proof.
func (s *Service) proven(ctx context.Context, l Letter) error {
	a, err := s.Store.Activity(ctx, l.ActivityID)
	switch {
	case errors.Is(err, store.ErrNotFound):
		return nil
	case err != nil:
		return err
	case a.State == store.Closed:
		return nil
	}
	snapshot, there, err := lua.Audit(ctx, s.Redis, l.ProductID)
	switch {
	case err != nil:
		return fmt.Errorf("asking Redis about product %s: %w", l.ProductID, err)
	case !there || snapshot.ID != a.ID:
		return refused(a.ID, "its stock is not in Redis, which has to say whether the order holds a unit; rebuild it first")
	case snapshot.Damaged:
		return refused(a.ID, "its stock in Redis is damaged; rebuild it first")
	case snapshot.State == lua.OnHold:
		return refused(a.ID, "it is held, and its stock may be being proven; open or close it first")
	case snapshot.State == lua.Open && !snapshot.Proven():
		return refused(a.ID, "Redis has restarted and its stock is not proven yet; wait, or see seckilld activity show "+a.ProductID)
	}
	return nil
}
