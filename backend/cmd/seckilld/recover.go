package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"

	"github.com/spf13/cobra"

	"github.com/seckill-edge/seckill/backend/tide"
)

func newRecover(a *app) *cobra.Command {
	var dry bool
	c := &cobra.Command{
		Use:   "recover",
		Short: "Have a database that was restored from a backup take back what Redis knows",
		Long: `A database that was restored from a backup, or failed over to a copy that was behind,
has forgotten sales, orders and payments. Backends notice that: they hold every sale
and decide nothing until recover has run. It has the database take back from Redis
what it has forgotten; then backends prove each stock and open what was open. A sale
that the database did not know at all stays held: open it yourself.

The references of payments are lost: the first one that is reported again for an order
that is paid is taken for its own. Payments whose money was due back are in the backup
or nowhere.

It exits with 4 if anything could not be taken back; nothing goes on then.`,
		Example: `  seckilld recover --dry-run
  seckilld recover --json`,
		Args: usage(cobra.NoArgs),
		RunE: func(c *cobra.Command, _ []string) error { return a.recover(c.Context(), dry) },
	}
	c.Flags().BoolVar(&dry, "dry-run", false, "only say what would be taken back")
	a.jsonFlag(c)
	return c
}

func (a *app) recover(ctx context.Context, dry bool) (err error) {
	ctx, cancel := context.WithTimeout(ctx, reconcileWithin)
	defer cancel()
	log, err := a.log(slog.LevelWarn)
	if err != nil {
		return err
	}
	s, err := a.openAnswering(ctx, log, "seckilld-recover")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.close()) }()
	report, err := tide.Recover(ctx, s.tideDeps(log), dry)
	if err == nil {
		err = a.printRecovery(&report, dry)
	}
	if err == nil && report.Left() > 0 {
		err = errDrift
	}
	return err
}

func (a *app) printRecovery(r *tide.Report, dry bool) error {
	if a.json {
		return a.printJSON(map[string]any{"dry_run": dry, "report": r})
	}
	return a.columns(func(w io.Writer) {
		took := "taken back"
		if dry {
			took = "to take back"
		}
		switch {
		case r.Height >= r.Was:
			fmt.Fprintln(w, "database\thas forgotten nothing")
		default:
			fmt.Fprintf(w, "database\tis %d steps behind\n", r.Was-r.Height)
		}
		for i := range r.Activities {
			x := &r.Activities[i]
			fmt.Fprintf(w, "product %s\tactivity %s%s; %s: %d orders, and what became of %d", x.ProductID, x.ActivityID, known(x), took, x.Stored, x.Moved)
			if x.Odd > 0 {
				fmt.Fprintf(w, "; %d orders stay as the database has them, look at them", x.Odd)
			}
			if x.Failed != "" {
				fmt.Fprintf(w, "; FAILED: %s", x.Failed)
			}
			fmt.Fprintln(w)
		}
	})
}

func known(x *tide.Activity) string {
	switch {
	case x.Made:
		return ", which the database did not know; it is held, open it"
	case x.Changed:
		return ", of an older state"
	}
	return ""
}
