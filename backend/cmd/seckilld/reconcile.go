package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"time"

	"github.com/spf13/cobra"

	"github.com/seckill-edge/seckill/backend/activities"
	"github.com/seckill-edge/seckill/backend/fence"
	"github.com/seckill-edge/seckill/backend/metrics"
	"github.com/seckill-edge/seckill/backend/reconcile"
	"github.com/seckill-edge/seckill/backend/relay"
	"github.com/seckill-edge/seckill/backend/settle"
	"github.com/seckill-edge/seckill/backend/store"
	"github.com/seckill-edge/seckill/internal/order"
	"github.com/seckill-edge/seckill/internal/queue"
)

// reconcileWithin bounds the command: each activity may be gone through several
// times, and a stock that is rebuilt waits up to 30 s for orders on their way.
const reconcileWithin = 10 * time.Minute

func newReconcile(a *app) *cobra.Command {
	var dry bool
	c := &cobra.Command{
		Use:   "reconcile [PRODUCT]",
		Short: "Find each difference between Redis, queue and SQL, and mend it",
		Long: `reconcile compares Redis, queue and SQL order by order, names each difference, and
mends what has one right answer; the rest it reports. Without PRODUCT it looks at
every activity that is open or held. It may run at any time, during a sale, and
beside backends, which do the same by themselves. A stock that must be rebuilt is
shut meanwhile.

It exits with 4 if anything is left to be done or to be looked at.`,
		Example: `  seckilld reconcile --dry-run
  seckilld reconcile 1001 --json`,
		Args: usage(cobra.MaximumNArgs(1)),
		RunE: func(c *cobra.Command, args []string) error {
			return a.reconcile(c.Context(), args, dry)
		},
	}
	c.Flags().BoolVar(&dry, "dry-run", false, "find only, mend nothing")
	a.jsonFlag(c)
	return c
}

func (a *app) reconcile(ctx context.Context, products []string, dry bool) (err error) {
	ctx, cancel := context.WithTimeout(ctx, reconcileWithin)
	defer cancel()
	log, err := a.log(slog.LevelError)
	if err != nil {
		return err
	}
	s, err := a.openAnswering(ctx, log, "seckilld-reconcile")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.close()) }()
	if errors.Is(s.tide, store.ErrBehind) {
		return s.tide // to mend by its word would be wrong
	}
	chosen, err := a.chosen(ctx, &s, log, products)
	if err != nil {
		return err
	}
	publisher := s.broker.Publisher(queue.Options{Name: "seckilld reconcile", Log: log})
	defer func() { err = errors.Join(err, publisher.Close(context.WithoutCancel(ctx))) }()
	r, err := newReconciler(&s, publisher, log)
	if err != nil {
		return err
	}
	reports := make([]reconcile.Report, 0, len(chosen))
	clean := true
	var failed error
	for _, activity := range chosen {
		// What one cannot be asked about keeps nobody from mending the next.
		report, err := r.Reconcile(ctx, activity, dry)
		failed = errors.Join(failed, err)
		if err == nil || len(report.Findings) > 0 {
			reports = append(reports, report)
		}
		clean = clean && report.Clean()
	}
	if err := errors.Join(failed, a.printReports(reports, dry)); err != nil || clean {
		return err
	}
	return errDrift
}

// chosen are the activities of the products, or all that can be wrong.
func (a *app) chosen(ctx context.Context, s *servers, log *slog.Logger, products []string) ([]store.Activity, error) {
	service := activities.New(activities.Deps{
		Store: s.store, Redis: s.redis, Queue: s.broker, Now: time.Now, Random: rand.Reader, Log: log,
	})
	var chosen []store.Activity
	for _, product := range products {
		view, err := service.Show(ctx, product)
		if err != nil {
			return nil, err
		}
		chosen = append(chosen, view.Activity)
	}
	if len(products) > 0 {
		return chosen, nil
	}
	all, err := s.store.Activities(ctx)
	for _, activity := range all {
		if activity.State == store.Open || activity.State == store.Held {
			chosen = append(chosen, activity)
		}
	}
	return chosen, err
}

func newReconciler(s *servers, publisher queue.Publisher, log *slog.Logger) (*reconcile.Reconciler, error) {
	name, err := order.NewID(time.Now(), rand.Reader)
	if err != nil {
		return nil, err
	}
	m := metrics.New()
	relay := relay.New(relay.Deps{Redis: s.redis, Store: s.store, Publisher: publisher, Metrics: m, Log: log})
	return reconcile.New(reconcile.Deps{
		Redis: s.redis, Store: s.store, Queue: s.broker, Relay: relay, Settler: settle.New(s.redis, m, log), Metrics: m, Log: log,
		Fence: fence.New(fence.Deps{
			Redis: s.redis, Store: s.store, Queue: s.broker, Relay: relay, Metrics: m, Log: log, Owner: name,
		}),
	}), nil
}

func (a *app) printReports(reports []reconcile.Report, dry bool) error {
	if a.json {
		return a.printJSON(map[string]any{"dry_run": dry, "reports": reports})
	}
	return a.columns(func(w io.Writer) {
		for i := range reports {
			writeReport(w, &reports[i])
		}
	})
}

func writeReport(w io.Writer, r *reconcile.Report) {
	fmt.Fprintf(w, "product\t%s\nactivity\t%s\ncompared\t%d buyers; orders that hold units: %d in Redis, %d in SQL; given back: %d in Redis\n",
		r.ProductID, r.ActivityID, r.Buyers, r.Live, r.Rows, r.Entries-r.Live)
	if !r.Idle {
		fmt.Fprintf(w, "note\torders are on their way; %d may still arrive\n", r.OnTheWay)
	}
	for _, f := range r.Findings {
		done := "not mended"
		switch {
		case f.Mended && f.Mend == reconcile.Rebuild && r.Proof == nil:
			done = "mended by a backend"
		case f.Mended:
			done = "mended: " + string(f.Mend)
		case f.Mend == reconcile.Tell:
			done = "for you to judge"
		}
		what := f.What
		if f.Figures != nil {
			what += ": Redis has " + f.Figures.Redis + ", right is " + f.Figures.Right
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", f.Kind, f.OrderID, what, done)
	}
	if r.Note != "" {
		fmt.Fprintf(w, "note\t%s\n", r.Note)
	}
	if len(r.Findings) == 0 {
		fmt.Fprintln(w, "found\tnothing: all stores agree")
	}
}
