// Command flood sends a crowd of strangers against a real edge, each from a
// network of his own, and one abuser, while honest buyers buy. `make flood` runs
// it. It fails unless the abuser stays limited, everybody honest is served, and
// the edge's memory stays within its bound; a machine too slow for the whole test
// proves nothing, which is no failure of the edge and has an exit code of its own.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"
)

const usage = `flood tests the limits of an edge, on private servers on this machine.

  strangers  one call each, from /64 networks that differ
  abuser     one /64, a new address and a new name for each call
  honest     look, buy, and ask for their order twice, each from an address of his own

The limit of an address is 60 calls an hour here, with a burst of 60: buckets stay
in memory, and whoever is forgotten has gained.

Examples:
  go run ./bench/flood
  go run ./bench/flood --strangers 100000
  go build -o bin/flood ./bench/flood && bin/flood --within 5m   # go run hides the exit code

Exit codes:
  0   all checks held
  1   a check is wrong, or the test could not be run
  2   wrong usage
  75  nothing is wrong, but this machine was too slow for the whole test

Options:
`

// The exit codes.
const (
	exitDone     = 0
	exitWrong    = 1
	exitUsage    = 2
	exitUnproven = 75 // sysexits.h: come again
)

// options say how much of everything there is.
type options struct {
	strangers uint64
	honest    int
	abuse     int // calls a second
	within    time.Duration
	memory    float64 // MiB
}

func main() {
	var o options
	flag.Usage = func() { fmt.Fprint(flag.CommandLine.Output(), usage); flag.PrintDefaults() }
	flag.Uint64Var(&o.strangers, "strangers", 1_000_000, "networks that send one call each, up to 2^32")
	flag.IntVar(&o.honest, "honest", 1000, "honest buyers")
	flag.IntVar(&o.abuse, "abuse", 200, "calls a second of the abuser")
	flag.DurationVar(&o.within, "within", 110*time.Second, "how long the strangers may take")
	flag.Float64Var(&o.memory, "memory", 512, "MiB that the edge may need at its peak")
	flag.Parse()
	if flag.NArg() > 0 || o.strangers < 1 || o.strangers > 1<<32 || o.honest < 1 || o.abuse < 1 || o.abuse > 1000 || o.within <= 0 {
		fmt.Fprintln(os.Stderr, "flood: all options must be positive, abuse at most 1000, and there are no further arguments; see --help")
		os.Exit(exitUsage)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	seen, err := run(ctx, o)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "flood:", err)
		os.Exit(exitWrong)
	}
	seen.print(os.Stdout)
	os.Exit(conclude(os.Stdout, seen.judge(o)))
}
