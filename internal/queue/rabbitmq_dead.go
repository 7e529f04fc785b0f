package queue

import (
	"context"
	"fmt"

	amqp "github.com/rabbitmq/amqp091-go"
)

// Judge works on a connection of its own: what it has taken and not settled goes
// back when that closes. The caller's ctx bounds it.
func (r *rabbitMQ) Judge(ctx context.Context, limit int, verdict func(Message) Verdict) (judged int, err error) {
	conn, err := r.connect(ctx, "seckill dead letters")
	if err != nil {
		return 0, err
	}
	defer conn.close(closeTimeout)
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
	if err != nil {
		return judged, fmt.Errorf("judging dead letters at RabbitMQ %s: %w", r.addr, err)
	}
	return judged, nil
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
