// Package outage logs what fails again and again without filling the log: one line
// when an outage begins, one a minute while it lasts, one when it is over. Each
// names the error as it is. What works now and then in between is still one
// outage.
package outage

import (
	"log/slog"
	"slices"
	"sync"
	"time"
)

const (
	// RepeatEvery is how often an outage that lasts is logged.
	RepeatEvery = time.Minute
	// OverAfter is how long nothing may have failed before an outage is over.
	OverAfter = 5 * time.Second
)

// Log logs the outages of one thing. It is safe for concurrent use. Its owner notes
// each try, those that work too: an outage ends with the first success that is
// OverAfter later than the last failure.
type Log struct {
	log  *slog.Logger
	what string
	now  func() time.Time

	mu sync.Mutex
	is Outage
	// logged is when the outage was logged last.
	logged time.Time
}

// Outage is one outage. The zero value is none.
type Outage struct {
	// Since is when it was noted first, Last when it was noted last.
	Since, Last time.Time
	// Failures is the number of tries that have failed.
	Failures int
	// Err is the error of the last failure.
	Err error
}

// NewLog makes a log of the outages of what: the words in front of each line, as
// "relay" in "relay: failed; trying again and again".
func NewLog(log *slog.Logger, what string, now func() time.Time) *Log {
	return &Log{log: log, what: what, now: now}
}

// Note notes how a try has ended, nil if well. args are further fields of a line
// that this try causes.
func (l *Log) Note(err error, args ...any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.now()
	began := l.is.Failures == 0
	if err != nil {
		l.is.Failures++
		l.is.Last, l.is.Err = now, err
		if began {
			l.is.Since = now
		}
	}
	fields := func(lasted string) []any {
		return append(slices.Clip(args), "failures", l.is.Failures, lasted, now.Sub(l.is.Since).Round(time.Second))
	}
	switch {
	case err != nil && began:
		l.logged = now
		l.log.Warn(l.what+": failed; trying again and again", append(slices.Clip(args), "error", err)...)
	case err != nil && now.Sub(l.logged) >= RepeatEvery:
		l.logged = now
		l.log.Warn(l.what+": still failing", append(fields("for"), "error", err)...)
	case err == nil && !began && now.Sub(l.is.Last) >= OverAfter:
		l.log.Info(l.what+": works again", fields("after")...)
		l.is = Outage{}
	}
}

// Now is the outage that lasts; false if none does.
func (l *Log) Now() (Outage, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.is, l.is.Failures > 0
}
