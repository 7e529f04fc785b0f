package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"time"

	"github.com/spf13/pflag"

	"github.com/seckill-edge/seckill/lua"
)

// The exit codes.
const (
	exitOK     = 0
	exitFailed = 1
	exitUsage  = 2
)

// stopWithin bounds the end.
const stopWithin = 20 * time.Second

// startWithin bounds the start. A server that was given may be away, which is told
// soon; what is embedded starts, be the machine as slow as it is.
func (s settings) startWithin() time.Duration {
	if s.redis+s.rabbitmq+s.database != "" {
		return 20 * time.Second
	}
	return 3 * time.Minute
}

// run is the command: it sells until ctx ends. It returns the exit code.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	s, err := parse(args, stdout)
	if errors.Is(err, pflag.ErrHelp) {
		return exitOK
	}
	if err != nil {
		fmt.Fprintf(stderr, "standalone: %v\nSee standalone --help.\n", err)
		return exitUsage
	}
	switch err := sell(ctx, s, stdout, stderr); {
	case errors.Is(err, errUsage):
		fmt.Fprintf(stderr, "standalone: %v\nSee standalone --help.\n", err)
		return exitUsage
	case err != nil:
		fmt.Fprintf(stderr, "standalone: %v\n", err)
		return exitFailed
	}
	return exitOK
}

// sell starts everything, says so, and ends it when ctx does. Being interrupted
// is no error, not even during the start.
func sell(ctx context.Context, s settings, stdout, stderr io.Writer) error {
	level := new(slog.LevelVar)
	level.Set(s.level(true))
	log := slog.New(slog.NewTextHandler(stderr, &slog.HandlerOptions{Level: level}))
	lua.LogTo(log)
	starting, cancel := context.WithTimeout(ctx, s.startWithin())
	defer cancel()
	w, err := start(starting, s, log)
	if err == nil {
		level.Set(s.level(false))
		if w.note != "" {
			fmt.Fprintf(stderr, "standalone: %s\n", w.note)
		}
		err = w.announce(stdout, s.json)
	}
	if err == nil {
		<-ctx.Done()
		if !s.json {
			fmt.Fprintln(stderr, "Stopping; once more Ctrl-C ends it at once.")
		}
	} else if ctx.Err() != nil {
		err = nil
	}
	stopping, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopWithin)
	defer cancel()
	return errors.Join(err, w.stop(stopping))
}

// level is what is logged from on. The embedded Redis begins empty, so that at the
// start a kept sale's stock is always made anew: nothing to warn of.
func (s settings) level(starting bool) slog.Level {
	switch {
	case s.verbose:
		return slog.LevelInfo
	case starting && s.redis == "":
		return slog.LevelError
	}
	return slog.LevelWarn
}
