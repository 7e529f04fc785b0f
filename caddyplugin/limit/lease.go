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
	// quickFor is how long ago the last call may be for tokens to be taken ahead: at a
	// slower pace they would lie here, and be missing elsewhere.
	quickFor = time.Second
	// aloneFor is how long a failed call shows. As long as there is anything to decide
	// there is another one after askAway and askTimeout.
	aloneFor = 2 * time.Second
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
// Tokens are taken in the background, up to twice as many as were spent since the
// last time. While they are under way calls are let in on credit, up to one lease;
// the credit is taken off what comes. Over time all edges together so let in what
// the limit says; in a moment at most two leases an edge more.
//
// Whatever becomes of the count, which may stop to answer, come and go, or begin
// anew: no edge lets in more by itself than the limit says. Every call takes a token
// of a bucket of this edge's, too; when the count does not answer, of nothing else.
type Lease struct {
	take  Take
	start func(func(context.Context)) bool
	now   func() time.Time
	stats *LeaseStats

	mu     sync.Mutex
	tokens int       // below 0: credit
	spent  int       // since the last call
	asking bool      // a call is under way
	asked  time.Time // the last call's end
	next   time.Time // no call before
	dry    time.Time // there is no token until then, and one then; zero: not known
	alone  bool      // the count does not answer
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

// allow takes a token, of own, too, which is this edge's own bucket of the same
// rate. If there is none it says when to come back.
func (l *Lease) allow(r Rate, own *rate.Limiter, now time.Time) (ok bool, wait time.Duration) {
	l.mu.Lock()
	ok, wait, n := l.allowLocked(r, own, now)
	l.mu.Unlock()
	if n > 0 && !l.start(func(ctx context.Context) { l.ask(ctx, r, own, n) }) {
		l.mu.Lock()
		l.asking = false
		l.mu.Unlock()
	}
	return ok, wait
}

// allowLocked also says how many tokens to ask for now.
func (l *Lease) allowLocked(r Rate, own *rate.Limiter, now time.Time) (ok bool, wait time.Duration, n int) {
	// Both bounds may have been others when the tokens came or the credit was given.
	most := r.ahead()
	l.tokens = max(-most-1, min(l.tokens, most))
	credit := most
	if !l.dry.IsZero() {
		credit++ // one token is there by then: the count has said so
	}
	switch {
	case l.alone:
		l.stats.Alone.Add(1)
		ok, wait = take(own, now)
		return ok, wait, l.wantLocked(1, now)
	case now.Before(l.dry):
		return false, max(l.dry.Sub(now), lack(own, now)), l.wantLocked(1, now)
	case l.tokens <= -credit:
		return false, max(askGap, lack(own, now)), l.wantLocked(most-l.tokens, now)
	}
	if ok, wait = take(own, now); !ok {
		return false, wait, 0
	}
	l.tokens--
	l.spent++
	ahead := 0
	if now.Sub(l.asked) <= quickFor {
		ahead = min(2*l.spent, most)
	}
	if l.tokens >= ahead/2 {
		return true, 0, 0
	}
	return true, 0, l.wantLocked(ahead-l.tokens, now)
}

// wantLocked returns n, the tokens to ask for, or 0 if it is not the time to ask.
func (l *Lease) wantLocked(n int, now time.Time) int {
	if l.asking || now.Before(l.next) {
		return 0
	}
	l.asking, l.spent = true, 0
	return n
}

// ahead is the most tokens in a lease, and the most credit.
func (r Rate) ahead() int {
	few := float64(r.perSecond()) * aheadFor.Seconds()
	return min(r.Burst, max(int(few), aheadLeast))
}

// ask takes n tokens of the shared count. When the edges cease to count together each
// begins with one lease: a moment without Redis is to be no burst of each of them.
func (l *Lease) ask(ctx context.Context, r Rate, own *rate.Limiter, n int) {
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
		if over := int(own.TokensAt(now)) - r.ahead(); over > 0 && !l.alone {
			own.AllowN(now, over)
		}
		l.alone = true
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

// Alone says that the shared count does not answer, and that somebody has asked
// lately.
func (l *Lease) Alone(now time.Time) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.alone && now.Sub(l.asked) <= aloneFor
}
