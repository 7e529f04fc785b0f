package reconcile

import (
	"context"
	"errors"
	"slices"

	"github.com/seckill-edge/seckill/backend/compare"
	"github.com/seckill-edge/seckill/backend/fence"
	"github.com/seckill-edge/seckill/backend/relay"
	"github.com/seckill-edge/seckill/backend/settle"
	"github.com/seckill-edge/seckill/backend/store"
	"github.com/seckill-edge/seckill/internal/order"
	"github.com/seckill-edge/seckill/lua"
)

// mend does what has one right answer, and notes it in the report. What is beyond
// maxDifferences comes with the next inspection. A rebuild comes last: it includes
// whatever the rest has left.
func (r *Reconciler) mend(ctx context.Context, a store.Activity, report *Report) error {
	var errs []error
	for _, way := range []struct {
		mend Mend
		do   func(context.Context, store.Activity, *Report, []*Finding) error
	}{
		{Publish, r.publish}, {Settle, r.settle}, {Remove, r.remove}, {Rebuild, r.rebuild},
	} {
		if findings := report.toMend(way.mend); len(findings) > 0 {
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
			orders = append(orders, settle.Order{
				ProductID: a.ProductID, Move: lua.Move{UserID: f.UserID, OrderID: f.OrderID, Reason: f.difference.Row.Reason}, To: mark,
				First: f.difference.Entry.Mark == lua.MarkQueued,
			})
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

// remove takes entries out of the outbox that no unit stands behind, unless the
// stock is not proven at that moment.
func (r *Reconciler) remove(ctx context.Context, a store.Activity, report *Report, findings []*Finding) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	users := make([]string, len(findings))
	for i, f := range findings {
		users[i] = f.UserID
	}
	records, err := lua.RawRecords(ctx, r.Redis, a.ProductID, users)
	if err != nil {
		return err
	}
	strangers := make([]lua.Stranger, 0, len(findings))
	for i, f := range findings {
		if record, ok := compare.Read(users[i], records[i]); ok && !slices.ContainsFunc(record, func(e lua.Entry) bool { return e.OrderID == f.OrderID }) {
			strangers = append(strangers, lua.Stranger{UserID: f.UserID, OrderID: f.OrderID, Record: records[i]})
		}
	}
	if _, proven, err := lua.Forget(ctx, r.Redis, a.ProductID, strangers); err != nil || !proven {
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
	if report.unproven {
		s, there, err := r.snapshot(ctx, a.ProductID)
		if err != nil {
			return err
		}
		if why(a, s, there) == "" { // to prove it again would shut the sale for nothing
			report.Note = "a backend has proven the stock meanwhile"
			report.rebuilt(findings)
			return nil
		}
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
	report.rebuilt(findings)
	return nil
}

// rebuilt notes that all is mended that a proof of the stock mends.
func (r *Report) rebuilt(findings []*Finding) {
	for kind, n := range r.Counts {
		if mends[kind] == Rebuild {
			r.Mended[kind] = n
		}
	}
	for _, f := range findings {
		f.Mended = true
	}
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
