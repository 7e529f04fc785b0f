// Package lease lets one of many processes do a job, by a key in Redis that
// expires unless it is renewed. A lease is a promise about who works, not about
// what was written: a holder that was frozen for longer than the lease lasts
// wakes up after somebody else has taken over. Work done under it must bear
// being done twice, or carry the fencing token to where it is checked.
package lease

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/seckill-edge/seckill/backend/duty"
	"github.com/seckill-edge/seckill/lua"
)

//go:embed acquire.lua
var acquireSource string

//go:embed renew.lua
var renewSource string

//go:embed release.lua
var releaseSource string

var (
	acquireScript = redis.NewScript(acquireSource)
	renewScript   = redis.NewScript(renewSource)
	releaseScript = redis.NewScript(releaseSource)
)

// ErrTaken: somebody else holds the lease.
var ErrTaken = errors.New("lease is held by somebody else")

// errLost ends the work of a holder whose lease could not be renewed.
var errLost = errors.New("lease lost")

// Lease is one job that one process at a time may do. It is safe for
// concurrent use as long as Run is called once.
type Lease struct {
	redis  redis.UniversalClient
	name   string
	keys   []string
	ttl    time.Duration
	token  string
	log    *slog.Logger
	passes *duty.Log
}

// New makes the lease called name, which nobody holds until Run. A holder that
// dies is replaced after ttl at the latest; ttl must be at least 100 ms. It
// fails only if random fails.
func New(client redis.UniversalClient, name string, ttl time.Duration, random io.Reader, log *slog.Logger) (*Lease, error) {
	var raw [16]byte
	if _, err := io.ReadFull(random, raw[:]); err != nil {
		return nil, fmt.Errorf("reading randomness for the lease %q: %w", name, err)
	}
	return &Lease{
		redis: client,
		name:  name,
		// One hash tag, so that a cluster keeps both keys together.
		keys:  []string{"seckill:lease:{" + name + "}", "seckill:lease:{" + name + "}:fence"},
		ttl:   max(ttl, 100*time.Millisecond),
		token: fmt.Sprintf("%x", raw),
		log:   log,
		// It calls nothing that may panic; work's panics are its owner's.
		passes: duty.NewLog(log, nil, time.Now),
	}, nil
}

// Run waits for the lease, again and again, and calls work while it is held.
// The context of work ends when the lease is lost or ctx ends; the lease is
// given back when work returns. fence rises with every new holder. Run returns
// when ctx has ended and work has returned.
func (l *Lease) Run(ctx context.Context, work func(ctx context.Context, fence int64)) {
	for ctx.Err() == nil {
		asked := time.Now()
		fence, err := l.acquire(ctx)
		switch {
		case err == nil || errors.Is(err, ErrTaken):
			l.passes.Tell(ctx, duty.Lease, "", nil)
		default:
			l.passes.Tell(ctx, duty.Lease, "", lua.Forbidden(ctx, l.redis, err))
		}
		if err == nil {
			l.hold(ctx, asked, fence, work)
			continue
		}
		if errors.Is(err, ErrTaken) {
			wait(ctx, l.ttl/3)
		} else {
			// A Redis that comes back has waited for its backend long enough.
			wait(ctx, l.ttl/20)
		}
	}
}

// hold works until work returns or the lease is lost. since is a moment at which
// the lease was certainly not older than now: the time before it was asked for.
func (l *Lease) hold(ctx context.Context, since time.Time, fence int64, work func(context.Context, int64)) {
	l.log.Info("lease taken", "lease", l.name, "fence", fence)
	working, lost := context.WithCancelCause(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		work(working, fence)
	}()
	l.keep(ctx, since, lost, done)
	<-done
	lost(nil)
	// The next holder must not wait for the lease to run out.
	giveBack, cancel := context.WithTimeout(context.WithoutCancel(ctx), l.ttl/3)
	defer cancel()
	if err := releaseScript.Run(giveBack, l.redis, l.keys[:1], l.token).Err(); err != nil {
		l.log.Warn("lease not given back; it runs out by itself", "lease", l.name, "error", err)
	}
}

// keep renews until the work is done. It ends the work a third of the lease
// before Redis would, so that two holders never overlap while clocks run.
func (l *Lease) keep(ctx context.Context, since time.Time, lost context.CancelCauseFunc, done <-chan struct{}) {
	tick := time.NewTicker(l.ttl / 6)
	defer tick.Stop()
	for {
		select {
		case <-done:
			return
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		asked := time.Now()
		kept, err := l.renew(ctx)
		switch {
		case err == nil && kept:
			since = asked
			l.passes.Tell(ctx, duty.Lease, "", nil)
		case err == nil:
			l.log.Warn("lease lost: somebody else has it", "lease", l.name)
			lost(errLost)
			return
		case time.Since(since) > l.ttl*2/3-l.ttl/6:
			l.log.Warn("lease given up: it could not be renewed", "lease", l.name, "error", err)
			lost(errLost)
			return
		}
	}
}

func (l *Lease) acquire(ctx context.Context) (int64, error) {
	ctx, cancel := context.WithTimeout(ctx, l.ttl/3)
	defer cancel()
	fence, err := acquireScript.Run(ctx, l.redis, l.keys, l.token, l.ttl.Milliseconds()).Int64()
	if err != nil {
		return 0, fmt.Errorf("asking Redis for the lease %q: %w", l.name, err)
	}
	if fence == 0 {
		return 0, ErrTaken
	}
	return fence, nil
}

func (l *Lease) renew(ctx context.Context) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, l.ttl/6)
	defer cancel()
	kept, err := renewScript.Run(ctx, l.redis, l.keys[:1], l.token, l.ttl.Milliseconds()).Int64()
	return kept == 1, err
}

func wait(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}
