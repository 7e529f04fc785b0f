package queue

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"

	amqp "github.com/rabbitmq/amqp091-go"
)

// lanes is the number of channels of a publishing connection. A quorum queue slows
// a channel down that has more than 32 messages unconfirmed.
const lanes = 4

// publishSession is one connection with its lanes.
type publishSession struct {
	conn    *connection
	log     *slog.Logger
	lanes   []*lane
	next    atomic.Uint32
	blocks  chan amqp.Blocking
	blocked atomic.Pointer[string] // the broker's reason, nil while it takes messages

	over   chan struct{} // closed when the session takes no more messages
	fail   func(error)   // ends the session; the first error counts
	failed error         // read after over is closed
	owned  sync.WaitGroup
}

func newPublishSession(conn *connection, log *slog.Logger) *publishSession {
	// Room for some changes, because the library waits up to 5 s for a listener.
	s := &publishSession{conn: conn, log: log, over: make(chan struct{}), blocks: make(chan amqp.Blocking, 16)}
	var once sync.Once
	s.fail = func(err error) {
		once.Do(func() {
			s.failed = err
			close(s.over)
		})
	}
	conn.NotifyBlocked(s.blocks)
	return s
}

func (s *publishSession) openLanes() error {
	for range lanes {
		l, err := openLane(s)
		if err != nil {
			return err
		}
		s.lanes = append(s.lanes, l)
		s.owned.Go(l.write)
		s.owned.Go(l.collect)
	}
	return nil
}

func (s *publishSession) blockedErr() error {
	if why := s.blocked.Load(); why != nil {
		return fmt.Errorf("%w: %s", ErrBlocked, *why)
	}
	return nil
}

// frame is the largest frame that both sides have agreed on.
func (s *publishSession) frame() int {
	if agreed := s.conn.Config.FrameSize; agreed > 0 {
		return agreed
	}
	return defaultFrame
}

// publish waits for the outcome or the end of ctx.
func (s *publishSession) publish(ctx context.Context, to Target, m Message) error {
	if err := s.blockedErr(); err != nil {
		return fmt.Errorf("%w: %w", ErrNotSent, err)
	}
	if err := carries(m, s.frame()); err != nil {
		return err
	}
	job := outgoing{to: to, message: publishing(m), outcome: make(chan error, 1)}
	l := s.lanes[s.next.Add(1)%lanes]
	select {
	case l.in <- job:
	case <-s.over:
		return fmt.Errorf("%w: %w", ErrNotSent, s.failed)
	case <-ctx.Done():
		return fmt.Errorf("%w: no room among the unconfirmed: %w", ErrNotSent, context.Cause(ctx))
	}
	select {
	case err := <-job.outcome:
		return err
	case <-ctx.Done():
		return fmt.Errorf("%w: %w", ErrUnknown, context.Cause(ctx))
	}
}

// watch returns why the session cannot go on.
func (s *publishSession) watch(ctx context.Context) error {
	for {
		select {
		case <-ctx.Done():
			s.fail(ErrClosed)
		case err := <-s.conn.closed:
			s.fail(closeReason(err))
		case <-s.over:
			return s.failed
		case b, open := <-s.blocks:
			if open {
				s.block(b)
			} else {
				s.blocks = nil
			}
		}
	}
}

func (s *publishSession) block(b amqp.Blocking) {
	if b.Active {
		s.blocked.Store(&b.Reason)
		s.log.Warn("queue takes no messages now", "reason", b.Reason)
		return
	}
	s.blocked.Store(nil)
	s.log.Info("queue takes messages again")
}

// end closes the connection and waits for the lanes. What is unconfirmed then
// gets ErrUnknown.
func (s *publishSession) end() {
	s.fail(ErrClosed)
	s.conn.close()
	s.owned.Wait()
}

func closeReason(err *amqp.Error) error {
	if err == nil { // the library closes the channel without a word
		return errors.New("the connection was closed")
	}
	return err
}
