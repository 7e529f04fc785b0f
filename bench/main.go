// Command bench measures what this project promises, as ratios taken in one run
// on one machine: absolute figures differ between machines and minutes, ratios
// hold. `make bench` runs it.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"
)

const usage = `bench measures ratios on private servers on this machine.

  ratio     goal    what is divided
  soldout   ≥ 0.85  sold-out refusals ÷ a bare Caddy respond
  proved    ≥ 0.75  the same with every limit on, signed tokens and tickets
  status    ≥ 0.7   own orders' states told ÷ a bare Caddy respond
  accepted  ≥ 0.35  purchases accepted, confirmed and stored ÷ a bare Caddy respond
  shut      ≥ 0.8   refusals while Redis is down ÷ sold-out refusals
  grouped   ≥ 5     reservations a second grouped ÷ one per call
  batched   ≥ 15    orders stored a second in batches ÷ one a transaction

Examples:
  go run ./bench
  go run ./bench --rounds 5 --seconds 8

Options:
`

func main() {
	var o options
	flag.Usage = func() { fmt.Fprint(flag.CommandLine.Output(), usage); flag.PrintDefaults() }
	flag.IntVar(&o.rounds, "rounds", 3, "rounds, each measuring all in turn; the median ratio counts")
	flag.IntVar(&o.seconds, "seconds", 5, "seconds of load in each measurement")
	flag.IntVar(&o.connections, "connections", 64, "connections of the load generator")
	flag.StringVar(&o.out, "out", filepath.Join("bench", "out", "latest.json"), "where the figures go as JSON")
	flag.Parse()
	if flag.NArg() > 0 || o.rounds < 1 || o.seconds < 1 || o.connections < 1 {
		fmt.Fprintln(os.Stderr, "bench: rounds, seconds and connections must be at least 1, and there are no further arguments; see --help")
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, o)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

type options struct {
	rounds, seconds, connections int
	out                          string
}

func (o options) duration() time.Duration { return time.Duration(o.seconds) * time.Second }

func run(ctx context.Context, o options) (err error) {
	dir, err := os.MkdirTemp("", "seckill-bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	if err := os.Chmod(dir, 0o755); err != nil { // MariaDB runs as another user
		return err
	}
	fmt.Println("Building the edge and the backend, starting Redis, RabbitMQ and MariaDB …")
	s, err := startStack(ctx, dir)
	if err != nil {
		return err
	}
	defer s.stop()
	report := newReport(o)
	for round := range o.rounds {
		fmt.Printf("\nRound %d of %d\n", round+1, o.rounds)
		if err := measureEdge(ctx, s, o, report); err != nil {
			return err
		}
		if err := measureGrouped(ctx, s, o, report); err != nil {
			return err
		}
		if err := measureBatched(ctx, s, o, report); err != nil {
			return err
		}
	}
	report.print(os.Stdout)
	return report.write(o.out)
}

func (r *report) write(path string) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	text, err := json.MarshalIndent(r.document(), "", "  ")
	if err != nil {
		return err
	}
	if err := os.WriteFile(path, append(text, '\n'), 0o644); err != nil {
		return err
	}
	fmt.Println("Written to", path)
	return nil
}
