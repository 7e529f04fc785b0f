package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/seckill-edge/seckill/backend/activities"
	"github.com/seckill-edge/seckill/backend/store"
	words "github.com/seckill-edge/seckill/internal/usage"
	"github.com/seckill-edge/seckill/internal/version"
)

// Exit codes.
const (
	exitDone    = 0
	exitFailed  = 1 // a server cannot be reached, or something else failed
	exitUsage   = 2 // a command, option or value is wrong
	exitRefused = 3 // not in this state; there is none; there is one already
	exitDrift   = 4 // audit, reconcile: the stores disagree
)

var (
	errUsage = errors.New("usage")
	errDrift = errors.New("the stores disagree")
)

// Run carries out one command line and returns the exit code. env looks up an
// environment variable. The end of ctx stops a server cleanly.
func Run(ctx context.Context, args []string, stdout, stderr io.Writer, env func(string) (string, bool)) int {
	root := newRoot(&app{stdout: stdout, stderr: stderr, env: env})
	root.SetArgs(args)
	root.SetOut(stdout)
	root.SetErr(stderr)
	command, err := root.ExecuteContextC(ctx)
	if err == nil {
		return exitDone
	}
	fmt.Fprintf(stderr, "%s: %s\n", command.CommandPath(), explain(err))
	code := codeOf(err)
	if code == exitUsage {
		fmt.Fprintf(stderr, "Try: %s --help\n", command.CommandPath())
	}
	return code
}

func codeOf(err error) int {
	var invalid *activities.Invalid
	switch {
	case errors.Is(err, errUsage), errors.As(err, &invalid):
		return exitUsage
	case errors.Is(err, activities.ErrRefused), errors.Is(err, store.ErrExists), errors.Is(err, store.ErrNotFound), errors.Is(err, store.ErrState), errors.Is(err, store.ErrNewerSchema):
		return exitRefused
	case errors.Is(err, errDrift):
		return exitDrift
	}
	return exitFailed
}

// explain words an error for the one who typed the command: fields are options.
func explain(err error) string {
	if invalid, ok := errors.AsType[*activities.Invalid](err); ok {
		lines := make([]string, len(invalid.Fields))
		for i, f := range invalid.Fields {
			name := f.Name
			if option, ok := optionOf[name]; ok {
				name = "--" + option
			}
			lines[i] = fmt.Sprintf("%s %q: %s", name, f.Value, f.Allowed)
		}
		return strings.Join(lines, "\n  ")
	}
	return strings.TrimPrefix(err.Error(), errUsage.Error()+": ")
}

// optionOf names the options of activity create and stock by their fields.
var optionOf = map[string]string{
	"id": "id", "product_id": "product", "title": "title", "start": "start", "end": "end",
	"total": "total", "limit": "limit", "pay_window_seconds": "pay-window",
	"add": "add", "withdraw": "withdraw", "if_total": "if-total",
}

// app is what all commands share.
type app struct {
	stdout, stderr io.Writer
	env            func(string) (string, bool)
	options        options
	json           bool
}

func newRoot(a *app) *cobra.Command {
	root := &cobra.Command{
		Use:   "seckilld",
		Short: "Store what the edges reserve, and manage sales",
		Long: `seckilld takes reserved orders from the queue, stores them in SQL and tells Redis.
Its commands create, open and close sales and say whether all stores agree.

Exit codes: 0 done, 1 failed, 2 wrong usage, 3 refused (wrong state, not found,
exists already, a newer database schema), 4 audit or reconcile found what is left to be done.`,
		Example: `  seckilld migrate --database mysql://seckill:secret@127.0.0.1:3306/seckill
  seckilld activity create --product 1001 --start 2026-11-11T20:00:00+08:00 --end 2026-11-11T22:00:00+08:00 --total 100
  seckilld serve`,
		Version:           version.String(),
		SilenceErrors:     true,
		SilenceUsage:      true,
		CompletionOptions: cobra.CompletionOptions{HiddenDefaultCmd: true},
		Args:              usage(cobra.NoArgs),
		RunE: func(c *cobra.Command, _ []string) error {
			return c.Help()
		},
	}
	root.SetVersionTemplate("seckilld {{.Version}}\n")
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return fmt.Errorf("%w: %w", errUsage, words.Words(err)) })
	a.options.register(root.PersistentFlags())
	root.AddCommand(newServe(a), newMigrate(a), newActivity(a), newReconcile(a), newRecover(a), newOrder(a), newRefund(a), newDead(a))
	return root
}

// usage marks wrong arguments as such.
func usage(check cobra.PositionalArgs) cobra.PositionalArgs {
	return func(c *cobra.Command, args []string) error {
		if err := check(c, args); err != nil {
			return fmt.Errorf("%w: %w", errUsage, err)
		}
		return nil
	}
}

// one wants a single argument, and calls it by its name.
func one(name string) cobra.PositionalArgs {
	return func(c *cobra.Command, args []string) error {
		switch {
		case len(args) == 0:
			return fmt.Errorf("%w: %s is missing: %s", errUsage, name, c.UseLine())
		case len(args) > 1:
			return fmt.Errorf("%w: want one %s, not %d: %q", errUsage, name, len(args), args)
		}
		return nil
	}
}
