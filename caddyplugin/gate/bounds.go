package gate

import (
	"fmt"
	"strings"
	"time"

	"github.com/seckill-edge/seckill/internal/order"
)

// MaxTicketLife bounds Config.TicketLife: for as long an order that is lost may
// still look like one that has not been bought yet.
const MaxTicketLife = 10 * time.Minute

// Bound is the smallest and the largest value of an option.
type Bound[T int | time.Duration] struct{ Min, Max T }

// Has says whether v is within the bound.
func (b Bound[T]) Has(v T) bool { return b.Min <= v && v <= b.Max }

// String is the bound in words, such as "10ms to 10s".
func (b Bound[T]) String() string { return short(b.Min) + " to " + short(b.Max) }

// short writes an hour as 1h, and not as 1h0m0s.
func short[T int | time.Duration](v T) string {
	words := fmt.Sprint(v)
	if w, is := strings.CutSuffix(words, "m0s"); is {
		words = w + "m"
	}
	if w, is := strings.CutSuffix(words, "h0m"); is {
		words = w + "h"
	}
	return words
}

// The bounds of a Config's fields. A syntax that sets them refuses by the same.
var (
	ReserveTimeoutBound   = Bound[time.Duration]{10 * time.Millisecond, 10 * time.Second}
	ResolveWithinBound    = Bound[time.Duration]{order.MinResolveWithin, order.MaxResolveWithin}
	LingerBound           = Bound[time.Duration]{time.Millisecond, time.Second}
	OrdersPerMessageBound = Bound[int]{1, order.MaxPerMessage}
	WaitingBound          = Bound[int]{1, 1 << 20}
	SurplusBound          = Bound[int]{1, 1000}
	StreamsBound          = Bound[int]{1, 1 << 20}
	StreamsPerBuyerBound  = Bound[int]{1, 1 << 10}
	BufferBound           = Bound[int]{1, 1 << 24}
)

func (c *Config) validate() error {
	for _, d := range []struct {
		name  string
		v     time.Duration
		bound Bound[time.Duration]
	}{
		{"reserve_timeout", c.ReserveTimeout, ReserveTimeoutBound},
		{"resolve_within", c.ResolveWithin, ResolveWithinBound},
		{"linger", c.Linger, LingerBound},
		{"ticket_life", c.TicketLife, Bound[time.Duration]{0, MaxTicketLife}},
	} {
		if !d.bound.Has(d.v) {
			return fmt.Errorf("%s %v: must be %v", d.name, d.v, d.bound)
		}
	}
	if c.ReserveTimeout > c.ResolveWithin/4 {
		// Or a call of unknown outcome would be given up before its buyer is told.
		return fmt.Errorf("reserve_timeout %v: must be at most a quarter of resolve_within, which is %v", c.ReserveTimeout, c.ResolveWithin)
	}
	for _, n := range []struct {
		name  string
		v     int
		bound Bound[int]
	}{
		{"orders_per_message", c.OrdersPerMessage, OrdersPerMessageBound},
		{"waiting", c.Waiting, WaitingBound},
		{"streams", c.Streams, StreamsBound},
		{"streams_per_buyer", c.StreamsPerBuyer, StreamsPerBuyerBound},
		{"buffer", c.Buffer, BufferBound},
	} {
		if !n.bound.Has(n.v) {
			return fmt.Errorf("%s %d: must be %v", n.name, n.v, n.bound)
		}
	}
	if c.Surplus != -1 && !SurplusBound.Has(c.Surplus) {
		return fmt.Errorf("surplus %d: must be %v, or -1 for no such bound", c.Surplus, SurplusBound)
	}
	return nil
}
