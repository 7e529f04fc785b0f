package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/spf13/cobra"

	"github.com/seckill-edge/seckill/backend/api"
	"github.com/seckill-edge/seckill/backend/dead"
)

// deadWithin bounds a command on dead letters: each replay waits for the broker.
const deadWithin = time.Minute

func newDead(a *app) *cobra.Command {
	c := &cobra.Command{
		Use:   "dead",
		Short: "Look after dead letters: messages that could not be stored",
		Long: `A dead letter is a message that is wrong in itself, or an order that the database
has refused again and again. Its units were given back when it was buried and SQL
has its orders as rejected, as far as they could be read. So a replay can never
sell them twice: what was rejected stays so, and what could not be read then is
stored once, if units are left.`,
		Example: `  seckilld dead list
  seckilld dead replay --all`,
		Args: usage(cobra.NoArgs),
		RunE: func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(newDeadList(a), newDeadShow(a), newDeadReplay(a), newDeadDrop(a))
	return c
}

func newDeadList(a *app) *cobra.Command {
	var limit int
	c := &cobra.Command{
		Use:   "list",
		Short: "List dead letters, the oldest first",
		Example: `  seckilld dead list
  seckilld dead list --limit 1000 --json`,
		Args: usage(cobra.NoArgs),
		RunE: func(c *cobra.Command, _ []string) error {
			if limit < 1 || limit > maxListed {
				return fmt.Errorf("%w: --limit %d: must be 1 to %d", errUsage, limit, maxListed)
			}
			return a.withDead(c.Context(), func(ctx context.Context, s *dead.Service) error {
				letters, total, err := s.List(ctx, limit)
				if err != nil {
					return err
				}
				return a.printDeadList(api.DeadLettersOf(letters, total), time.Now())
			})
		},
	}
	c.Flags().IntVar(&limit, "limit", 100, "letters to list, 1 to 1000")
	a.jsonFlag(c)
	return c
}

const maxListed = 1000

func newDeadShow(a *app) *cobra.Command {
	c := &cobra.Command{
		Use:   "show ID",
		Short: "Show a whole letter, and what a replay would make of its orders",
		Example: `  seckilld dead show 01kb0c3v9t4z6q8w2x5y7a1d3f
  seckilld dead show 01kb0c3v9t4z6q8w2x5y7a1d3f/0 --json`,
		Args: one("ID"),
		RunE: func(c *cobra.Command, args []string) error {
			return a.withDead(c.Context(), func(ctx context.Context, s *dead.Service) error {
				shown, err := s.Show(ctx, args[0])
				if err != nil {
					return err
				}
				return a.printDeadShown(api.DeadShownOf(shown), time.Now())
			})
		},
	}
	a.jsonFlag(c)
	return c
}

func newDeadReplay(a *app) *cobra.Command {
	var all bool
	c := &cobra.Command{
		Use:   "replay ID | --all",
		Short: "Send letters to the orders again, each confirmed before it is removed",
		Long: `replay sends letters to the orders again. Orders whose units were given back end as
rejected; seckilld dead show says beforehand what would become of each. It is
refused while the stock of a letter's activity is not proven.`,
		Example: `  seckilld dead replay 01kb0c3v9t4z6q8w2x5y7a1d3f
  seckilld dead replay --all --json`,
		RunE: func(c *cobra.Command, args []string) error {
			return a.deadDo(c.Context(), args, all, "replayed", (*dead.Service).Replay)
		},
	}
	c.Flags().BoolVar(&all, "all", false, "every letter that is there now")
	a.jsonFlag(c)
	return c
}

func newDeadDrop(a *app) *cobra.Command {
	var all, yes bool
	c := &cobra.Command{
		Use:   "drop ID | --all --yes",
		Short: "Remove letters for good",
		Example: `  seckilld dead drop 01kb0c3v9t4z6q8w2x5y7a1d3f
  seckilld dead drop --all --yes`,
		RunE: func(c *cobra.Command, args []string) error {
			if all && !yes {
				return fmt.Errorf("%w: --all removes every dead letter for good; add --yes if that is meant", errUsage)
			}
			return a.deadDo(c.Context(), args, all, "dropped", (*dead.Service).Drop)
		},
	}
	c.Flags().BoolVar(&all, "all", false, "every letter that is there now; needs --yes")
	c.Flags().BoolVar(&yes, "yes", false, "yes, all of them")
	a.jsonFlag(c)
	return c
}

// deadDo does one thing to one letter or all, and says what was done, also
// before an error.
func (a *app) deadDo(ctx context.Context, args []string, all bool, done string, do func(*dead.Service, context.Context, string) (dead.Done, error)) error {
	id := dead.All
	switch {
	case len(args) == 1 && !all && args[0] != "":
		id = args[0]
	case len(args) != 0 || !all:
		return fmt.Errorf("%w: want the ID of one letter, or --all", errUsage)
	}
	return a.withDead(ctx, func(ctx context.Context, s *dead.Service) error {
		count, err := do(s, ctx, id)
		if err != nil && count.Letters == 0 {
			return err
		}
		if errors.Is(err, context.DeadlineExceeded) {
			err = fmt.Errorf("%w; %d letters were %s in time: the same command goes on", err, count.Letters, done)
		}
		return errors.Join(a.printDeadDone(api.DeadDoneOf(count), done), err)
	})
}

// withDead opens the stores for one command on dead letters.
func (a *app) withDead(ctx context.Context, do func(context.Context, *dead.Service) error) (err error) {
	ctx, cancel := context.WithTimeout(ctx, deadWithin)
	defer cancel()
	log, err := a.log(slog.LevelError) // what was done is printed
	if err != nil {
		return err
	}
	s, err := a.openAnswering(ctx, log, "seckilld-dead")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.close()) }()
	return do(ctx, dead.New(dead.Deps{Broker: s.broker, Store: s.store, Redis: s.redis, Log: log}))
}
