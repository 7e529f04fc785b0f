// Package duty runs what a backend does again and again, pass after pass, so that
// one bad pass ends neither the process nor the duty, and an outage does not fill
// the log: it is told of when it begins, once a minute while it lasts, and when it
// is over.
package duty

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"
)

const (
	// tellEvery is how often a failure that lasts is told of.
	tellEvery = time.Minute
	// calm is how long nothing may have failed before an outage is over: what fails
	// every other time has one outage, not hundreds.
	calm = 5 * time.Second
)

// Counter counts passes that have panicked, by duty.
type Counter interface{ Panicked(duty string) }

// Log tells of passes. It is safe for concurrent use.
type Log struct {
	log     *slog.Logger
	counter Counter
	now     func() time.Time

	mu      sync.Mutex
	outages map[outageOf]*outage
}

// outageOf is a duty, or a part of it, such as one product's.
type outageOf struct{ duty, part string }

type outage struct {
	since, last, told time.Time
	failures          int
}

// NewLog makes a log of duties.
func NewLog(log *slog.Logger, counter Counter, now func() time.Time) *Log {
	return &Log{log: log, counter: counter, now: now, outages: map[outageOf]*outage{}}
}

// Pass runs one pass of a duty and tells of its end. A panic is an error too,
// *PanicError. What fails because ctx has ended is nobody's failure. The error is the
// pass's.
func (l *Log) Pass(ctx context.Context, duty string, pass func() error) error {
	err := Safely(pass)
	l.Tell(ctx, duty, "", err)
	return err
}

// Panicked counts and logs the *PanicError in err, and says whether there is one. args are
// further fields of the log.
func (l *Log) Panicked(duty string, err error, args ...any) bool {
	p, ok := errors.AsType[*PanicError](err)
	if ok {
		l.counter.Panicked(duty)
		l.log.Error(duty+": a mistake of this program, please report it; work goes on", append(args, "panic", p.Value, "stack", p.Stack)...)
	}
	return ok
}

// Tell notes how a pass of a duty has ended, nil if well. part, if not empty, is
// what of the duty it was about, such as a product. A *PanicError among the errors is
// counted, and logged with its stack each time: it is a mistake of this program.
func (l *Log) Tell(ctx context.Context, duty, part string, err error) {
	var args []any
	if part != "" {
		args = append(args, "product", part)
	}
	l.Panicked(duty, err, args...)
	if err != nil && ctx.Err() != nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	of, now := outageOf{duty, part}, l.now()
	o := l.outages[of]
	switch {
	case err != nil && o == nil:
		l.outages[of] = &outage{since: now, last: now, told: now, failures: 1}
		l.log.Warn(duty+": failed; trying again and again", append(args, "error", err)...)
	case err != nil:
		o.failures++
		o.last = now
		if now.Sub(o.told) >= tellEvery {
			o.told = now
			l.log.Warn(duty+": still failing", append(args, "failures", o.failures, "for", now.Sub(o.since).Round(time.Second), "error", err)...)
		}
	case o != nil && now.Sub(o.last) >= calm:
		delete(l.outages, of)
		l.log.Info(duty+": works again", append(args, "failures", o.failures, "after", now.Sub(o.since).Round(time.Second))...)
	}
}
