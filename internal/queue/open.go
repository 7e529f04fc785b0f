package queue

import (
	"cmp"
	"fmt"
	"log/slog"
	"net/url"
	"time"
)

// Options of a publisher or consumer. Zero values mean the defaults.
type Options struct {
	// Name is shown in the broker's list of connections. Default "seckill".
	Name string
	// ConfirmTimeout bounds one Publish. Default 5 s.
	ConfirmTimeout time.Duration
	// Prefetch bounds the messages delivered and not acknowledged. Default 64
	// (a message carries up to 256 orders).
	Prefetch int
	// Log is told of lost and regained connections. Default: discarded.
	Log *slog.Logger
}

// withDefaults fills what is zero.
func (o Options) withDefaults() Options {
	o.Name = cmp.Or(o.Name, "seckill")
	o.ConfirmTimeout = cmp.Or(o.ConfirmTimeout, 5*time.Second)
	o.Prefetch = cmp.Or(o.Prefetch, 64)
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	return o
}

// Broker makes publishers and consumers of one broker. Making one dials nothing
// before the first use or Start in the background.
type Broker interface {
	Publisher(Options) Publisher
	Consumer(Options) Consumer
	Inspector
	DeadLetters
	// Close closes what the broker itself keeps open, not its publishers and
	// consumers.
	Close() error
}

// Open reads address and dials nothing: amqp:// and amqps:// name a RabbitMQ,
// memory:NAME a broker inside this process, the same one for the same name.
func Open(address string) (Broker, error) {
	u, err := url.Parse(address)
	if err != nil {
		// The error of url.Parse repeats the address, and with it a password.
		return nil, fmt.Errorf("queue address is not a URL; use amqp://user:password@host:5672/vhost or memory:name")
	}
	switch u.Scheme {
	case "amqp", "amqps":
		return newRabbitMQ(address)
	case "memory":
		return memoryNamed(u.Opaque), nil
	}
	return nil, fmt.Errorf("queue address has scheme %q; use amqp://, amqps:// or memory:name", u.Scheme)
}
