package queue

import (
	"context"
	"fmt"

	amqp "github.com/rabbitmq/amqp091-go"
)

// inspector keeps one connection for looking, made by the first look.
type inspector struct {
	broker *rabbitMQ

	// turn holds one token for the one who looks: who waits for it can give up when
	// a broker hangs.
	turn   chan struct{}
	conn   *connection
	ch     *amqp.Channel
	closed bool
}

// Depth asks the broker. It takes at most 10 s, or 15 more to connect first.
func (r *rabbitMQ) Depth(ctx context.Context) (waiting, dead int, err error) {
	return r.look.depth(ctx)
}

// Close closes the connection that Depth keeps.
func (r *rabbitMQ) Close() error {
	r.look.turn <- struct{}{}
	defer func() { <-r.look.turn }()
	r.look.closed = true
	r.look.drop()
	return nil
}

func (i *inspector) depth(ctx context.Context) (waiting, dead int, err error) {
	select {
	case i.turn <- struct{}{}:
	case <-ctx.Done():
		return 0, 0, fmt.Errorf("asking RabbitMQ at %s for the depth of its queues: others have waited for its answer until now: %w", i.broker.addr, ctx.Err())
	}
	defer func() { <-i.turn }()
	if i.closed {
		return 0, 0, ErrClosed
	}
	if i.ch == nil || i.ch.IsClosed() {
		i.drop()
		if i.conn, err = i.broker.connect(ctx, "seckill inspector"); err != nil {
			return 0, 0, err
		}
	}
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	err = i.conn.within(ctx, func() error {
		counts, err := i.count()
		waiting, dead = counts[Orders]+counts[Retry], counts[Dead]
		return err
	})
	if err != nil {
		i.drop()
		return 0, 0, fmt.Errorf("asking RabbitMQ at %s for the depth of its queues: %w", i.broker.addr, err)
	}
	return waiting, dead, nil
}

func (i *inspector) count() (map[Target]int, error) {
	counts := map[Target]int{}
	if i.ch == nil {
		var err error
		if i.ch, err = i.conn.Channel(); err != nil {
			return counts, err
		}
	}
	for _, q := range queues {
		state, err := i.ch.QueueDeclarePassive(q.name, true, false, false, false, q.args)
		if err != nil {
			return counts, err
		}
		counts[q.target] = state.Messages
	}
	return counts, nil
}

func (i *inspector) drop() {
	if i.conn != nil {
		i.conn.close()
	}
	i.conn, i.ch = nil, nil
}
