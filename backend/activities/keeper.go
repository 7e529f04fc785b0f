package activities

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/seckill-edge/seckill/backend/store"
	"github.com/seckill-edge/seckill/lua"
)

// Keeper does by itself what has its time in an activity's life: preheat and open
// it ahead of its start, close it after its end, archive it once all is settled,
// and finish a change of its total. It holds nothing that an operator opens, and
// opens nothing that one holds. It is not safe for concurrent use; several keepers
// may work on the same stores.
type Keeper struct {
	*Service
	notes map[string]*note
}

// note is what is remembered of one activity between two passes.
type note struct {
	// said is why it is not ready, as the log has it.
	said string
	// rest is until when it is not looked at.
	rest time.Time
}

const (
	// keepWithin bounds one activity's turn.
	keepWithin = 10 * time.Second
	// endRest is how long one that has ended is not looked at again.
	endRest = 2 * time.Second
)

// NewKeeper makes a keeper.
func NewKeeper(s *Service) *Keeper { return &Keeper{Service: s, notes: map[string]*note{}} }

// Pass looks at all activities that are not archived once. Passes are about a
// second apart. It goes on after a failure of one; refusals are logged when they
// begin and change, and are no failure.
func (k *Keeper) Pass(ctx context.Context) error {
	all, err := k.Store.Unarchived(ctx)
	if err != nil {
		return fmt.Errorf("keeping activities: %w", err)
	}
	now := k.Now()
	notes, t := map[string]*note{}, &traffic{Service: k.Service}
	var errs []error
	for _, a := range all {
		n := k.notes[a.ID]
		if n == nil {
			n = &note{}
		}
		notes[a.ID] = n
		if now.Before(n.rest) {
			continue
		}
		if err := k.turn(ctx, a, n, t); err != nil {
			errs = append(errs, fmt.Errorf("activity %s of product %s: %w", a.ID, a.ProductID, err))
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
	}
	k.notes = notes
	return errors.Join(errs...)
}

// turn is one activity's. What is refused goes to the log.
func (k *Keeper) turn(ctx context.Context, a store.Activity, n *note, t *traffic) error {
	ctx, cancel := context.WithTimeout(ctx, keepWithin)
	defer cancel()
	err := k.keep(ctx, a, n, t)
	words := ""
	if errors.Is(err, ErrRefused) {
		words, err = err.Error(), nil
	}
	if words != n.said && (words != "" || err == nil) {
		if words != "" {
			k.Log.Warn("activity: cannot go on yet; trying again and again", "activity", a.ID, "product", a.ProductID, "state", a.State, "why", words)
		}
		n.said = words
	}
	return err
}

func (k *Keeper) keep(ctx context.Context, a store.Activity, n *note, t *traffic) error {
	if a.Target != 0 {
		return k.finishChange(ctx, a)
	}
	switch a.State {
	case store.Scheduled:
		over, err := k.over(ctx, a)
		if err != nil {
			return err
		}
		if over {
			return k.close(ctx, a)
		}
		if k.due(a, k.clock(ctx)) {
			return k.begin(ctx, a)
		}
	case store.Open, store.Held:
		return k.live(ctx, a, n, t)
	case store.Closed:
		n.rest = k.Now().Add(endRest)
		return k.archive(ctx, a, t)
	}
	return nil
}

// over says that the end of an activity has passed by Redis's clock, too: closing
// is final, and this machine's clock may be wrong.
func (k *Keeper) over(ctx context.Context, a store.Activity) (bool, error) {
	if k.Now().Before(a.End) {
		return false, nil
	}
	asking, cancel := context.WithTimeout(ctx, 3*time.Second)
	defer cancel()
	now, err := k.Redis.Time(asking).Result()
	if err != nil {
		return false, fmt.Errorf("asking Redis for the time: %w", err)
	}
	return !now.Before(a.End), nil
}

func (k *Keeper) live(ctx context.Context, a store.Activity, n *note, t *traffic) error {
	there, err := k.snapshot(ctx, a.ProductID)
	if err != nil || there == nil || there.ID != a.ID {
		return err // the fence rebuilds it
	}
	if !there.Now.Before(a.End) {
		n.rest = k.Now().Add(endRest)
		return k.end(ctx, a, *there, t)
	}
	if err := k.catchUp(ctx, a, *there); err != nil {
		return err
	}
	if a.State == store.Open && there.State == lua.OnHold && there.RunID == "" && !there.Damaged {
		// Its opening has ended between SQL and Redis.
		return k.openUnlessHeld(ctx, a, k.accepted())
	}
	return nil
}
