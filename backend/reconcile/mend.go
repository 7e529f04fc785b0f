package reconcile

import (
	"context"
	"errors"

	"github.com/seckill-edge/seckill/backend/compare"
	"github.com/seckill-edge/seckill/backend/fence"
	"github.com/seckill-edge/seckill/backend/relay"
	"github.com/seckill-edge/seckill/backend/settle"
	"github.com/seckill-edge/seckill/backend/store"
	"github.com/seckill-edge/seckill/internal/order"
	"github.com/seckill-edge/seckill/lua"
)

// mend does what has one right answer, and notes it in the report. It mends what
// Findings remembers; what is beyond comes with the next inspection. A rebuild
// comes last: it includes whatever the rest has left.
func (r *Reconciler) mend(ctx context.Context, a store.Activity, report *Report) error {
	var errs []error
	for _, way := range []struct {
		mend Mend
		do   func(context.Context, store.Activity, *Report, []*Finding) error
	}{
		{Publish, r.publish}, {Settle, r.settle}, {Remove, r.remove}, {Rebuild, r.rebuild},
	} {
		var findings []*Finding
		for i := range report.Findings {
			if report.Findings[i].Mend == way.mend {
				findings = append(findings, &report.Findings[i])
			}
		}
		if len(findings) > 0 {
			errs = append(errs, way.do(ctx, a, report, findings))
		}
	}
	return errors.Join(errs...)
}

// publish sends orders on their way again, under their ids: the one that arrives
// second is recognised.
func (r *Reconciler) publish(ctx context.Context, a store.Activity, report *Report, findings []*Finding) error {
	orders := make([]order.Order, 0, len(findings))
	for _, f := range findings {
		orders = append(orders, relay.OrderOf(activityOf(a), f.UserID, *f.difference.Entry))
	}
	if err := r.Relay.Publish(ctx, activityOf(a), orders); err != nil {
		return err
	}
	for _, f := range findings {
		f.Mended = true
		report.mended(f.Kind, 1)
	}
	r.Metrics.Relayed(len(orders))
	return nil
}

// settle tells Redis of rows, by their states.
func (r *Reconciler) settle(ctx context.Context, a store.Activity, report *Report, findings []*Finding) error {
	orders := make([]settle.Order, 0, len(findings))
	for _, f := range findings {
		if mark, ok := settle.MarkOf(f.difference.Row.State, a.PayWindow); ok {
			orders = append(orders, settle.Order{ProductID: a.ProductID, Move: lua.Move{UserID: f.UserID, OrderID: f.OrderID, Reason: f.difference.Row.Reason}, To: mark})
		}
	}
	if _, err := r.Settler.Now(ctx, orders); err != nil {
		return err
	}
	for _, f := range findings {
		f.Mended = true
		report.mended(f.Kind, 1)
	}
	return nil
}

// remove takes entries out of the outbox that no unit stands behind: record and
// outbox are written by one script. While the stock is not proven they may be all
// that is left of an order, and stay.
func (r *Reconciler) remove(ctx context.Context, a store.Activity, report *Report, findings []*Finding) error {
	s, there, err := r.snapshot(ctx, a.ProductID)
	if err != nil || !there || !s.Proven() {
		return err
	}
	ids := make([]string, len(findings))
	for i, f := range findings {
		ids[i] = f.OrderID
	}
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	if err := lua.Confirm(ctx, r.Redis, a.ProductID, ids); err != nil {
		return err
	}
	for _, f := range findings {
		f.Mended = true
		report.mended(f.Kind, 1)
	}
	return nil
}

// rebuild proves the stock. It is shut meanwhile.
func (r *Reconciler) rebuild(ctx context.Context, a store.Activity, report *Report, findings []*Finding) error {
	if a.State != store.Open && a.State != store.Held {
		report.Note = "the activity is " + string(a.State) + " and sells nothing: its stock is not rebuilt"
		return nil
	}
	proof, err := r.Fence.Rebuild(ctx, a, reasonOf(findings))
	switch {
	case errors.Is(err, fence.ErrBusy), errors.Is(err, lua.ErrOvertaken):
		report.Note = "a backend proves the stock at this moment; ask again"
		return nil
	case errors.Is(err, lua.ErrClosed):
		report.Note = "the activity is closed in Redis: its stock is not rebuilt"
		return nil
	case err != nil:
		return err
	}
	report.Proof = &proof
	for kind, n := range report.Counts {
		if mends[kind] == Rebuild {
			report.Mended[kind] = n
		}
	}
	for _, f := range findings {
		f.Mended = true
	}
	return nil
}

func reasonOf(findings []*Finding) string {
	switch findings[0].Kind {
	case compare.Unproven:
		return findings[0].What
	case compare.DamagedCounter, compare.MissingKey:
		return "a key in Redis is missing or damaged"
	case compare.DamagedRecord:
		return "a buyer's record in Redis is damaged"
	case compare.ReleasedTwice, compare.CounterDrift:
		return "Redis' counters are not the sum of its orders"
	default:
		return "Redis and SQL disagree about orders"
	}
}

func activityOf(a store.Activity) lua.Activity { return lua.Activity{ID: a.ID, ProductID: a.ProductID} }
