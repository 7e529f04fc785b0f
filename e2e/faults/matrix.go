package faults

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/seckill-edge/seckill/e2e/history"
)

// Matrix is what to play.
type Matrix struct {
	Kinds  []Kind
	Rounds int
	// Seed is the first round's; the others count on from it, the same for each
	// kind.
	Seed uint64
	// Logs is the folder under which what a failed round left is kept.
	Logs string
	// Out is told each round as it ends, and the table.
	Out io.Writer
}

// Total is what a whole matrix showed.
type Total struct {
	Kinds, Rounds, Lost, Oversold, Duplicated, Stuck int
}

// Clean says that all is zero that must be.
func (t Total) Clean() bool { return t.Lost+t.Oversold+t.Duplicated+t.Stuck == 0 }

// String is the line that tells it all.
func (t Total) String() string {
	return fmt.Sprintf("kinds=%d rounds=%d lost=%d oversold=%d duplicated=%d stuck=%d",
		t.Kinds, t.Rounds, t.Lost, t.Oversold, t.Duplicated, t.Stuck)
}

// Run plays all rounds on one field, and on a new one after a round that failed:
// what is wrong may outlive its round. The error says that no field could be had.
func (m Matrix) Run(ctx context.Context) (total Total, err error) {
	var f *Field
	end := func() error {
		if f == nil {
			return nil
		}
		closing := f
		f = nil
		return closing.Close()
	}
	defer func() {
		if closeErr := end(); err == nil {
			err = closeErr
		}
	}()
	var results []Result
	for _, k := range m.Kinds {
		for n := range m.Rounds {
			if ctx.Err() != nil {
				return m.report(results), ctx.Err()
			}
			if f == nil {
				if f, err = Open(ctx, ""); err != nil {
					return m.report(results), fmt.Errorf("starting servers and programs: %w", err)
				}
			}
			r := f.Play(ctx, k, m.Seed+uint64(n))
			results = append(results, r)
			m.tell(&r)
			if r.Failed() {
				m.keep(f, &r)
				_ = end() // processes that a failed round has left broken do not end cleanly
			}
		}
	}
	return m.report(results), nil
}

// tell prints a round.
func (m Matrix) tell(r *Result) {
	fmt.Fprintf(m.Out, "%-31s seed %-6d %5d clicks, %4d unanswered, %4d shut out, %4d orders; sells again after %5s, at rest after %5s, took %5s",
		r.Kind, r.Seed, r.Clicks, r.Unanswered, r.Shut, r.Orders, tenths(r.Recovery), tenths(r.Settled), tenths(r.Took))
	if r.GivenUp > 0 {
		fmt.Fprintf(m.Out, ", %d given up", r.GivenUp)
	}
	fmt.Fprintln(m.Out)
	if r.Err != nil {
		fmt.Fprintln(m.Out, "  not played to its end:", r.Err)
	}
	const most = 8
	for i, v := range r.Violations {
		if i == most {
			fmt.Fprintf(m.Out, "  and %d more\n", len(r.Violations)-most)
			break
		}
		fmt.Fprintf(m.Out, "  %s: %s\n", v.Kind, v.Text)
	}
}

func tenths(d time.Duration) string { return fmt.Sprintf("%.1fs", d.Seconds()) }

// keep copies the logs of a failed round.
func (m Matrix) keep(f *Field, r *Result) {
	name := strings.NewReplacer(" ", "-", ",", "").Replace(r.Kind)
	dir := filepath.Join(m.Logs, fmt.Sprintf("%s-seed-%d", name, r.Seed))
	err := os.MkdirAll(dir, 0o755)
	logs, _ := filepath.Glob(filepath.Join(f.Dir(), "*.log"))
	for _, sub := range []string{"*", "*/*"} {
		more, _ := filepath.Glob(filepath.Join(f.Dir(), sub, "*.log"))
		logs = append(logs, more...)
	}
	for _, log := range logs {
		if text, readErr := os.ReadFile(log); readErr == nil && err == nil {
			err = os.WriteFile(filepath.Join(dir, filepath.Base(log)), text, 0o644)
		}
	}
	var verdict strings.Builder
	for _, v := range r.Violations {
		fmt.Fprintf(&verdict, "%s: %s\n", v.Kind, v.Text)
	}
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, "violations.txt"), []byte(verdict.String()), 0o644)
	}
	if err != nil {
		fmt.Fprintln(m.Out, "  its logs could not be kept:", err)
		return
	}
	fmt.Fprintf(m.Out, "  its logs are in %s; again by: make faults ROUNDS=1 SEED=%d ONLY=%q\n", dir, r.Seed, r.Kind)
}

// line is one kind in the table.
type line struct {
	kind                                                       string
	rounds, lost, oversold, duplicated, stuck, givenUp, failed int
	orders                                                     int64
	recovery, settled                                          time.Duration
}

// report prints the table. The last line is Total's, for the caller to print.
func (m Matrix) report(results []Result) Total {
	var lines []*line
	var total Total
	for i := range results {
		r := &results[i]
		if len(lines) == 0 || lines[len(lines)-1].kind != r.Kind {
			lines = append(lines, &line{kind: r.Kind})
		}
		l := lines[len(lines)-1]
		l.add(r)
		total.Rounds++
		total.Lost += r.Count(history.Lost)
		total.Oversold += r.Count(history.Oversold)
		total.Duplicated += r.Count(history.Duplicated)
		total.Stuck += r.Count(history.Stuck)
		if r.Err != nil {
			total.Stuck++
		}
	}
	total.Kinds = len(lines)
	fmt.Fprintf(m.Out, "\nseeds %d to %d for each kind\n\n", m.Seed, m.Seed+uint64(max(m.Rounds, 1))-1)
	fmt.Fprintf(m.Out, "%-31s %6s %7s %5s %8s %10s %5s %8s %13s %7s\n",
		"fault", "rounds", "orders", "lost", "oversold", "duplicated", "stuck", "given up", "sells again", "at rest")
	for _, l := range lines {
		fmt.Fprintf(m.Out, "%-31s %6d %7d %5d %8d %10d %5d %8d %13s %7s\n",
			l.kind, l.rounds, l.orders, l.lost, l.oversold, l.duplicated, l.stuck+l.failed, l.givenUp, tenths(l.recovery), tenths(l.settled))
	}
	fmt.Fprint(m.Out, "\nsells again, at rest: the slowest, counted from the heal. given up: orders that came\n"+
		"to nothing where they may, and whose buyers were told: \"queued\" without Redis's word while it stayed away or the\n"+
		"edge died, or forgotten by Redis and an edge in one moment under appendfsync everysec.\n\n")
	return total
}

func (l *line) add(r *Result) {
	l.rounds++
	l.orders += r.Orders
	l.lost += r.Count(history.Lost)
	l.oversold += r.Count(history.Oversold)
	l.duplicated += r.Count(history.Duplicated)
	l.stuck += r.Count(history.Stuck)
	l.givenUp += r.GivenUp
	if r.Err != nil {
		l.failed++
	}
	l.recovery, l.settled = max(l.recovery, r.Recovery), max(l.settled, r.Settled)
}
