package queue

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
)

// connection is one life of a connection. It is never revived: whoever uses it
// makes a new one, because a delivery tag of an old channel must never be
// acknowledged on a new one.
type connection struct {
	*amqp.Connection
	raw    *gatheringConn
	closed chan *amqp.Error
}

// connect dials, logs in and declares the topology. It gives up when ctx ends.
func (r *rabbitMQ) connect(ctx context.Context, name string) (*connection, error) {
	ctx, cancel := context.WithTimeout(ctx, dialTimeout+callTimeout)
	defer cancel()
	c, err := r.dial(ctx, name)
	if err != nil {
		return nil, fmt.Errorf("connecting to RabbitMQ at %s: %w", r.addr, reason(ctx, err))
	}
	err = c.within(ctx, func() error {
		ch, err := c.Channel()
		if err != nil {
			return err
		}
		return errors.Join(declareTopology(ch), ch.Close())
	})
	if err != nil {
		c.close()
		return nil, fmt.Errorf("setting up RabbitMQ at %s: %w", r.addr, err)
	}
	return c, nil
}

func (r *rabbitMQ) dial(ctx context.Context, name string) (*connection, error) {
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	c := &connection{closed: make(chan *amqp.Error, 1)}
	unwatch := func() bool { return true }
	properties := amqp.NewConnectionProperties()
	properties.SetClientConnectionName(name)
	var err error
	c.Connection, err = amqp.DialConfig(r.uri, amqp.Config{
		Heartbeat:  heartbeat,
		Properties: properties,
		Dial: func(network, addr string) (net.Conn, error) {
			conn, err := (&net.Dialer{}).DialContext(ctx, network, addr)
			if err != nil {
				return nil, err
			}
			c.raw = newGatheringConn(conn)
			unwatch = context.AfterFunc(ctx, func() { c.raw.Close() })
			return c.raw, nil
		},
	})
	inTime := unwatch()
	switch {
	case err == nil && !inTime:
		err = ctx.Err()
		c.close()
	case err != nil && c.raw != nil:
		c.raw.Close() // the library leaves it open when the handshake fails
		<-c.raw.done
	}
	if err != nil {
		return nil, reason(ctx, err)
	}
	c.NotifyClose(c.closed)
	return c, nil
}

// within does what, and cuts the connection if ctx ends first: the library's
// calls wait for ever.
func (c *connection) within(ctx context.Context, what func() error) error {
	stop := context.AfterFunc(ctx, func() { c.raw.Close() })
	err := what()
	if !stop() && err == nil {
		return ctx.Err()
	}
	return reason(ctx, err)
}

// close says farewell for at most closeTimeout, then cuts the connection. It may be called
// on one that is closed.
func (c *connection) close() {
	cut := time.AfterFunc(closeTimeout, func() { c.raw.Close() })
	defer cut.Stop()
	// An error says that there was nobody to say farewell to.
	_ = c.Close()
	c.raw.Close()
	<-c.raw.done
}

// reason prefers the end of ctx as the explanation of err.
func reason(ctx context.Context, err error) error {
	if err != nil && ctx.Err() != nil {
		return ctx.Err()
	}
	return err
}
