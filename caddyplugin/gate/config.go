package gate

import (
	"fmt"
	"time"

	"github.com/seckill-edge/seckill/internal/order"
)

// Config of a gate. Zero values mean the defaults.
type Config struct {
	// ReserveTimeout is how long a buyer waits for Redis before he is told
	// "queued" and learns the outcome by asking. Default 250 ms.
	ReserveTimeout time.Duration
	// ResolveWithin is when a queued order's fate is known at the latest,
	// counted from the answer. Default 30 s.
	ResolveWithin time.Duration
	// TicketLife is how long after Offer has made an order id it may be bought
	// with, so that an order may be this much younger than its id; 0 if Offer is
	// not used.
	TicketLife time.Duration
	// Linger is how long a message waits for more orders. Default 10 ms.
	Linger time.Duration
	// OrdersPerMessage bounds a message, 1 to order.MaxPerMessage. Default 256.
	OrdersPerMessage int
	// Waiting bounds the requests that wait for Redis, per product; beyond it
	// they are refused with Held. Default 8192.
	Waiting int
	// Surplus is how many units may be on their way to Redis for each unit that is
	// left; beyond it clicks are refused with Crowded. Default 8; -1 for no such
	// bound.
	Surplus int
	// Streams bounds the streams of orders' fates that are open at once,
	// StreamsPerBuyer those of one buyer. Defaults 50,000 and 4.
	Streams         int
	StreamsPerBuyer int
	// Buffer bounds the reserved orders that wait to be published; what does not
	// fit stays in the outbox for the backend's relay. Default 65536.
	Buffer int
}

// MaxTicketLife bounds Config.TicketLife: for as long an order that is lost may
// still look like one that has not been bought yet.
const MaxTicketLife = 10 * time.Minute

const (
	// callTimeout bounds one call to Redis. The client's own time-outs are
	// shorter; this one is for a client that was given others.
	callTimeout = time.Second
	// maxSales bounds the products with a live view. Beyond it products are held.
	maxSales = 1024
	// batchMax is the most requests in one script call. Measured: the price of a
	// request falls until 64 to 128 and rises again behind.
	batchMax = 128
	// secondCall is how many requests must wait before a second call of the same
	// product goes out beside the first. Fewer make smaller batches and lose.
	secondCall = 16
)

func (c *Config) setDefaults() {
	if c.ReserveTimeout == 0 {
		c.ReserveTimeout = 250 * time.Millisecond
	}
	if c.ResolveWithin == 0 {
		c.ResolveWithin = 30 * time.Second
	}
	if c.Linger == 0 {
		c.Linger = 10 * time.Millisecond
	}
	if c.OrdersPerMessage == 0 {
		c.OrdersPerMessage = order.MaxPerMessage
	}
	if c.Waiting == 0 {
		c.Waiting = 8192
	}
	if c.Surplus == 0 {
		c.Surplus = 8
	}
	if c.Buffer == 0 {
		c.Buffer = 65536
	}
	if c.Streams == 0 {
		c.Streams = 50_000
	}
	if c.StreamsPerBuyer == 0 {
		c.StreamsPerBuyer = 4
	}
}

func (c *Config) validate() error {
	for _, d := range []struct {
		name     string
		v        time.Duration
		min, max time.Duration
	}{
		{"reserve_timeout", c.ReserveTimeout, 10 * time.Millisecond, 10 * time.Second},
		{"resolve_within", c.ResolveWithin, 5 * time.Second, time.Hour},
		{"linger", c.Linger, time.Millisecond, time.Second},
		{"ticket_life", c.TicketLife, 0, MaxTicketLife},
	} {
		if d.v < d.min || d.v > d.max {
			return fmt.Errorf("%s %v: must be %v to %v", d.name, d.v, d.min, d.max)
		}
	}
	if c.ReserveTimeout > c.ResolveWithin/4 {
		// Or a call of unknown outcome would be given up before its buyer is told.
		return fmt.Errorf("reserve_timeout %v: must be at most a quarter of resolve_within, which is %v", c.ReserveTimeout, c.ResolveWithin)
	}
	if c.OrdersPerMessage < 1 || c.OrdersPerMessage > order.MaxPerMessage {
		return fmt.Errorf("orders_per_message %d: must be 1 to %d", c.OrdersPerMessage, order.MaxPerMessage)
	}
	if c.Waiting < 1 || c.Waiting > 1<<20 {
		return fmt.Errorf("waiting %d: must be 1 to %d", c.Waiting, 1<<20)
	}
	if c.Surplus != -1 && (c.Surplus < 1 || c.Surplus > 1000) {
		return fmt.Errorf("surplus %d: must be 1 to 1000, or -1 for no bound", c.Surplus)
	}
	if c.Streams < 1 || c.Streams > 1<<20 {
		return fmt.Errorf("streams %d: must be 1 to %d", c.Streams, 1<<20)
	}
	if c.StreamsPerBuyer < 1 || c.StreamsPerBuyer > 1<<10 {
		return fmt.Errorf("streams_per_buyer %d: must be 1 to %d", c.StreamsPerBuyer, 1<<10)
	}
	if c.Buffer < 1 || c.Buffer > 1<<24 {
		return fmt.Errorf("buffer %d: must be 1 to %d", c.Buffer, 1<<24)
	}
	return nil
}
