package gate

import (
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
	// they are refused with Unavailable. Default 8192.
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

	// callTimeout and lookEvery are set by tests alone, which run on machines that
	// are slow, and where nothing may be seen by a look.
	callTimeout, lookEvery time.Duration
}

const (
	// callTimeout bounds one call to Redis. The client's own time-outs are
	// shorter; this one is for a client that was given others.
	callTimeout = time.Second
	// maxSales bounds the products with a live view. Beyond it products are unavailable.
	maxSales = 1024
	// batchMax is the most requests in one script call. Measured: the price of a
	// request falls until 64 to 128 and rises again behind.
	batchMax = 128
	// secondCall is how many requests must wait before a second call of the same
	// product goes out beside the first. Fewer make smaller batches and lose.
	secondCall = 16
)

func (c *Config) setDefaults() {
	if c.callTimeout == 0 {
		c.callTimeout = callTimeout
	}
	if c.lookEvery == 0 {
		c.lookEvery = lookEvery
	}
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
