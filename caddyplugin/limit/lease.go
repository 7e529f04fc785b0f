package limit

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/time/rate"
)

const (
	// askGap is the least time between two calls of one lease, askAway while they
	// fail; askTimeout bounds one.
	askGap     = 5 * time.Millisecond
	askAway    = 250 * time.Millisecond
	askTimeout = 250 * time.Millisecond
	// askDry is the most time between two calls while there is no token: the limit
	// may be raised, or its count begin anew, long before the next token was due.
	askDry = time.Second
	// aheadFor bounds a lease to what the shared limit gives all edges in this time,
	// but aheadLeast tokens may be taken in any case.
	aheadFor   = 100 * time.Millisecond
	aheadLeast = 16
	// keepFor is how long tokens are kept that nobody asks for.
	keepFor = time.Second
)

// Taken is what a call for tokens has got.
type Taken struct {
	// Tokens is how many, 0 to as many as were asked for.
	Tokens int
	// Wait is when the next one will be there, if there were fewer.
	Wait time.Duration
}

// Take asks the count that all edges share for n tokens of a limit.
type Take func(ctx context.Context, r Rate, n int) (Taken, error)

// Lease is what this edge has taken ahead of a limit that all edges share, so that
// no call waits for the count. It is safe for concurrent use. Make one with
// NewLease.
//
// Tokens are taken in the background, about twice as many as were spent since the
// last time. While they are under way calls are let in on credit, up to one lease;
// the credit is taken off what comes. Over time all edges together so let in what
// the limit says; in a moment at most one lease an edge more. When the count does
// not answer, this edge alone goes by the same limit.
type Lease struct {
	take  Take
	start func(func(context.Context)) bool
	now   func() time.Time
	stats *LeaseStats

	mu     sync.Mutex
	tokens int           // below 0: credit
	spent  int           // since the last call
	asking bool          // a call is under way
	asked  time.Time     // the last call's end
	next   time.Time     // no call before
	dry    time.Time     // there is no token until then
	alone  bool          // the count does not answer
	local  *rate.Limiter // stands in then; kept, so that a count that comes and goes gives no burst each time
}

// LeaseStats counts what becomes of the calls of leases.
type LeaseStats struct {
	// Calls for tokens, and those that failed.
	Calls, Failures atomic.Uint64
	// Alone counts what was decided without the shared count.
	Alone atomic.Uint64
}

// NewLease makes a lease that has nothing yet. start runs a function in a
// goroutine of the owner's, who waits for it and may end its context, or returns
// false if he has ended.
func NewLease(take Take, start func(func(context.Context)) bool, now func() time.Time, stats *LeaseStats) *Lease {
	return &Lease{take: take, start: start, now: now, stats: stats}
}

// allow takes a token. If there is none it says when to come back.
func (l *Lease) allow(r Rate, now time.Time) (ok bool, wait time.Duration) {
	l.mu.Lock()
	ok, wait, n := l.allowLocked(r, now)
	l.mu.Unlock()
	if n > 0 && !l.start(func(ctx context.Context) { l.ask(ctx, r, n) }) {
		l.mu.Lock()
		l.asking = false
		l.mu.Unlock()
	}
	return ok, wait
}

// allowLocked also says how many tokens to ask for now.
func (l *Lease) allowLocked(r Rate, now time.Time) (ok bool, wait time.Duration, n int) {
	ask := func(size int) int {
		if l.asking || now.Before(l.next) {
			return 0
		}
		l.asking, l.spent = true, 0
		return size
	}
	if l.alone {
		l.stats.Alone.Add(1)
		ok, wait = take(l.local, now)
		return ok, wait, ask(1)
	}
	if now.Before(l.dry) {
		return false, l.dry.Sub(now), ask(1)
	}
	most := r.ahead()
	if now.Sub(l.asked) > keepFor {
		l.tokens = min(l.tokens, 0)
	}
	if l.tokens <= -most {
		return false, askGap, ask(most - l.tokens)
	}
	l.tokens--
	l.spent++
	size := min(2*l.spent, most)
	if l.tokens >= size/2 {
		return true, 0, 0
	}
	return true, 0, ask(size - min(l.tokens, 0))
}

// ahead is the most tokens in a lease, and the most credit.
func (r Rate) ahead() int {
	few := float64(r.perSecond()) * aheadFor.Seconds()
	return min(r.Burst, max(int(few), aheadLeast))
}

// ask takes n tokens of the shared count.
func (l *Lease) ask(ctx context.Context, r Rate, n int) {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	got, err := l.take(ctx, r, n)
	l.stats.Calls.Add(1)
	now := l.now()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.asking, l.asked = false, now
	if err != nil {
		l.stats.Failures.Add(1)
		l.next = now.Add(askAway)
		if l.local == nil {
			l.local = r.bucket()
		}
		if !l.alone {
			l.tokens, l.alone = 0, true
		}
		r.adjust(l.local, now)
		return
	}
	l.alone = false
	l.next = now.Add(askGap)
	l.tokens += got.Tokens
	l.dry = time.Time{}
	if got.Tokens < n && l.tokens <= 0 {
		wait := max(got.Wait, askGap)
		l.dry, l.next = now.Add(wait), now.Add(min(wait, askDry))
	}
}

// Alone says that the shared count does not answer.
func (l *Lease) Alone() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.alone
}
