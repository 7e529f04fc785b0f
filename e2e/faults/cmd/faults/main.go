// Command faults runs the matrix of faults: each kind for a number of rounds on
// private servers, and prints what became of the sales. Its last line tells it
// all, its exit status is 0 only if nothing was lost, oversold, duplicated, stuck,
// late or untrue.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/seckill-edge/seckill/e2e/faults"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code, err := run(ctx, os.Args[1:], os.Stdout)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "faults:", err)
	}
	os.Exit(code)
}

func run(ctx context.Context, args []string, out io.Writer) (int, error) {
	flags := flag.NewFlagSet("faults", flag.ContinueOnError)
	rounds := flags.Int("rounds", 10, "rounds of each kind")
	seed := flags.Uint64("seed", 1, "seed of the first round; the next ones count on")
	only := flags.String("only", "", "kinds to play, by their names or parts of them, separated by semicolons; empty means all")
	fields := flags.Int("fields", 2, "rounds played at once, each on servers of its own")
	within := flags.Duration("within", faults.Promise(), "resolve_within of the edges")
	last := flags.Duration("last", 0, "length of each fault, in place of the one that the seed draws")
	list := flags.Bool("list", false, "print the kinds and end")
	logs := flags.String("logs", filepath.Join(os.TempDir(), "seckill-faults-logs"), "folder that keeps the logs of rounds that failed")
	if err := flags.Parse(args); err != nil {
		return 2, nil //nolint:nilerr // the flag set has said it
	}
	kinds := choose(faults.Kinds(*within), *only)
	if len(kinds) == 0 || *rounds < 1 {
		return 2, errors.New("nothing to play: -only matches no kind, or -rounds is below 1; see -list")
	}
	if *list {
		for _, k := range kinds {
			fmt.Fprintln(out, k.Name)
		}
		return 0, nil
	}
	if *last > 0 {
		for i := range kinds {
			kinds[i].Last = [2]time.Duration{*last, *last + 1}
		}
	}
	total, err := faults.Matrix{Kinds: kinds, Rounds: *rounds, Within: *within, Fields: min(*fields, len(kinds)**rounds), Seed: *seed, Logs: *logs, Out: out}.Run(ctx)
	fmt.Fprintln(out, total)
	if err != nil || !total.Clean() {
		return 1, err
	}
	return 0, nil
}

// choose keeps the kinds that a part of only names, exactly if one is named
// exactly.
func choose(all []faults.Kind, only string) []faults.Kind {
	if only == "" {
		return all
	}
	var kept []faults.Kind
	parts := strings.Split(only, ";")
	for _, k := range all {
		for _, part := range parts {
			if part = strings.TrimSpace(part); part != "" && (k.Name == part || !named(all, part) && strings.Contains(k.Name, part)) {
				kept = append(kept, k)
				break
			}
		}
	}
	return kept
}

func named(all []faults.Kind, name string) bool {
	for _, k := range all {
		if k.Name == name {
			return true
		}
	}
	return false
}
