package queue

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	amqp "github.com/rabbitmq/amqp091-go"
)

type rabbitConsumer struct {
	broker *rabbitMQ
	o      Options
	status *status
}

func newRabbitConsumer(r *rabbitMQ, o Options) *rabbitConsumer {
	return &rabbitConsumer{broker: r, o: o, status: newStatus(o.Log, "consumer", r)}
}

func (c *rabbitConsumer) Ready() error { return c.status.get() }

func (c *rabbitConsumer) Consume(ctx context.Context, out chan<- Delivery) error {
	keepOpen(ctx, func(ctx context.Context) error { return c.session(ctx, out) }, c.status.set)
	c.status.end(errNotConsuming)
	return nil
}

// session connects, delivers until the connection breaks or ctx ends, and closes.
func (c *rabbitConsumer) session(ctx context.Context, out chan<- Delivery) error {
	conn, err := c.broker.connect(ctx, c.o.Name+" consumer")
	if err != nil {
		return err
	}
	defer conn.close()
	s := &consumeSession{conn: conn}
	defer s.ended.Store(true)
	opening, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	if err := conn.within(opening, func() error { return s.begin(c.o) }); err != nil {
		return fmt.Errorf("consuming %s from RabbitMQ at %s: %w", ordersQueue, c.broker.addr, err)
	}
	c.status.set(nil)
	return s.deliver(ctx, out)
}

// consumeSession is one channel. Its deliveries can be acknowledged on it alone.
type consumeSession struct {
	conn     *connection
	ch       *amqp.Channel
	closed   chan *amqp.Error
	incoming <-chan amqp.Delivery
	ended    atomic.Bool
}

func (s *consumeSession) begin(o Options) (err error) {
	if s.ch, err = s.conn.Channel(); err != nil {
		return err
	}
	s.closed = s.ch.NotifyClose(make(chan *amqp.Error, 1))
	if err = s.ch.Qos(o.Prefetch, 0, false); err != nil {
		return err
	}
	s.incoming, err = s.ch.Consume(ordersQueue, o.Name, false, false, false, false, nil)
	return err
}

func (s *consumeSession) deliver(ctx context.Context, out chan<- Delivery) error {
	for {
		var d *rabbitDelivery
		select {
		case <-ctx.Done():
			return nil
		case in, open := <-s.incoming:
			if !open {
				return s.whyEnded()
			}
			d = &rabbitDelivery{session: s, tag: in.DeliveryTag, redelivered: in.Redelivered, message: received(in)}
		}
		select {
		case out <- d:
		case <-ctx.Done():
			return nil
		case err := <-s.closed:
			return closeReason(err)
		}
	}
}

func (s *consumeSession) whyEnded() error {
	select {
	case err := <-s.closed:
		return closeReason(err)
	default:
		return fmt.Errorf("the broker cancelled the consumer; was queue %s deleted?", ordersQueue)
	}
}

func received(d amqp.Delivery) Message {
	m := Message{ID: d.MessageId, Body: d.Body}
	for k, v := range d.Headers {
		// What the broker adds (x-death and such) is no string and stays with it.
		if text, ok := v.(string); ok {
			if m.Headers == nil {
				m.Headers = make(map[string]string, len(d.Headers))
			}
			m.Headers[k] = text
		}
	}
	return m
}

type rabbitDelivery struct {
	session     *consumeSession
	tag         uint64
	message     Message
	redelivered bool
	settled     atomic.Bool
}

func (d *rabbitDelivery) Message() Message  { return d.message }
func (d *rabbitDelivery) Redelivered() bool { return d.redelivered }

// Ack returns when the broker was told; the broker does not answer. It blocks at
// most for writeTimeout.
func (d *rabbitDelivery) Ack() error {
	return d.settle(func() error { return d.session.ch.Ack(d.tag, false) })
}

// Requeue rejects: RabbitMQ 4.3 counts a rejection as a failed delivery, but no
// longer a negative acknowledgement.
func (d *rabbitDelivery) Requeue() error {
	return d.settle(func() error { return d.session.ch.Reject(d.tag, true) })
}

// settle guards the channel: the broker closes it when a tag is used twice.
func (d *rabbitDelivery) settle(tell func() error) error {
	if d.session.ended.Load() || d.settled.Swap(true) {
		return ErrStale
	}
	err := tell()
	if err == nil {
		return nil
	}
	if !errors.Is(err, amqp.ErrClosed) {
		d.session.conn.raw.Close() // or the library may not notice for a heartbeat
	}
	return fmt.Errorf("%w: %w", ErrStale, err)
}
