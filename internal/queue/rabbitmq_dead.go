package queue

import (
	"context"
	"fmt"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
)

// Judge works on a connection of its own: what it has taken and not settled goes
// back when that closes. The caller's ctx bounds it.
func (r *rabbitMQ) Judge(ctx context.Context, limit int, verdict func(Message) Verdict) (judged int, err error) {
	kept := 0
	judged, err = r.judge(ctx, limit, func(m Message) Verdict {
		v := verdict(m)
		if v == Keep {
			kept++
		}
		return v
	})
	r.awaitReturned(ctx, kept)
	if err != nil {
		return judged, fmt.Errorf("judging dead letters at RabbitMQ %s: %w", r.addr, err)
	}
	return judged, nil
}

func (r *rabbitMQ) judge(ctx context.Context, limit int, verdict func(Message) Verdict) (judged int, err error) {
	conn, err := r.connect(ctx, "seckill dead letters")
	if err != nil {
		return 0, err
	}
	defer conn.close()
	p := r.Publisher(Options{Name: "seckill dead letters"})
	defer func() { _ = p.Close(ctx) }() // each replay was confirmed or failed by itself
	err = conn.within(ctx, func() error {
		ch, err := conn.Channel()
		if err != nil {
			return err
		}
		for ; judged < limit; judged++ {
			d, found, err := ch.Get(deadQueue, false)
			if err != nil || !found {
				return err
			}
			if err := settle(ctx, d, p, verdict(received(d))); err != nil {
				return err
			}
		}
		return nil
	})
	return judged, err
}

const (
	// returnWithin bounds the wait for kept letters; somebody else may have taken
	// them again.
	returnWithin = 2 * time.Second
	returnPoll   = 20 * time.Millisecond
)

// awaitReturned waits until the broker shows kept letters again, which it does a
// moment after their connection has closed: who looks and then replays would find
// none.
func (r *rabbitMQ) awaitReturned(ctx context.Context, kept int) {
	ctx, cancel := context.WithTimeout(ctx, returnWithin)
	defer cancel()
	poll := time.NewTicker(returnPoll)
	defer poll.Stop()
	for kept > 0 {
		if _, dead, err := r.Depth(ctx); err != nil || dead >= kept {
			return
		}
		select {
		case <-poll.C:
		case <-ctx.Done():
			return
		}
	}
}

func settle(ctx context.Context, d amqp.Delivery, p Publisher, v Verdict) error {
	switch v {
	case Replay:
		if err := p.Publish(ctx, Orders, revived(received(d))); err != nil {
			return fmt.Errorf("replaying dead letter %s: %w", d.MessageId, err)
		}
		return d.Ack(false)
	case Drop:
		return d.Ack(false)
	default:
		return nil
	}
}
