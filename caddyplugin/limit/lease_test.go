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

func letIn(l *Lease, r Rate, now time.Time, n int) (let int) {
	for range n {
		if ok, _ := l.allow(r, now); ok {
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
			var leases []*Lease
			var stats LeaseStats
			for range tc.demand {
				leases = append(leases, NewLease(shared.take, atOnce, shared.clock, &stats))
			}
			const ms = 5000
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
	l := NewLease(shared.take, later.keep, shared.clock, new(LeaseStats))
	require.Equal(t, 100, letIn(l, r, start, 1000))
	ok, wait := l.allow(r, start)
	require.False(t, ok)
	require.Equal(t, askGap, wait)
	require.Len(t, later, 1, "one call at a time")
	later.release()
	require.Equal(t, []int{3}, shared.asked, "twice the one that was spent, and the credit of that time")
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
	l := NewLease(shared.take, atOnce, shared.clock, new(LeaseStats))
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
			l := NewLease(shared.take, atOnce, shared.clock, new(LeaseStats))
			for range 8 {
				letIn(l, slow, shared.clock(), 3)
				shared.pass(askGap)
			}
			require.Zero(t, letIn(l, slow, shared.clock(), 100))
			shared.bucket = r.bucket()
			let := 0
			for range 250 {
				shared.pass(10 * time.Millisecond)
				let += letIn(l, r, shared.clock(), 1)
			}
			if r == fast {
				require.Greater(t, let, 100)
			} else {
				require.Positive(t, let, "a burst")
				require.LessOrEqual(t, let, 2, "and the credit")
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
	l := NewLease(shared.take, atOnce, shared.clock, &stats)
	let := 0
	for range 2000 {
		shared.pass(time.Millisecond)
		let += letIn(l, r, shared.clock(), 5)
	}
	require.True(t, l.Alone())
	require.InDelta(t, 50+200, let, 5)
	require.InDelta(t, 8, len(shared.asked), 1)
	require.EqualValues(t, len(shared.asked), stats.Failures.Load())
	require.Greater(t, stats.Alone.Load(), uint64(9000))

	shared.err = nil
	shared.pass(askAway)
	letIn(l, r, shared.clock(), 1)
	require.False(t, l.Alone())
	require.Positive(t, letIn(l, r, shared.clock(), 1))
}

// A count that comes and goes, as of a Redis that can hardly bear what comes, gives
// no burst each time.
func TestComesAndGoes(t *testing.T) {
	r := perSecond(100, 1000)
	shared := newCount(r)
	shared.bucket.AllowN(start, 1000) // spent
	l := NewLease(shared.take, atOnce, shared.clock, new(LeaseStats))
	let := 0
	for ms := range 10_000 {
		shared.pass(time.Millisecond)
		shared.err = nil
		if ms/500%2 == 1 {
			shared.err = errors.New("i/o timeout")
		}
		let += letIn(l, r, shared.clock(), 5)
	}
	require.LessOrEqual(t, let, 1000+2*10*100+200, "one burst, and what comes back here and there")
}

// Tokens that nobody has used for a second are not saved for a burst.
func TestOldTokensGo(t *testing.T) {
	r := perSecond(1000, 1000)
	shared := newCount(r)
	l := NewLease(shared.take, atOnce, shared.clock, new(LeaseStats))
	for range 20 {
		letIn(l, r, shared.clock(), 40)
		shared.pass(askGap)
	}
	l.mu.Lock()
	require.Positive(t, l.tokens)
	l.mu.Unlock()
	shared.pass(keepFor + time.Millisecond)
	l.start = func(func(context.Context)) bool { return false } // its owner has ended
	require.Equal(t, r.ahead(), letIn(l, r, shared.clock(), 1000), "what is left is credit")
}

func TestLeaseConcurrently(t *testing.T) {
	r := perSecond(1_000_000, 2000)
	shared := newCount(r)
	var owner sync.WaitGroup
	l := NewLease(shared.take, func(f func(context.Context)) bool {
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
