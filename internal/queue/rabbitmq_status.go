package queue

import (
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"sync"
	"time"
)

var errNotConnected = errors.New("not connected yet")

// status is what Ready says. A change between well and not well is logged, once.
type status struct {
	log *slog.Logger

	mu     sync.Mutex
	err    error
	logged bool
}

func newStatus(log *slog.Logger, role string, r *rabbitMQ) *status {
	return &status{log: log.With("role", role, "broker", r.addr), err: errNotConnected}
}

func (s *status) get() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.err
}

// set changes the status. While it stays bad only the error is renewed.
func (s *status) set(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	changed := !s.logged || (err == nil) != (s.err == nil)
	s.err, s.logged = err, true
	switch {
	case !changed:
	case err == nil:
		s.log.Info("queue connected")
	default:
		s.log.Warn("queue not available, trying again for ever", "error", err)
	}
}

// end changes the status for good, without a word.
func (s *status) end(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.err = err
}

// Pauses between attempts to connect: they double, and a random part keeps a
// hundred edges from coming back in the same instant.
const (
	firstPause = 100 * time.Millisecond
	lastPause  = 5 * time.Second
)

// backoff counts pauses. The zero value is ready.
type backoff struct{ next time.Duration }

// pause returns the next pause, between half of its length and all of it;
// random is in [0,1).
func (b *backoff) pause(random float64) time.Duration {
	b.next = min(max(b.next, firstPause), lastPause)
	d := b.next/2 + time.Duration(random*float64(b.next/2))
	b.next *= 2
	return d
}

// keepOpen runs one session after another until ctx ends. A session that lived
// for long starts the pauses anew; one that broke at once does not, so that a
// broker which accepts and hangs up is not hammered.
func keepOpen(ctx context.Context, session func(context.Context) error, lost func(error)) {
	var b backoff
	for ctx.Err() == nil {
		started := time.Now()
		err := session(ctx)
		if ctx.Err() != nil {
			return
		}
		lost(err)
		if time.Since(started) > lastPause {
			b = backoff{}
		}
		timer := time.NewTimer(b.pause(rand.Float64()))
		select {
		case <-ctx.Done():
		case <-timer.C:
		}
		timer.Stop()
	}
}
