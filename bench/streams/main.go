// Command streams opens many event streams of orders on one edge and says what
// they cost: the edge's memory, and how soon every client hears that its order
// has changed. It starts its own Redis and edge, and needs as many open files as
// streams, twice (ulimit -n).
//
//	go run ./bench/streams --streams 20000
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

type options struct {
	streams, perAddress int
	hold                time.Duration
	maxMiB              int
}

func main() {
	var o options
	flag.IntVar(&o.streams, "streams", 20_000, "streams to open, each of a buyer of its own")
	flag.IntVar(&o.perAddress, "per-address", 10_000, "streams from one address of 127.0.0.0/8; a port is needed for each")
	flag.DurationVar(&o.hold, "hold", 5*time.Second, "how long to leave them open without news, before measuring")
	flag.IntVar(&o.maxMiB, "max-mib", 1024, "fail if the edge's resident memory is more than this")
	flag.Parse()
	if flag.NArg() > 0 || o.streams < 1 || o.streams > 1_000_000 || o.perAddress < 1 || o.perAddress > 25_000 || o.hold < 0 {
		fmt.Fprintln(os.Stderr, "streams: streams must be 1 to 1000000, per-address 1 to 25000, hold not negative; see --help")
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, o)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "streams:", err)
		os.Exit(1)
	}
}
