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

	"github.com/seckill-edge/seckill/internal/outage"
)

// Counter counts passes that have panicked, by duty.
type Counter interface{ Panicked(duty string) }

// Log tells of passes. It is safe for concurrent use.
type Log struct {
	log     *slog.Logger
	counter Counter
	now     func() time.Time

	mu      sync.Mutex
	outages map[outageOf]*outage.Log
}

// outageOf is a duty, or a part of it, such as one product's.
type outageOf struct {
	duty Name
	part string
}

// NewLog makes a log of duties.
func NewLog(log *slog.Logger, counter Counter, now func() time.Time) *Log {
	return &Log{log: log, counter: counter, now: now, outages: map[outageOf]*outage.Log{}}
}

// Pass runs one pass of a duty and tells of its end. A panic is an error too,
// *PanicError. What fails because ctx has ended is nobody's failure. The error is the
// pass's.
func (l *Log) Pass(ctx context.Context, duty Name, pass func() error) error {
	err := Safely(pass)
	l.Tell(ctx, duty, "", err)
	return err
}

// Panicked counts and logs the *PanicError in err, and says whether there is one. args are
// further fields of the log.
func (l *Log) Panicked(duty Name, err error, args ...any) bool {
	p, ok := errors.AsType[*PanicError](err)
	if ok {
		l.counter.Panicked(duty.text)
		l.log.Error(duty.text+": a mistake of this program, please report it; work goes on", append(args, "panic", p.Value, "stack", p.Stack)...)
	}
	return ok
}

// Tell notes how a pass of a duty has ended, nil if well. part, if not empty, is
// what of the duty it was about, such as a product. A *PanicError among the errors is
// counted, and logged with its stack each time: it is a mistake of this program.
func (l *Log) Tell(ctx context.Context, duty Name, part string, err error) {
	var args []any
	if part != "" {
		args = append(args, "product", part)
	}
	l.Panicked(duty, err, args...)
	if err != nil && ctx.Err() != nil {
		return
	}
	if o := l.outage(outageOf{duty, part}, err != nil); o != nil {
		o.Note(err, args...)
	}
}

// outage is the log of a duty's part; nil if it has never failed, unless it is to
// begin.
func (l *Log) outage(of outageOf, begin bool) *outage.Log {
	l.mu.Lock()
	defer l.mu.Unlock()
	o := l.outages[of]
	if o == nil && begin {
		o = outage.NewLog(l.log, of.duty.text, l.now)
		l.outages[of] = o
	}
	return o
}
