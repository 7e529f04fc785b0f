package fence

import (
	"context"
	"errors"
	"fmt"

	"github.com/seckill-edge/seckill/backend/store"
	"github.com/seckill-edge/seckill/internal/killpoint"
	"github.com/seckill-edge/seckill/lua"
)

// prove ends it. SQL is asked for the operator's word as late as possible, and
// again afterwards: a hold that came in between holds, an opening opens.
func (r *rebuild) prove(ctx context.Context, was lua.Counters, units lua.Units) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	a, err := r.Store.Activity(ctx, r.activity.ID)
	if err != nil {
		return err
	}
	to := stateOf(a.State)
	if to == lua.Closed {
		_, _, err := lua.SetState(ctx, r.Redis, a.ProductID, a.ID, lua.Closed)
		r.proof.State = lua.Closed
		return err
	}
	if a.Target == 0 && a.Total != r.activity.Total {
		return fmt.Errorf("its total has become %d meanwhile, from %d: %w; it begins again", a.Total, r.activity.Total, lua.ErrUnits)
	}
	if r.proof.Epoch, err = lua.Prove(ctx, r.Redis, a.ProductID, a.ID, r.epoch, to, was, units, r.server); err != nil {
		return err
	}
	r.proof.Units, r.proof.State = units, to
	killpoint.Here(killpoint.AfterProve)
	for range 4 {
		if a, err = r.Store.Activity(ctx, a.ID); err != nil || stateOf(a.State) == r.proof.State {
			return err
		}
		if err = r.follow(ctx, a); errors.Is(err, lua.ErrOvertaken) {
			return nil // somebody has held it since, and sees to SQL
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// follow brings Redis to the state that SQL has now.
func (r *rebuild) follow(ctx context.Context, a store.Activity) (err error) {
	to := stateOf(a.State)
	if to == lua.Open {
		r.proof.Epoch, _, err = lua.OpenAt(ctx, r.Redis, a.ProductID, a.ID, r.proof.Epoch)
	} else {
		r.proof.Epoch, _, err = lua.SetState(ctx, r.Redis, a.ProductID, a.ID, to)
	}
	r.proof.State = to
	return err
}

func stateOf(s store.ActivityState) lua.ActivityState {
	switch s {
	case store.Open:
		return lua.Open
	case store.Closed:
		return lua.Closed
	case store.Scheduled, store.Held:
	}
	return lua.OnHold
}
