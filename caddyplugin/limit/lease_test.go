package limit

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/time/rate"
)

// count is a shared count under the test's control.
type count struct {
	mu     sync.Mutex
	now    time.Time
	bucket *rate.Limiter
	err    error
	asked  []int
}

func newCount(r Rate) *count { return &count{now: start, bucket: r.bucket()} }

func (c *count) clock() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *count) pass(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

func (c *count) take(_ context.Context, _ Rate, n int) (Taken, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.asked = append(c.asked, n)
	if c.err != nil {
		return Taken{}, c.err
	}
	got := max(0, min(n, int(c.bucket.TokensAt(c.now))))
	c.bucket.AllowN(c.now, got)
	t := Taken{Tokens: got}
	if got < n {
		t.Wait = time.Duration((1 - c.bucket.TokensAt(c.now)) / float64(c.bucket.Limit()) * float64(time.Second))
	}
	return t, nil
}

// atOnce runs what an owner would run in a goroutine; held keeps it for later.
func atOnce(f func(context.Context)) bool { f(context.Background()); return true }

type held []func(context.Context)

func (h *held) keep(f func(context.Context)) bool { *h = append(*h, f); return true }

func (h *held) release() {
	todo := *h
	*h = nil
	for _, f := range todo {
		f(context.Background())
	}
}

// edge is a lease with its own bucket, as Limits keep it.
type edge struct {
	*Lease
	own *rate.Limiter
}

func newEdge(r Rate, take Take, start func(func(context.Context)) bool, now func() time.Time, stats *LeaseStats) *edge {
	return &edge{Lease: NewLease(take, start, now, stats), own: r.bucket()}
}

func (e *edge) allow(r Rate, now time.Time) (ok bool, wait time.Duration) {
	r.adjust(e.own, now)
	return e.Lease.allow(r, e.own, now)
}

func letIn(e *edge, r Rate, now time.Time, n int) (let int) {
	for range n {
		if ok, _ := e.allow(r, now); ok {
			let++
		}
	}
	return let
}

// Whatever the demand, edges together let in what the limit says, and a burst and
// the credit at first.
func TestLeasesLetInWhatTheLimitSays(t *testing.T) {
	for name, tc := range map[string]struct {
		rate   Rate
		demand []int // calls of each edge in a millisecond
	}{
		"one edge":       {perSecond(5000, 5000), []int{20}},
		"three":          {perSecond(5000, 1000), []int{20, 10, 1}},
		"small":          {perSecond(50, 10), []int{1, 1}},
		"small burst":    {perSecond(20_000, 400), []int{30, 30}},
		"within":         {perSecond(20_000, 20_000), []int{3, 1}},
		"a busy machine": {perSecond(100_000, 50_000), []int{300, 300, 300}},
	} {
		t.Run(name, func(t *testing.T) {
			shared := newCount(tc.rate)
			var leases []*edge
			var stats LeaseStats
			for range tc.demand {
				leases = append(leases, newEdge(tc.rate, shared.take, atOnce, shared.clock, &stats))
			}
			const ms = 1000 * seconds
			let, asked := 0, 0
			for range ms {
				shared.pass(time.Millisecond)
				for i, l := range leases {
					asked += tc.demand[i]
					let += letIn(l, tc.rate, shared.clock(), tc.demand[i])
				}
			}
			gives := tc.rate.Burst + ms/1000*tc.rate.Events
			require.LessOrEqual(t, let, min(asked, gives+len(leases)*tc.rate.ahead()))
			// What is kept ahead by one is missing for the others; no more.
			require.GreaterOrEqual(t, float64(let), 0.9*float64(min(asked, gives)))
			require.LessOrEqual(t, stats.Calls.Load(), uint64(len(leases)*ms/5+len(leases)), "no more than one in 5 ms")
			require.Zero(t, stats.Alone.Load())
		})
	}
}

// No call waits: while tokens are under way, one lease is let in on credit, which
// is taken off what comes.
func TestCredit(t *testing.T) {
	r := perSecond(1000, 500) // ahead: 100
	shared := newCount(r)
	var later held
	l := newEdge(r, shared.take, later.keep, shared.clock, new(LeaseStats))
	require.Equal(t, 100, letIn(l, r, start, 1000))
	ok, wait := l.allow(r, start)
	require.False(t, ok)
	require.Equal(t, askGap, wait)
	require.Len(t, later, 1, "one call at a time")
	later.release()
	require.Equal(t, []int{1}, shared.asked, "the credit of that time, and nothing ahead yet")
	shared.pass(askGap)
	l.allow(r, shared.clock())
	later.release()
	require.Greater(t, shared.asked[1], 100, "the credit is asked for, and more for those to come")
	require.InDelta(t, 100, letIn(l, r, shared.clock(), 1000)-100, 100)
}

// With the limit used up, calls are refused without asking until a token is there.
func TestDry(t *testing.T) {
	r := Rate{Events: 1, Per: 10 * time.Second, Burst: 2}
	shared := newCount(r)
	l := newEdge(r, shared.take, atOnce, shared.clock, new(LeaseStats))
	let := 0
	for range 8 {
		let += letIn(l, r, shared.clock(), 3)
		shared.pass(askGap)
	}
	require.LessOrEqual(t, let, 2+2, "the burst, and the credit")
	calls := len(shared.asked)
	ok, wait := l.allow(r, shared.clock())
	require.False(t, ok)
	require.Greater(t, wait, 5*time.Second)
	require.Len(t, shared.asked, calls)
	for range 600 {
		shared.pass(100 * time.Millisecond)
		let += letIn(l, r, shared.clock(), 1)
	}
	require.InDelta(t, 2+6, let, 2)
}

// Who was to wait for a day need not, once the limit is raised or Redis has lost its
// count.
func TestDryNoLongerThanTheLimit(t *testing.T) {
	slow, fast := Rate{Events: 1, Per: 24 * time.Hour, Burst: 1}, perSecond(1000, 1000)
	for name, r := range map[string]Rate{"raised": fast, "forgotten": slow} {
		t.Run(name, func(t *testing.T) {
			shared := newCount(slow)
			l := newEdge(slow, shared.take, atOnce, shared.clock, new(LeaseStats))
			shared.bucket.AllowN(start, 1) // another edge has it
			l.tokens, l.own = -1, slow.bucket()
			for range 8 {
				letIn(l, slow, shared.clock(), 3)
				shared.pass(askGap)
			}
			require.Zero(t, letIn(l, slow, shared.clock(), 100))
			shared.bucket, l.own = r.bucket(), r.bucket()
			let := 0
			for range 250 {
				shared.pass(10 * time.Millisecond)
				let += letIn(l, r, shared.clock(), 1)
			}
			if r == fast {
				require.Greater(t, let, 100)
			} else {
				require.Equal(t, 1, let, "a burst")
			}
		})
	}
}

// When the count does not answer, the edge goes by the limit alone, asks four
// times a second, and returns to the count when it answers.
func TestAlone(t *testing.T) {
	r := perSecond(100, 50)
	shared := newCount(r)
	shared.err = errors.New("connection refused")
	var stats LeaseStats
	l := newEdge(r, shared.take, atOnce, shared.clock, &stats)
	let := 0
	for range 2000 {
		shared.pass(time.Millisecond)
		let += letIn(l, r, shared.clock(), 5)
	}
	require.True(t, l.Alone(shared.clock()))
	require.InDelta(t, 16+200, let, 5)
	require.InDelta(t, 8, len(shared.asked), 1)
	require.EqualValues(t, len(shared.asked), stats.Failures.Load())
	require.Greater(t, stats.Alone.Load(), uint64(9000))

	shared.err = nil
	shared.pass(askAway)
	letIn(l, r, shared.clock(), 1)
	require.False(t, l.Alone(shared.clock()))
	require.Positive(t, letIn(l, r, shared.clock(), 1))
}

// A failed call shows as long as anybody asks, and not until the next sale.
func TestAloneIsOver(t *testing.T) {
	r := perSecond(100, 50)
	shared := newCount(r)
	shared.err = errors.New("connection refused")
	l := newEdge(r, shared.take, atOnce, shared.clock, new(LeaseStats))
	letIn(l, r, shared.clock(), 1)
	require.True(t, l.Alone(shared.clock()))
	shared.pass(time.Minute)
	require.False(t, l.Alone(shared.clock()))
	letIn(l, r, shared.clock(), 1)
	require.True(t, l.Alone(shared.clock()))
}

func TestLeaseConcurrently(t *testing.T) {
	r := perSecond(1_000_000, 2000)
	shared := newCount(r)
	var owner sync.WaitGroup
	l := newEdge(r, shared.take, func(f func(context.Context)) bool {
		owner.Go(func() { f(context.Background()) })
		return true
	}, shared.clock, new(LeaseStats))
	var calls sync.WaitGroup
	let := make([]int, 8)
	for i := range let {
		calls.Go(func() {
			for range 1000 {
				shared.pass(time.Microsecond)
				let[i] += letIn(l, r, shared.clock(), 1)
			}
		})
	}
	calls.Wait()
	owner.Wait()
	sum := 0
	for _, n := range let {
		sum += n
	}
	require.LessOrEqual(t, sum, 2000+8000+r.ahead())
	require.Positive(t, sum)
}
