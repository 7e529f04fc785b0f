package queue

import (
	"errors"
	"fmt"
	"strconv"

	amqp "github.com/rabbitmq/amqp091-go"
)

// window is how many messages of one lane may be unconfirmed. The library walks
// all of them for every confirmation of many.
const window = 256

// lane is one AMQP channel in confirm mode with two goroutines: one writes, so
// that no caller of Publish hangs in a socket; one waits for confirmations in
// the order of writing.
type lane struct {
	session *publishSession
	ch      *amqp.Channel
	closed  chan *amqp.Error
	returns chan amqp.Return

	in          chan outgoing // unbuffered: what is taken is written
	unconfirmed chan written
}

// outgoing is one call of Publish.
type outgoing struct {
	to      Target
	message amqp.Publishing
	outcome chan error // takes one without blocking
}

type written struct {
	confirmation *amqp.DeferredConfirmation
	outcome      chan error
}

func openLane(s *publishSession) (*lane, error) {
	ch, err := s.conn.Channel()
	if err != nil {
		return nil, err
	}
	if err := ch.Confirm(false); err != nil {
		return nil, err
	}
	l := &lane{
		session: s, ch: ch,
		closed: make(chan *amqp.Error, 1),
		// A returned message is unconfirmed: in the channel, or one in the hand of
		// either goroutine. With room for all of them the library's reader never
		// waits and never drops one.
		returns:     make(chan amqp.Return, window+2),
		in:          make(chan outgoing),
		unconfirmed: make(chan written, window),
	}
	ch.NotifyClose(l.closed)
	ch.NotifyReturn(l.returns)
	return l, nil
}

// write ends with the session.
func (l *lane) write() {
	defer close(l.unconfirmed)
	for tag := uint64(1); ; {
		select {
		case <-l.session.over:
			return
		case err := <-l.closed:
			l.session.fail(closeReason(err))
			return
		case job := <-l.in:
			if l.send(job, tag) {
				tag++
			}
		}
	}
}

// send says whether the message took tag, the number that the broker confirms it
// by.
func (l *lane) send(job outgoing, tag uint64) bool {
	if err := l.session.blockedErr(); err != nil {
		job.outcome <- fmt.Errorf("%w: %w", ErrNotSent, err)
		return false
	}
	job.message.CorrelationId = strconv.FormatUint(tag, 10)
	c, err := l.ch.PublishWithDeferredConfirm(exchange, string(job.to), true, false, job.message)
	switch {
	case err == nil:
		l.unconfirmed <- written{c, job.outcome}
		return true
	case errors.Is(err, amqp.ErrClosed): // found closed before its last frame
		job.outcome <- fmt.Errorf("%w: %w", ErrNotSent, err)
	default:
		job.outcome <- fmt.Errorf("%w: %w", ErrUnknown, err)
	}
	// After a failed write nothing can follow on this connection, and the library
	// does not always notice by itself.
	l.session.fail(err)
	return false
}

// collect ends when write has ended and everything is resolved, which closing
// the channel does. RabbitMQ returns a message before it confirms it, and the
// library's one reader puts the return into returns before it resolves the
// confirmation. So after a confirmation its return, if any, is there to be
// found; only this goroutine reads returns.
func (l *lane) collect() {
	returned := map[string]amqp.Return{}
	for w := range l.unconfirmed {
		acked := w.confirmation.Wait()
		l.takeReturns(returned)
		key := strconv.FormatUint(w.confirmation.DeliveryTag, 10)
		back, unrouted := returned[key]
		delete(returned, key)
		switch {
		case unrouted && acked:
			w.outcome <- fmt.Errorf("%w: exchange %s, key %s: %s", ErrUnrouted, back.Exchange, back.RoutingKey, back.ReplyText)
		case acked:
			w.outcome <- nil
		default:
			w.outcome <- fmt.Errorf("%w: refused by the broker, or the connection was lost", ErrUnknown)
		}
	}
}

func (l *lane) takeReturns(into map[string]amqp.Return) {
	for {
		select {
		case r, open := <-l.returns:
			if !open {
				l.returns = nil // the channel is closed
				return
			}
			into[r.CorrelationId] = r
		default:
			return
		}
	}
}
