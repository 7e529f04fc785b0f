package duty

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

type counts map[string]int

func (c counts) Panicked(duty string) { c[duty]++ }

// world is a log of duties whose clock stands still until it is moved.
type world struct {
	*Log
	out      bytes.Buffer
	clock    time.Time
	panicked counts
}

func newWorld() *world {
	w := &world{clock: time.UnixMilli(1_794_000_000_000), panicked: counts{}}
	w.Log = NewLog(slog.New(slog.NewTextHandler(&w.out, nil)), w.panicked, func() time.Time { return w.clock })
	return w
}

// lines are the messages logged since the last call.
func (w *world) lines() []string {
	defer w.out.Reset()
	var out []string
	for line := range strings.Lines(w.out.String()) {
		_, message, _ := strings.Cut(line, "msg=")
		out = append(out, strings.TrimSpace(message))
	}
	return out
}

func TestOutageIsToldOfOnceAMinute(t *testing.T) {
	w := newWorld()
	tell := func(err error) { w.Tell(t.Context(), Relay, "", err) }
	tell(nil)
	require.Empty(t, w.lines())
	for i := range 130 { // each with another text, as addresses have
		tell(fmt.Errorf("port %d", i))
		w.clock = w.clock.Add(time.Second)
	}
	require.Equal(t, []string{
		`"relay: failed; trying again and again" error="port 0"`,
		`"relay: still failing" failures=61 for=1m0s error="port 60"`,
		`"relay: still failing" failures=121 for=2m0s error="port 120"`,
	}, w.lines())
	for range 10 {
		tell(nil)
		w.clock = w.clock.Add(time.Second)
	}
	require.Equal(t, []string{`"relay: works again" failures=130 after=2m14s`}, w.lines())
}

// What works every other time is one outage.
func TestFlappingIsOneOutage(t *testing.T) {
	w := newWorld()
	for i := range 50 {
		var err error
		if i%2 == 0 {
			err = errors.New("away")
		}
		w.Tell(t.Context(), Relay, "", err)
		w.clock = w.clock.Add(time.Second)
	}
	require.Len(t, w.lines(), 1)
}

func TestPartsHaveOutagesOfTheirOwn(t *testing.T) {
	w := newWorld()
	away := errors.New("away")
	for _, part := range []string{"1001", "1002", "1001"} {
		w.Tell(t.Context(), Reconcile, part, away)
	}
	require.Equal(t, []string{
		`"reconcile: failed; trying again and again" product=1001 error=away`,
		`"reconcile: failed; trying again and again" product=1002 error=away`,
	}, w.lines())
}

// The end of the work is no failure of it.
func TestEndIsNoFailure(t *testing.T) {
	w := newWorld()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorIs(t, w.Pass(ctx, Relay, ctx.Err), context.Canceled)
	require.Empty(t, w.lines())
}

func TestPanicIsAnError(t *testing.T) {
	w := newWorld()
	pass := func() error {
		var orders []int
		_ = orders[len(w.panicked)]
		return nil
	}
	for range 2 {
		err := w.Pass(t.Context(), Relay, pass)
		var p *PanicError
		require.ErrorAs(t, err, &p)
		require.ErrorContains(t, err, "index out of range")
		require.Contains(t, p.Stack, "TestPanicIsAnError")
	}
	require.Equal(t, counts{"relay": 2}, w.panicked)
	lines := strings.Join(w.lines(), "\n")
	require.Equal(t, 2, strings.Count(lines, "relay: a mistake"), lines)
	require.Equal(t, 1, strings.Count(lines, "relay: failed"), lines)
	require.Contains(t, lines, "duty_test.go")
}
