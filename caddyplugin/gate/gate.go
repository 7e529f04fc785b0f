// Package gate decides on one click: limit, local view of the activity,
// reservation in Redis together with everybody else who waits now, answer, and
// the publishing of what was reserved. It knows nothing of Caddy or HTTP; time
// and randomness are passed in.
//
// The order of things in one click:
//
//	Limit     per-IP token bucket, no Redis
//	view      window, closed, sold out: from memory, at most a second old
//	group     requests of a product that wait now go to Redis as one script call
//	forward   what was reserved goes to the queue, after the buyer has his answer;
//	          what the broker confirmed leaves the outbox
package gate

import (
	"io"
	"log/slog"
	"net/netip"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/seckill-edge/seckill/internal/order"
	"github.com/seckill-edge/seckill/internal/queue"
	"github.com/seckill-edge/seckill/lua"
)

// Config of a gate. Zero values mean the defaults.
type Config struct {
	// Rate and Burst bound each client address (IPv6: each /64): tokens a
	// second, and how many at once. Rate 0 means no limit.
	Rate  float64
	Burst int
	// ReserveTimeout is how long a buyer waits for Redis before he is told
	// "queued" and learns the outcome by asking. Default 250 ms.
	ReserveTimeout time.Duration
	// ResolveWithin is when a queued order's fate is known at the latest,
	// counted from the answer. Default 30 s.
	ResolveWithin time.Duration
	// Linger is how long a message waits for more orders. Default 10 ms.
	Linger time.Duration
	// OrdersPerMessage bounds a message, 1 to order.MaxPerMessage. Default 256.
	OrdersPerMessage int
	// Waiting bounds the requests that wait for Redis, per product; beyond it
	// they are refused with Held. Default 8192.
	Waiting int
	// Buffer bounds the reserved orders that wait to be published; what does not
	// fit stays in the outbox for the backend's relay. Default 65536.
	Buffer int
}

// Deps are what a gate works with. All are required.
type Deps struct {
	Redis     redis.UniversalClient
	Publisher queue.Publisher
	Now       func() time.Time
	Random    io.Reader
	Log       *slog.Logger
}

// Click is one request to buy, its fields already checked (order.ValidProduct,
// order.ValidUser, 1 to order.MaxQuantity).
type Click struct {
	ProductID string
	UserID    string
	Quantity  int
}

// Decision is the answer to a click.
type Decision struct {
	// Outcome is lua.Reserved for "queued", else the refusal.
	Outcome lua.Outcome
	// OrderID is the buyer's order: the new one with Reserved, the one he has
	// with AlreadyBought.
	OrderID string
	// ResolveBy is when the order's fate is known at the latest, with Reserved.
	ResolveBy time.Time
	// RetryAfter is when asking again makes sense; 0 if it does not.
	RetryAfter time.Duration
}

// Limited is the answer of the per-address limit.
type Limited struct {
	Allowed bool
	// RetryAfter is when the next token is there, if not allowed.
	RetryAfter time.Duration
}

// View is an activity as the storefront sees it.
type View struct {
	lua.Snapshot
	// Fresh says that Redis has confirmed it within the last seconds. A view
	// that is not fresh sells nothing.
	Fresh bool
}

// Fate is what became of an order.
type Fate struct {
	OrderID   string
	State     order.State
	Reason    order.Reason // with order.Rejected
	Quantity  int
	ResolveBy time.Time
}

// Interface of *Gate, in the order of a click's way:
//
//	New(Config, Deps) (*Gate, error)       checks the config, starts the workers, dials nothing
//	Limit(netip.Addr) Limited
//	Reserve(ctx, Click) Decision           never blocks longer than ReserveTimeout
//	View(ctx, product) (View, lua.Outcome) Reserved, NoProduct, or Held when Redis cannot be asked
//	Fate(ctx, product, user, orderID) (Fate, error)  ErrNoOrder, ErrUnavailable
//	Ready() error                          nil while Redis answers and the queue takes messages
//	Stats() Stats                          counters since New, for metrics and the admin endpoint
//	Close(ctx)                             waits for clicks in flight, publishes what it carries, stops
var _ = netip.Addr{}
