package fence

import (
	"context"
	"errors"
	"time"

	"github.com/seckill-edge/seckill/backend/store"
	"github.com/seckill-edge/seckill/lua"
)

// rereadWithin bounds the time for which a database that hangs keeps a gate open.
const rereadWithin = 500 * time.Millisecond

// hold shuts the gate and notes on which server that was.
func (r *rebuild) hold(ctx context.Context) error {
	r.rereadTotal(ctx)
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	over, err := r.over(ctx)
	if err != nil {
		return err
	}
	a := r.activity
	hold, changes := lua.Hold, a.Changes
	if a.Target != 0 {
		hold = lua.HoldChanging
		if a.Target < a.Total {
			changes-- // a withdrawal comes to SQL last
		}
	}
	r.epoch, _, err = hold(ctx, r.Redis, lua.Activity{
		ID: a.ID, ProductID: a.ProductID, Title: a.Title, Start: a.Start, End: a.End,
		Total: a.Total, Changes: changes, Limit: a.Limit, PayWindow: a.PayWindow,
	}, over)
	if err != nil {
		return err
	}
	s, _, err := lua.Audit(ctx, r.Redis, a.ProductID)
	if err != nil {
		return err
	}
	r.server, r.heldAt = s.ServerRun, s.Now
	r.activity.Total = s.Total // Redis may have a later one
	r.deadline = time.Now().Add(patience)
	r.Log.Warn("fence: activity held until its stock is proven", "product", a.ProductID, "activity", a.ID,
		"why", r.proof.Why, "epoch", r.epoch)
	return nil
}

// rereadTotal takes SQL's word on the total, which may have changed since the
// activity was listed. Without SQL the gate is shut all the same.
func (r *rebuild) rereadTotal(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, rereadWithin)
	defer cancel()
	if now, err := r.Store.Activity(ctx, r.activity.ID); err == nil {
		r.activity.Total, r.activity.Changes, r.activity.Target = now.Total, now.Changes, now.Target
	}
}

// over is the id of an activity that Redis has instead of ours and that SQL says
// is over: a Redis that was restored from long ago.
func (r *rebuild) over(ctx context.Context) (string, error) {
	s, there, err := lua.Audit(ctx, r.Redis, r.activity.ProductID)
	if err != nil || !there || s.ID == "" || s.ID == r.activity.ID {
		return "", err
	}
	other, err := r.Store.Activity(ctx, s.ID)
	if errors.Is(err, store.ErrNotFound) || err == nil && other.State != store.Closed {
		return "", nil
	}
	return s.ID, err
}
