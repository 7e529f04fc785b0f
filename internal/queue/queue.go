// Package queue carries messages from the edges to the backend. Two small
// interfaces, Publisher and Consumer, stand before two brokers: RabbitMQ for
// production and an in-memory one for a process that needs nothing installed.
// Both pass one contract suite (contract_test.go).
//
// Delivery is at least once: a message that was confirmed is delivered until it
// is acknowledged, so consumers must be idempotent.
package queue

import (
	"bytes"
	"context"
	"errors"
	"maps"
	"time"
)

// Message is what travels. ID is for people and logs; brokers do not
// deduplicate by it.
type Message struct {
	ID      string
	Body    []byte
	Headers map[string]string
}

// copyOf shares nothing with m, so that callers may reuse their buffers.
func copyOf(m Message) Message {
	return Message{ID: m.ID, Body: bytes.Clone(m.Body), Headers: maps.Clone(m.Headers)}
}

// Headers that this package and the backend set.
const (
	// HeaderAttempt counts failed deliveries, "1" after the first.
	HeaderAttempt = "x-attempt"
	// HeaderReason says why a message is among the dead letters.
	HeaderReason = "x-reason"
)

// Target is one of the three places of the topology a message can be sent to.
type Target string

const (
	// Orders is the work queue that consumers read.
	Orders Target = "orders"
	// Retry delays a message by RetryDelay, then it is in Orders again.
	Retry Target = "retry"
	// Dead keeps messages that are wrong in themselves until somebody looks.
	Dead Target = "dead"
)

func (t Target) known() bool { return t == Orders || t == Retry || t == Dead || t == probe }

// RetryDelay is how long a message sent to Retry waits.
const RetryDelay = 5 * time.Second

// Errors of Publish. What is none of these is wrapped in one of them.
var (
	// ErrNotSent: the broker has certainly not got the message (no connection,
	// the connection is blocked by the broker, the publisher is closed).
	ErrNotSent = errors.New("message was not sent")
	// ErrUnrouted: the broker answered that no queue takes it.
	ErrUnrouted = errors.New("message was not routed to any queue")
	// ErrUnknown: sent, but neither confirmed nor refused for sure (nack, closed
	// channel, time-out). Publish it again under the same ids.
	ErrUnknown = errors.New("message was sent but not confirmed")
	// ErrFull: the bounded queue in memory has no room.
	ErrFull = errors.New("queue is full")
	// ErrStale: the delivery belongs to a session that has ended; the broker
	// delivers it again.
	ErrStale = errors.New("delivery is stale: its session has ended")
	// ErrClosed: used after Close.
	ErrClosed = errors.New("queue is closed")
)

// Publisher sends messages. It is safe for concurrent use: the number of calls
// in flight is the confirm window. It connects by itself, in the background and
// for ever, and declares the topology.
type Publisher interface {
	// Publish returns nil once the broker has confirmed the message and routed
	// it to a queue. It never blocks longer than ctx or the publisher's own
	// confirm time-out, and keeps nothing of m. An error says what is known, see
	// ErrNotSent and others.
	Publish(ctx context.Context, to Target, m Message) error
	// Ready is nil while messages can be sent, else it says why not.
	Ready() error
	// Close waits for calls in flight until ctx ends, then closes the
	// connection. Later calls return ErrClosed wrapped in ErrNotSent.
	Close(ctx context.Context) error
}

// Consumer receives the messages of Orders.
type Consumer interface {
	// Consume delivers into out until ctx ends, then returns nil after the
	// session is closed. It reconnects by itself, for ever, with backoff. At
	// most the prefetch count of messages is out unacknowledged. Unacknowledged
	// messages of an ended session are delivered again. Give out a buffer of about
	// the prefetch count: who gathers what waits gets one at a time otherwise. One
	// call at a time.
	Consume(ctx context.Context, out chan<- Delivery) error
	// Ready is nil while connected and consuming, else it says why not.
	Ready() error
}

// Delivery is one message handed to a consumer. Exactly one of Ack and Requeue
// must be called, once; both may be called from any goroutine.
type Delivery interface {
	Message() Message
	// Redelivered says that the broker may have delivered it before.
	Redelivered() bool
	// Ack removes the message from the broker. ErrStale if its session ended.
	Ack() error
	// Requeue gives it back for another delivery.
	Requeue() error
}

// Inspector reads what a broker holds.
type Inspector interface {
	// Depth is the number of messages waiting in Orders and Retry, without those
	// delivered and not yet acknowledged; and of the dead letters.
	Depth(ctx context.Context) (waiting, dead int, err error)
}
