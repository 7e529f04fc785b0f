package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/spf13/cobra"

	"github.com/seckill-edge/seckill/backend/activities"
	"github.com/seckill-edge/seckill/backend/api"
)

// commandWithin bounds one command, servers that do not answer included.
const commandWithin = 15 * time.Second

func newActivity(a *app) *cobra.Command {
	c := &cobra.Command{
		Use:   "activity",
		Short: "Create, hold, resize, close and audit sales",
		Long: `An activity is one sale of one product. To create it is enough: a backend (seckilld
serve) preheats it into Redis and opens it ahead of its start, closes it after its
end, and archives it once every order is settled. The commands do each step by
hand, or hold a sale for a while, or change its total. They work on the stores
themselves; no backend need run.`,
		Example: `  seckilld activity list
  seckilld activity hold 1001 && seckilld activity resume 1001
  seckilld activity stock 1001 --add 50
  seckilld activity audit 1001 --json`,
		Args: usage(cobra.NoArgs),
		RunE: func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(
		newCreate(a),
		newList(a),
		byProduct(a, "show", "Show a product's activity, and why it sells or does not", (*activities.Service).Show),
		starting(a, "preheat", "Load the stock into Redis, held; never over a live sale", (*activities.Service).Preheat),
		starting(a, "open", "Open the gate", (*activities.Service).Open),
		byProduct(a, "hold", "Shut the gate until it is opened again", (*activities.Service).Hold),
		starting(a, "resume", "Open the gate again after a hold", (*activities.Service).Resume),
		newStock(a),
		byProduct(a, "close", "End the sale for good; what is reserved is still stored", (*activities.Service).Close),
		newAudit(a),
	)
	return c
}

func newCreate(a *app) *cobra.Command {
	var d activities.Draft
	c := &cobra.Command{
		Use:   "create",
		Short: "Create an activity; a backend opens it ahead of its start",
		Example: `  seckilld activity create --product 1001 --title "Phone at half price" --total 100 --limit 1 \
    --start 2026-11-11T20:00:00+08:00 --end 2026-11-11T22:00:00+08:00 --pay-window 15m`,
		Args: usage(cobra.NoArgs),
		RunE: func(c *cobra.Command, _ []string) error {
			now := time.Now()
			d.Start, d.End = moment(d.Start, now), moment(d.End, now)
			return a.withService(c.Context(), func(ctx context.Context, s *activities.Service) error {
				if _, err := s.Create(ctx, d); err != nil {
					return err
				}
				view, err := s.Show(ctx, d.ProductID)
				return a.printView(view, err)
			})
		},
	}
	f := c.Flags()
	f.StringVar(&d.ID, "id", "", "activity id, 1 to 64 of A-Z a-z 0-9 _ - (default: made)")
	f.StringVar(&d.ProductID, "product", "", "product id, 1 to 64 of A-Z a-z 0-9 _ -")
	f.StringVar(&d.Title, "title", "", "what buyers read, at most 255 characters, all of them visible")
	f.StringVar(&d.Start, "start", "", "RFC 3339 time with zone, like 2026-11-11T20:00:00+08:00; or now, or +10m from now")
	f.StringVar(&d.End, "end", "", "RFC 3339 time with zone, after the start; or +2h from now")
	f.Int64Var(&d.Total, "total", 0, "units to sell, 1 to 1000000000")
	f.IntVar(&d.Limit, "limit", 1, "units per user, 1 to 999; more than --total lets one user have all")
	f.DurationVar(&d.PayWindow, "pay-window", 0, "how long a buyer may take to pay, up to 168h; 0: no payment stage")
	f.BoolVar(&d.Manual, "manual", false, "leave preheat and open to you; no backend does them")
	a.jsonFlag(c)
	return c
}

func newList(a *app) *cobra.Command {
	c := &cobra.Command{
		Use:     "list",
		Short:   "List all activities, the newest first",
		Example: "  seckilld activity list --json",
		Args:    usage(cobra.NoArgs),
		RunE: func(c *cobra.Command, _ []string) error {
			return a.withService(c.Context(), func(ctx context.Context, s *activities.Service) error {
				views, err := s.List(ctx)
				if err != nil {
					return err
				}
				return a.printList(api.ActivitiesOf(views))
			})
		},
	}
	a.jsonFlag(c)
	return c
}

// byProduct makes a command that does one thing to a product's activity and
// shows it.
func byProduct(a *app, name, short string, do func(*activities.Service, context.Context, string) (activities.View, error)) *cobra.Command {
	c := &cobra.Command{
		Use:     name + " PRODUCT",
		Short:   short,
		Example: "  seckilld activity " + name + " 1001",
		Args:    one("PRODUCT"),
		RunE: func(c *cobra.Command, args []string) error {
			return a.withService(c.Context(), func(ctx context.Context, s *activities.Service) error {
				view, err := do(s, ctx, args[0])
				return a.printView(view, err)
			})
		},
	}
	a.jsonFlag(c)
	return c
}

// starting makes a command that refuses a Redis which is not fit to hold a stock,
// unless told to accept it.
func starting(a *app, name, short string, do func(*activities.Service, context.Context, string, ...activities.Option) (activities.View, error)) *cobra.Command {
	accept := false
	c := byProduct(a, name, short, func(s *activities.Service, ctx context.Context, product string) (activities.View, error) {
		if accept {
			return do(s, ctx, product, activities.AcceptRedisRisk)
		}
		return do(s, ctx, product)
	})
	c.Flags().BoolVar(&accept, "accept-redis-risk", false, "go on though Redis evicts keys, does not persist or is too small; for development")
	return c
}

func newStock(a *app) *cobra.Command {
	var change activities.Change
	c := byProduct(a, "stock", "Add units to a sale that is not closed, or withdraw available ones", func(s *activities.Service, ctx context.Context, product string) (activities.View, error) {
		return s.ChangeStock(ctx, product, change)
	})
	c.PreRunE = func(c *cobra.Command, _ []string) error {
		switch add, withdraw := c.Flags().Changed("add"), c.Flags().Changed("withdraw"); {
		case !add && !withdraw:
			return fmt.Errorf("%w: how the total is to change is missing: give --add or --withdraw with a number of units, as --add 50", errUsage)
		case add && withdraw:
			return fmt.Errorf("%w: --add %d and --withdraw %d exclude each other: give the one that is to happen", errUsage, change.Add, change.Withdraw)
		}
		return nil
	}
	c.Example = `  seckilld activity stock 1001 --add 50
  seckilld activity stock 1001 --withdraw 20 --if-total 150`
	f := c.Flags()
	f.Int64Var(&change.Add, "add", 0, "units to add")
	f.Int64Var(&change.Withdraw, "withdraw", 0, "units to withdraw; only available ones can be")
	f.Int64Var(&change.IfTotal, "if-total", 0, "refuse unless the total is this one; so a repeat does not change it twice")
	return c
}

func newAudit(a *app) *cobra.Command {
	c := &cobra.Command{
		Use:     "audit PRODUCT",
		Short:   "Compare Redis, queue and SQL; exit code 4 if they disagree",
		Example: "  seckilld activity audit 1001 --json",
		Args:    one("PRODUCT"),
		RunE: func(c *cobra.Command, args []string) error {
			return a.withService(c.Context(), func(ctx context.Context, s *activities.Service) error {
				audit, err := s.Audit(ctx, args[0])
				if err != nil {
					return err
				}
				return a.printAudit(api.AuditOf(audit))
			})
		},
	}
	a.jsonFlag(c)
	return c
}

// withService opens the stores for one command.
func (a *app) withService(ctx context.Context, do func(context.Context, *activities.Service) error) (err error) {
	ctx, cancel := context.WithTimeout(ctx, commandWithin)
	defer cancel()
	log, err := a.log(slog.LevelWarn)
	if err != nil {
		return err
	}
	s, err := a.openAnswering(ctx, log, "seckilld-activity")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.close()) }()
	return do(ctx, activities.New(activities.Deps{
		Store: s.store, Redis: s.redis, Queue: s.broker, Now: time.Now, Random: rand.Reader, Log: log,
	}))
}
