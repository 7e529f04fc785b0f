package faults

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/seckill-edge/seckill/e2e/stack"
	"github.com/seckill-edge/seckill/internal/order"
)

// Matrix is what to play.
type Matrix struct {
	Kinds  []Kind
	Rounds int
	// Fields is how many rounds are played at once, each on servers of its own; 0
	// means 1.
	Fields int
	// Within is the edges' promise, see Promise.
	Within time.Duration
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
	Kinds, Rounds, Lost, Oversold, Duplicated, Stuck, Late, Untrue int
}

// Clean says that all is zero that must be.
func (t Total) Clean() bool {
	return t.Lost+t.Oversold+t.Duplicated+t.Stuck+t.Late+t.Untrue == 0
}

// String is the line that tells it all.
func (t Total) String() string {
	return fmt.Sprintf("kinds=%d rounds=%d lost=%d oversold=%d duplicated=%d stuck=%d late=%d untrue=%d",
		t.Kinds, t.Rounds, t.Lost, t.Oversold, t.Duplicated, t.Stuck, t.Late, t.Untrue)
}

// Run plays all rounds, several at a time, each worker on one field, and on a new
// one after a round that failed: what is wrong may outlive its round. The error says
// that no field could be had.
func (m Matrix) Run(ctx context.Context) (Total, error) {
	programs, err := os.MkdirTemp("", "seckill-programs-")
	if err != nil {
		return m.report(nil), err
	}
	defer os.RemoveAll(programs)
	fmt.Fprintln(m.Out, "building the programs")
	if err := stack.Build(ctx, programs, true); err != nil {
		return m.report(nil), err
	}
	c := &course{Matrix: m, programs: programs, results: make([]*Result, len(m.Kinds)*m.Rounds), begun: time.Now()}
	var workers sync.WaitGroup
	errs := make([]error, max(m.Fields, 1))
	for i := range errs {
		workers.Go(func() { errs[i] = c.work(ctx) })
	}
	workers.Wait()
	var played []Result
	for _, r := range c.results {
		if r != nil {
			played = append(played, *r)
		}
	}
	return m.report(played), errors.Join(append(errs, ctx.Err())...)
}

// course is a matrix that is being played.
type course struct {
	Matrix
	programs string
	begun    time.Time

	mu         sync.Mutex
	next, done int
	results    []*Result // by kind and round; nil until it is played
}

// take is the next round to play; false if there is none.
func (c *course) take() (n int, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	n = c.next
	c.next++
	return n, n < len(c.results)
}

// work plays rounds until none is left or ctx ends.
func (c *course) work(ctx context.Context) (err error) {
	var f *Field
	defer func() {
		if f != nil {
			err = errors.Join(err, f.Close())
		}
	}()
	for ctx.Err() == nil {
		n, ok := c.take()
		if !ok {
			return nil
		}
		if f == nil {
			if f, err = Open(ctx, c.programs, c.Within); err != nil {
				return fmt.Errorf("starting servers and programs: %w", err)
			}
		}
		r := f.Play(ctx, c.Kinds[n/c.Rounds], c.Seed+uint64(n%c.Rounds))
		if ctx.Err() != nil {
			return nil // cut off in the middle; Run says so
		}
		if c.note(n, f, &r); r.lingers() {
			_ = f.Close() // processes that a failed round has left broken do not end cleanly
			f = nil
		}
	}
	return nil
}

// note prints and keeps a result.
func (c *course) note(n int, f *Field, r *Result) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.results[n] = r
	c.done++
	c.tell(r)
	if r.Failed() {
		c.keep(f, r)
	}
	c.progress(c.done, time.Since(c.begun))
}

// tell prints a round.
func (m Matrix) tell(r *Result) {
	fmt.Fprintf(m.Out, "%-31s seed %-6d %5d clicks, %4d unanswered, %4d shut out, %4d orders; sells again after %5s, at rest after %5s, took %5s",
		r.Kind, r.Seed, r.Clicks, r.Unanswered, r.Shut, r.Orders, tenths(r.Recovery), tenths(r.Settled), tenths(r.Took))
	if r.Slowest != "" {
		fmt.Fprintf(m.Out, "; slowest stored %s at %s", r.Slowest, tenths(r.Age))
	}
	if r.GivenUp > 0 {
		fmt.Fprintf(m.Out, "; %d given up", r.GivenUp)
	}
	fmt.Fprintf(m.Out, "; 202s that end in a refusal: %s\n", byReason(r.Refused))
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

// progress says how far the matrix is, and when it will be done at the pace so far.
func (m Matrix) progress(done int, took time.Duration) {
	all := len(m.Kinds) * m.Rounds
	each := took / time.Duration(done)
	fmt.Fprintf(m.Out, "  round %d of %d, %s each, %v left\n", done, all, tenths(each), (each * time.Duration(all-done)).Round(time.Second))
}

// byReason prints how many there are, and why.
func byReason(refused map[order.Reason]int) string {
	n, words := 0, []string(nil)
	for _, why := range slices.Sorted(maps.Keys(refused)) {
		n += refused[why]
		words = append(words, fmt.Sprintf("%s %d", cmp.Or(string(why), "no reason"), refused[why]))
	}
	if n == 0 {
		return "0"
	}
	return fmt.Sprintf("%d (%s)", n, strings.Join(words, ", "))
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
