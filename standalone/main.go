// Command standalone runs a whole flash sale in one process with nothing
// installed: the production Caddyfile with the plugin, the backend, an embedded
// Redis, queue and database, a sample activity, a shop page and the console. See
// standalone --help.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	// The first signal ends the sale in order; from then on signals do what they
	// do by default, so that a second one ends the process.
	context.AfterFunc(ctx, stop)
	os.Exit(run(ctx, os.Args[1:], os.Stdout, os.Stderr))
}
