package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"time"

	"github.com/seckill-edge/seckill/backend"
)

// works is everything that runs in this process.
type works struct {
	servers
	log      *slog.Logger
	shopAt   string // host:port
	console  string // host:port
	activity string // its id
	units    int64  // on sale when it was created
	note     string // which flags came to nothing, if any
	// closers end what was started.
	closers []closer
}

type closer struct {
	what string
	end  func(context.Context) error
}

func (w *works) onStop(what string, end func(context.Context) error) {
	w.closers = append(w.closers, closer{what, end})
}

// stop ends what was started, the newest first: so the edge publishes what it
// carries while the backend still stores it.
func (w *works) stop(ctx context.Context) error {
	var errs []error
	for _, c := range slices.Backward(w.closers) {

		w.log.Info("stopping", "part", c.what)
		if err := c.end(ctx); err != nil {
			errs = append(errs, fmt.Errorf("stopping %s: %w", c.what, err))
		}
	}
	w.closers = nil
	return errors.Join(errs...)
}

// start brings everything up, from the servers to the edge, and returns when a
// buyer can buy. It returns what is up also with an error, to be stopped.
func start(ctx context.Context, s settings, log *slog.Logger) (*works, error) {
	w := &works{log: log}
	var err error
	// Ports first: a taken one is the likeliest thing to go wrong.
	if w.shopAt, err = reserve(ctx, "--listen", s.listen); err != nil {
		return w, err
	}
	if w.console, err = reserve(ctx, "--console", s.console); err != nil {
		return w, err
	}
	if err := w.openServers(ctx, s); err != nil {
		return w, err
	}
	b, err := w.startBackend(ctx)
	if err != nil {
		return w, err
	}
	a, err := sample(ctx, b.Activities(), s, log)
	if err != nil {
		return w, err
	}
	w.activity, w.units, w.note = a.ID, a.Total, s.ignored(a)
	return w, w.startEdge(ctx, s)
}

func (w *works) startBackend(ctx context.Context) (*backend.Backend, error) {
	b, err := backend.New(backend.Config{Listen: w.console, AcceptRedisRisk: true}, backend.Deps{
		Redis: w.redis, Broker: w.broker, Store: w.store,
		Now: time.Now, Random: rand.Reader, Log: w.log,
	})
	if err != nil {
		return nil, fmt.Errorf("making the backend: %w", err)
	}
	w.onStop("the backend", func(ctx context.Context) error {
		b.Stop(ctx)
		return nil
	})
	if err := b.Start(ctx); err != nil {
		return nil, fmt.Errorf("starting the backend: %w", err)
	}
	return b, until(ctx, func() error {
		missing := b.NotReady(ctx)
		for _, name := range slices.Sorted(maps.Keys(missing)) {
			return fmt.Errorf("%s is not ready: %w; %s", flagOf[name], missing[name], wayOut)
		}
		return nil
	})
}

// flagOf says which flag leads to what the backend finds missing.
var flagOf = map[string]string{
	"redis":    "--redis",
	"database": "--database",
	"queue":    "--rabbitmq",
	"consumer": "--rabbitmq",
}

func (w *works) startEdge(ctx context.Context, s settings) error {
	e := edge{listen: w.shopAt, console: w.console, redis: w.redisURL, rabbitmq: w.brokerURL, folder: w.folder, verbose: s.verbose, embedded: s.redis == ""}
	// Also after a failed start: Caddy may have got half way.
	w.onStop("Caddy", func(context.Context) error { return e.stop() })
	if err := e.start(); err != nil {
		return err
	}
	return until(ctx, func() error { return sells(ctx, w.shopAt) })
}

// until tries again and again until try succeeds or ctx ends; then the error is
// try's last.
func until(ctx context.Context, try func() error) error {
	for pause := 5 * time.Millisecond; ; pause = min(2*pause, 250*time.Millisecond) {
		err := try()
		if err == nil {
			return nil
		}
		timer := time.NewTimer(pause)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return err
		}
	}
}
