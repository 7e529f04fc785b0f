package gate

import (
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/seckill-edge/seckill/lua"
)

// errCircuitOpen refuses a call of buyers while the circuit is open.
var errCircuitOpen = errors.New("the circuit breaker is open")

const (
	// outageTellEvery is how often the log tells of an outage that lasts.
	outageTellEvery = time.Minute
	// outageOverAfter is how long nothing may have failed before an outage is over.
	outageOverAfter = 5 * time.Second
)

// breaker is the circuit breaker between one sale and Redis. The first failure
// opens it: nobody is to wait for a Redis that is away or refuses writes. While it
// is open clicks are refused from memory, and what goes to Redis is the look of the
// sale, which tries what a purchase needs, and the late clicks that were told
// "queued" before. The success of either closes it. It is safe for concurrent use.
type breaker struct {
	product string
	outage  *outage
	open    atomic.Bool // for the hot path
	mu      sync.Mutex  // one change at a time, so that the outage counts each once
}

// note takes in what became of a call that does what a purchase does.
func (b *breaker) note(err error) {
	if err == nil && !b.open.Load() {
		b.outage.works()
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	switch was := b.open.Load(); {
	case err != nil:
		b.outage.failed(b.product, err, !was)
		b.open.Store(true)
	case was:
		b.open.Store(false)
		b.outage.recovered()
	}
}

// outage tells the log of Redis's outages, all sales of the edge together: one line
// when the first breaker opens, one a minute while it lasts, one when all are closed
// and nothing has failed for outageOverAfter: what works now and then in between is
// still one outage. It is safe for concurrent use.
type outage struct {
	log   *slog.Logger
	now   func() time.Time
	lasts atomic.Bool // begun and not told to be over, for the hot path

	mu                       sync.Mutex
	open                     int // breakers
	cause                    error
	since, told, lastFailure time.Time
}

func (o *outage) failed(product string, err error, opens bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	now := o.now()
	o.cause, o.lastFailure = causeOf(err), now
	if opens {
		o.open++
	}
	switch {
	case !o.lasts.Load():
		o.lasts.Store(true)
		o.since, o.told = now, now
		o.log.Error("Redis "+fault(err)+": nothing can be sold; trying until it can", "first_product", product, "fault", lua.FaultOf(err).String(), "error", o.cause)
	case now.Sub(o.told) >= outageTellEvery:
		o.told = now
		o.log.Error("Redis "+fault(err)+": still nothing can be sold", "products", o.open, "for", now.Sub(o.since).Round(time.Second),
			"fault", lua.FaultOf(err).String(), "error", o.cause)
	}
}

// recovered notes that a breaker has closed.
func (o *outage) recovered() {
	o.mu.Lock()
	o.open--
	o.mu.Unlock()
}

// works notes a call that worked while its breaker is closed.
func (o *outage) works() {
	if !o.lasts.Load() {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if !o.lasts.Load() || o.open > 0 || o.now().Sub(o.lastFailure) < outageOverAfter {
		return
	}
	o.lasts.Store(false)
	// What works longer than outageOverAfter has worked since the last failure.
	o.log.Info("Redis works again: purchases go on", "after", o.lastFailure.Sub(o.since).Round(time.Millisecond))
}

// of is why nothing can be sold while all of so many sales are shut out; else nil.
func (o *outage) of(sales int) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.open == 0 || o.open < sales {
		return nil
	}
	return o.cause
}

// causeOf says in words what kind of failure err is, and what it says itself.
func causeOf(err error) error { return fmt.Errorf("it %s: %w", fault(err), err) }

// fault says what Redis does to purchases.
func fault(err error) string {
	switch lua.FaultOf(err) {
	case lua.FaultRefused:
		return "refuses purchases for now"
	case lua.FaultForbidden:
		return "refuses a right that the edge needs"
	case lua.FaultPermanent:
		return "answers with an error"
	default:
		return "does not answer"
	}
}
