package limit

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A limit that is lowered holds at once: what was taken ahead under the old one is
// not let in under the new, and its credit is not to be paid back first.
func TestLoweredLimit(t *testing.T) {
	high, low := perSecond(20_000, 20_000), perSecond(10, 20)
	for name, flight := range map[string]time.Duration{"in hand": 0, "on credit": 20 * time.Millisecond} {
		t.Run(name, func(t *testing.T) {
			shared := newCount(high)
			var later held
			l := newEdge(high, shared.take, later.keep, shared.clock, new(LeaseStats))
			for range 300 {
				letIn(l, high, shared.clock(), 150)
				shared.pass(askGap)
				if flight == 0 {
					later.release()
				}
			}
			shared.bucket = low.bucket()
			later.release()
			let := letIn(l, low, shared.clock(), 5000)
			for range 10_000 {
				shared.pass(time.Millisecond)
				later.release()
				let += letIn(l, low, shared.clock(), 1)
			}
			require.InDelta(t, 20+10*10, let, 20)
		})
	}
}

// A count that comes and goes, as of a Redis that can hardly bear what comes, or that
// begins anew each time: one edge lets in no more than the limit says, and never
// nothing for long.
func TestComesAndGoes(t *testing.T) {
	for _, r := range []Rate{perSecond(100, 1000), perSecond(10, 20), perSecond(1, 1), perSecond(1000, 20)} {
		for _, up := range []int{1, 50, 250, 2000} {
			for _, down := range []int{1, 250, 500} {
				for _, lost := range []bool{false, true} {
					shared := newCount(r)
					l := newEdge(r, shared.take, atOnce, shared.clock, new(LeaseStats))
					let := 0
					const ms = 1000 * seconds
					for i := range ms {
						shared.pass(time.Millisecond)
						shared.err = nil
						if i%(up+down) >= up {
							shared.err = errors.New("i/o timeout")
						} else if lost && i%(up+down) == 0 {
							shared.bucket = r.bucket()
						}
						let += letIn(l, r, shared.clock(), 5)
					}
					says := r.Burst + ms/1000*r.Events
					require.LessOrEqual(t, let, says+1, "%v up %d down %d lost %v", r, up, down, lost)
					require.GreaterOrEqual(t, float64(let), 0.6*float64(says-r.Burst), "%v up %d down %d lost %v", r, up, down, lost)
				}
			}
		}
	}
}

// A moment without the count is no burst of each edge.
func TestAMomentAlone(t *testing.T) {
	const edges = 10
	r := perSecond(100, 1000)
	shared := newCount(r)
	shared.bucket.AllowN(start, r.Burst)
	var all []*edge
	for range edges {
		all = append(all, newEdge(r, shared.take, atOnce, shared.clock, new(LeaseStats)))
	}
	let := 0
	for ms := range 1000 {
		shared.pass(time.Millisecond)
		shared.err = nil
		if ms == 500 {
			shared.err = errors.New("connection reset by peer")
		}
		for _, l := range all {
			let += letIn(l, r, shared.clock(), 1)
		}
	}
	// Until they ask again they go by the limit alone.
	says := r.Events + edges*r.Events*int(askAway.Milliseconds())/1000
	require.LessOrEqual(t, let, says+3*edges*r.ahead())
}

// Whatever the demand and its pauses, several edges let in what the limit says and
// two leases each more at most.
func TestBurstsAfterPauses(t *testing.T) {
	const edges = 3
	for _, r := range []Rate{perSecond(1000, 100), perSecond(1000, 50), perSecond(10, 20), perSecond(100_000, 2000)} {
		for pause := time.Millisecond; pause < 2*time.Second; pause *= 4 {
			shared := newCount(r)
			var stats LeaseStats
			var all []*edge
			for range edges {
				all = append(all, newEdge(r, shared.take, atOnce, shared.clock, &stats))
			}
			for range 300 { // within the limit, so that each takes ahead
				shared.pass(time.Millisecond)
				for _, l := range all {
					letIn(l, r, shared.clock(), max(1, r.Events/4000))
				}
			}
			shared.pass(pause)
			let := 0
			const ms = 50
			for range ms {
				for _, l := range all {
					let += letIn(l, r, shared.clock(), r.Burst)
				}
				shared.pass(time.Millisecond)
			}
			require.LessOrEqual(t, let, r.Burst+r.Events*ms/1000+edges*2*r.ahead(), "%v %v", r, pause)
		}
	}
}

// Who comes again when he was told to is let in.
func TestWhoWaitsIsLetIn(t *testing.T) {
	for _, r := range []Rate{
		{Events: 1, Per: 10 * time.Second, Burst: 2},
		perSecond(1, 1), perSecond(1, 5), perSecond(20, 20), perSecond(1000, 1000),
		{Events: 1, Per: time.Hour, Burst: 20},
		{Events: 3, Per: time.Minute, Burst: 3},
		{Events: 7, Per: 24 * time.Hour, Burst: 1},
	} {
		shared := newCount(r)
		l := newEdge(r, shared.take, atOnce, shared.clock, new(LeaseStats))
		told := false
		for range 1000 {
			ok, wait := l.allow(r, shared.clock())
			switch {
			case ok:
				shared.pass(time.Millisecond)
			case told:
				require.Fail(t, "was to wait, and to wait again", "%v", r)
			default:
				shared.pass((wait + time.Second - 1).Truncate(time.Second))
			}
			told = !ok
		}
	}
}

// At a slow pace no more is taken than is spent, so that it is not missing
// elsewhere.
func TestNothingIsTakenAheadAtASlowPace(t *testing.T) {
	r := perSecond(10, 20)
	for _, every := range []time.Duration{600 * time.Millisecond, 1100 * time.Millisecond, time.Minute} {
		shared := newCount(r)
		taken := 0
		take := func(ctx context.Context, r Rate, n int) (Taken, error) {
			got, err := shared.take(ctx, r, n)
			taken += got.Tokens
			return got, err
		}
		l := newEdge(r, take, atOnce, shared.clock, new(LeaseStats))
		for range 300 {
			shared.pass(every)
			require.Equal(t, 1, letIn(l, r, shared.clock(), 1))
		}
		require.InDelta(t, 300, taken, 3, every)
	}
}
