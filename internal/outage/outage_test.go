package outage_test

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/seckill-edge/seckill/internal/outage"
)

// world is a log whose clock stands still until it is moved.
type world struct {
	*outage.Log
	out   bytes.Buffer
	clock time.Time
}

func newWorld() *world {
	w := &world{clock: time.UnixMilli(1_794_000_000_000)}
	w.Log = outage.NewLog(slog.New(slog.NewTextHandler(&w.out, nil)), "relay", func() time.Time { return w.clock })
	return w
}

// lines are what was logged since the last call, from the level on.
func (w *world) lines() []string {
	defer w.out.Reset()
	var out []string
	for line := range strings.Lines(w.out.String()) {
		_, line, _ = strings.Cut(line, "level=")
		out = append(out, strings.TrimSpace(line))
	}
	return out
}

// pass notes each error, one a second.
func (w *world) pass(errs ...error) {
	for _, err := range errs {
		w.Note(err, "product", "1001")
		w.clock = w.clock.Add(time.Second)
	}
}

func TestAnOutageIsLoggedOnceAMinute(t *testing.T) {
	w := newWorld()
	w.pass(nil, nil)
	require.Empty(t, w.lines())
	for i := range 130 { // each with another text, as addresses have
		w.pass(fmt.Errorf("port %d", i))
	}
	require.Equal(t, []string{
		`WARN msg="relay: failed; trying again and again" product=1001 error="port 0"`,
		`WARN msg="relay: still failing" product=1001 failures=61 for=1m0s error="port 60"`,
		`WARN msg="relay: still failing" product=1001 failures=121 for=2m0s error="port 120"`,
	}, w.lines())
	w.pass(nil, nil, nil, nil)
	require.Empty(t, w.lines())
	w.pass(nil, nil, nil)
	require.Equal(t, []string{`INFO msg="relay: works again" product=1001 failures=130 after=2m14s`}, w.lines())
}

func TestWhatWorksNowAndThenIsOneOutage(t *testing.T) {
	w := newWorld()
	for range 100 {
		w.pass(errors.New("away"), nil, nil, nil)
	}
	lines := w.lines()
	require.Len(t, lines, 7, "one line, and one more in each of six minutes: %v", lines)
	require.NotContains(t, strings.Join(lines, "\n"), "works again")
}

func TestTheOutageThatLastsCanBeAskedFor(t *testing.T) {
	w := newWorld()
	_, lasts := w.Now()
	require.False(t, lasts)
	began, away := w.clock, errors.New("away")
	w.pass(errors.New("slow"), nil, away)
	is, lasts := w.Now()
	require.True(t, lasts)
	require.Equal(t, outage.Outage{Since: began, Last: began.Add(2 * time.Second), Failures: 2, Err: away}, is)
	w.pass(nil, nil, nil, nil, nil)
	_, lasts = w.Now()
	require.False(t, lasts)
	w.lines()
	w.pass(away)
	require.Equal(t, []string{`WARN msg="relay: failed; trying again and again" product=1001 error=away`}, w.lines())
}

func TestManyNoteAtOnce(t *testing.T) {
	w := newWorld()
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for range 100 {
				w.Note(errors.New("away"))
				w.Now()
			}
		})
	}
	all.Wait()
	is, _ := w.Now()
	require.Equal(t, 800, is.Failures)
	require.Len(t, w.lines(), 1)
}
