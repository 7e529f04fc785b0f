// Command streams opens many event streams of orders on one edge and says what
// they cost: the edge's memory, and how soon every client hears that its order
// has changed. It starts its own Redis and edge. Over HTTP/2, as from a proxy in
// front, many streams share a connection; over HTTP/1.1 each has its own, which
// costs the edge most, and needs as many open files as streams (ulimit -n).
//
//	go run ./bench/streams --streams 20000
//	go run ./bench/streams --streams 19000 --per-connection 1
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"
)

type options struct {
	streams, perConnection, perAddress int
	hold                               time.Duration
	maxMiB                             int
}

// spareFiles is what edge and clients open beside their connections.
const spareFiles = 200

// check says what is wrong with the options on a system with this limit of open
// files.
func (o options) check(files uint64) error {
	switch {
	case o.streams < 1 || o.streams > 1_000_000:
		return errors.New("--streams must be 1 to 1000000")
	case o.perConnection < 1 || o.perConnection > maxPerConnection:
		return fmt.Errorf("--per-connection must be 1 to %d", maxPerConnection)
	case o.perAddress < 1 || o.perAddress > 25_000:
		return errors.New("--per-address must be 1 to 25000")
	case o.hold < 0:
		return errors.New("--hold must not be negative")
	}
	if need := o.connections() + spareFiles; uint64(need) > files {
		return fmt.Errorf("%d connections need %d open files and %d are allowed: raise ulimit -n, or let more streams share a connection (--per-connection)",
			o.connections(), need, files)
	}
	return nil
}

func (o options) connections() int { return (o.streams + o.perConnection - 1) / o.perConnection }

func main() {
	var o options
	flag.IntVar(&o.streams, "streams", 20_000, "streams to open, each of a buyer of its own")
	flag.IntVar(&o.perConnection, "per-connection", 100, "streams that share a connection, over HTTP/2; with 1 each has its own, over HTTP/1.1")
	flag.IntVar(&o.perAddress, "per-address", 10_000, "connections from one address of 127.0.0.0/8; a port is needed for each")
	flag.DurationVar(&o.hold, "hold", 5*time.Second, "how long to leave them open without news, before measuring")
	flag.IntVar(&o.maxMiB, "max-mib", 1024, "fail if the edge's resident memory is more than this")
	flag.Parse()
	var files syscall.Rlimit
	err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &files)
	if err == nil {
		err = o.check(files.Cur)
	}
	if err == nil && flag.NArg() > 0 {
		err = fmt.Errorf("%q: there are only flags", flag.Arg(0))
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "streams:", err)
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err = run(ctx, o, os.Stdout)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "streams:", err)
		os.Exit(1)
	}
}
