package queue

import (
	"fmt"

	amqp "github.com/rabbitmq/amqp091-go"
)

// The topology. Both sides declare it, so that either may start first. Arguments
// of a queue can never be changed: what operators tune (lengths, for one) belongs
// in a policy, what we change needs a new name.
const (
	exchange    = "seckill"
	ordersQueue = "seckill.orders"
	deadQueue   = "seckill.orders.dead"
	retryQueue  = "seckill.orders.retry.5s"
)

// queues are declared in this order, each bound to the exchange under the name
// of its target.
var queues = []struct {
	name   string
	target Target
	args   amqp.Table
}{
	// RabbitMQ 4 takes a message from a quorum queue after 20 deliveries that came
	// to nothing. With a dead letter exchange it is kept for people to see.
	{ordersQueue, Orders, quorum(exchange, string(Dead))},
	{deadQueue, Dead, amqp.Table{"x-queue-type": "quorum", "x-overflow": "reject-publish"}},
	{retryQueue, Retry, withTTL(quorum("", ordersQueue))},
}

// quorum is a replicated queue that passes dead letters to exchange and key and
// keeps each until it is confirmed there. Without all of these arguments RabbitMQ
// silently passes them at most once.
func quorum(exchange, key string) amqp.Table {
	return amqp.Table{
		"x-queue-type":              "quorum",
		"x-overflow":                "reject-publish",
		"x-dead-letter-strategy":    "at-least-once",
		"x-dead-letter-exchange":    exchange,
		"x-dead-letter-routing-key": key,
	}
}

func withTTL(args amqp.Table) amqp.Table {
	args["x-message-ttl"] = RetryDelay.Milliseconds()
	return args
}

func declareTopology(ch *amqp.Channel) error {
	if err := ch.ExchangeDeclare(exchange, amqp.ExchangeDirect, true, false, false, false, nil); err != nil {
		return fmt.Errorf("declaring exchange %s: %w", exchange, err)
	}
	for _, q := range queues {
		if _, err := ch.QueueDeclare(q.name, true, false, false, false, q.args); err != nil {
			return fmt.Errorf("declaring queue %s: %w", q.name, err)
		}
		if err := ch.QueueBind(q.name, string(q.target), exchange, false, nil); err != nil {
			return fmt.Errorf("binding queue %s: %w", q.name, err)
		}
	}
	return nil
}
