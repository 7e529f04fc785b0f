package queue

import (
	"context"
	"errors"
	"fmt"
	"sync"

	amqp "github.com/rabbitmq/amqp091-go"
)

var errNoConfirm = errors.New("the broker did not confirm in time")

// rabbitPublisher keeps one session after another open. Publish hands its message
// to the session there is.
type rabbitPublisher struct {
	broker *rabbitMQ
	o      Options
	status *status

	mu      sync.Mutex
	session *publishSession
	calls   int
	closed  bool
	started bool

	attempted chan struct{} // closed after the first attempt to connect
	idle      chan struct{} // closed when no call is left after Close
	ended     chan struct{} // closed when the goroutine that connects is gone
	stop      context.CancelFunc
}

func newRabbitPublisher(r *rabbitMQ, o Options) *rabbitPublisher {
	return &rabbitPublisher{
		broker: r, o: o, status: newStatus(o.Log, "publisher", r),
		attempted: make(chan struct{}), idle: make(chan struct{}), ended: make(chan struct{}),
	}
}

// Publish of the first message waits until one attempt to connect is over. Later
// calls return ErrNotSent at once while there is no connection.
func (p *rabbitPublisher) Publish(ctx context.Context, to Target, m Message) error {
	if err := p.enter(); err != nil {
		return err
	}
	defer p.leave()
	if !to.known() {
		return fmt.Errorf("%w: no target %q", ErrNotSent, to)
	}
	ctx, cancel := context.WithTimeoutCause(ctx, p.o.ConfirmTimeout, errNoConfirm)
	defer cancel()
	select {
	case <-p.attempted:
	case <-ctx.Done():
		return fmt.Errorf("%w: %w", ErrNotSent, errNotConnected)
	}
	p.mu.Lock()
	s := p.session
	p.mu.Unlock()
	if s == nil {
		return fmt.Errorf("%w: %w", ErrNotSent, p.status.get())
	}
	return s.publish(ctx, to, m)
}

// Ready starts connecting, if nothing did before.
func (p *rabbitPublisher) Ready() error {
	if err := p.enter(); err != nil {
		return ErrClosed
	}
	defer p.leave()
	p.mu.Lock()
	s := p.session
	p.mu.Unlock()
	if s != nil {
		return s.blockedErr()
	}
	return p.status.get()
}

func (p *rabbitPublisher) enter() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return fmt.Errorf("%w: %w", ErrNotSent, ErrClosed)
	}
	if !p.started {
		p.started = true
		var ctx context.Context
		ctx, p.stop = context.WithCancel(context.Background())
		go p.run(ctx)
	}
	p.calls++
	return nil
}

func (p *rabbitPublisher) leave() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.calls--; p.closed && p.calls == 0 {
		close(p.idle)
	}
}

// Close lets the calls in flight end, until ctx does. Those left then get
// ErrUnknown. It adds at most closeTimeout.
func (p *rabbitPublisher) Close(ctx context.Context) error {
	p.mu.Lock()
	first := !p.closed
	p.closed = true
	if first && p.calls == 0 {
		close(p.idle)
	}
	started := p.started
	p.mu.Unlock()
	if !started {
		return nil
	}
	err := p.lastCall(ctx)
	p.stop()
	<-p.ended
	p.status.end(ErrClosed)
	return err
}

// lastCall waits for the last call in flight.
func (p *rabbitPublisher) lastCall(ctx context.Context) error {
	select {
	case <-p.idle:
		return nil
	default:
	}
	select {
	case <-p.idle:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("closing the publisher before its last messages were confirmed: %w", ctx.Err())
	}
}

// run owns the sessions.
func (p *rabbitPublisher) run(ctx context.Context) {
	defer close(p.ended)
	first := sync.OnceFunc(func() { close(p.attempted) })
	defer first()
	keepOpen(ctx, func(ctx context.Context) error {
		s, err := p.open(ctx)
		if err != nil {
			return err
		}
		p.use(s)
		p.status.set(nil)
		first()
		err = s.watch(ctx)
		p.use(nil)
		s.end()
		return err
	}, func(err error) {
		p.status.set(err)
		first()
	})
}

func (p *rabbitPublisher) use(s *publishSession) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.session = s
}

func (p *rabbitPublisher) open(ctx context.Context) (*publishSession, error) {
	conn, err := p.broker.connect(ctx, p.o.Name+" publisher")
	if err != nil {
		return nil, err
	}
	s := newPublishSession(conn, p.status.log)
	opening, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	if err := conn.within(opening, s.openLanes); err != nil {
		s.end()
		return nil, fmt.Errorf("opening channels to RabbitMQ at %s: %w", p.broker.addr, err)
	}
	return s, nil
}

func publishing(m Message) amqp.Publishing {
	c := copyOf(m)
	headers := make(amqp.Table, len(c.Headers))
	for k, v := range c.Headers {
		headers[k] = v
	}
	return amqp.Publishing{
		MessageId: c.ID, Body: c.Body, Headers: headers,
		DeliveryMode: amqp.Persistent, ContentType: "application/octet-stream",
	}
}
