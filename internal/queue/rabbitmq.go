package queue

import (
	"fmt"
	"net"
	"strconv"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
)

// Bounds on everything that waits for the network. What a caller can set is in
// Options.
const (
	// dialTimeout bounds a connection attempt up to AMQP's last handshake.
	dialTimeout = 5 * time.Second
	// writeTimeout bounds one write to the socket. The library has no such bound
	// and holds a lock meanwhile.
	writeTimeout = 5 * time.Second
	// heartbeat: a broker that is silent for three of them counts as gone.
	heartbeat = 5 * time.Second
	// callTimeout bounds the requests of one set-up or one look.
	callTimeout = 10 * time.Second
	// closeTimeout bounds the farewell to a broker that may be gone.
	closeTimeout = time.Second
)

// rabbitMQ is a broker at the other end of AMQP 0-9-1.
type rabbitMQ struct {
	uri  string // holds a password: never in an error or a log
	addr string // host:port, and /vhost unless it is the default one: to be shown
	look inspector
}

func newRabbitMQ(address string) (Broker, error) {
	uri, err := amqp.ParseURI(address)
	if err != nil {
		// The library's errors may repeat parts of the address.
		return nil, fmt.Errorf("queue address is not an AMQP URI; use amqp://user:password@host:5672/vhost and percent-encode what is special in the password")
	}
	r := &rabbitMQ{uri: address, addr: net.JoinHostPort(uri.Host, strconv.Itoa(uri.Port))}
	if uri.Vhost != "/" {
		r.addr += "/" + uri.Vhost
	}
	r.look.broker, r.look.turn = r, make(chan struct{}, 1)
	return r, nil
}

func (r *rabbitMQ) Publisher(o Options) Publisher { return newRabbitPublisher(r, o.withDefaults()) }

func (r *rabbitMQ) Consumer(o Options) Consumer { return newRabbitConsumer(r, o.withDefaults()) }
