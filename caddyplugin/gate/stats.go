package gate

import (
	"sync/atomic"
	"time"

	"github.com/seckill-edge/seckill/caddyplugin/limit"
	"github.com/seckill-edge/seckill/lua"
)

// Stats are a gate's counters since New.
type Stats struct {
	// Outcomes counts answers, by outcome.
	Outcomes map[lua.Outcome]uint64
	// Local counts refusals that needed no Redis; they are in Outcomes too.
	Local uint64
	// Limits counts by level, Leases the calls for what all edges share.
	Limits limit.Stats
	Leases LeaseStats
	// Late counts buyers told "queued" before Redis had answered; they are in
	// Outcomes as Reserved.
	Late uint64
	// LateOutcomes counts what became of those, once Redis has answered, by outcome.
	LateOutcomes map[lua.Outcome]uint64
	// Repeats counts clicks that were answered with the first order of their key;
	// they are not in Outcomes.
	Repeats uint64
	// Reads is the reads of buyers' records for those who ask for their orders,
	// many buyers each, ReadErrors those that failed.
	Reads, ReadErrors uint64
	// Streams is the open streams, now.
	Streams int64
	// Calls is the reserve calls to Redis, CallErrors those that failed.
	Calls, CallErrors uint64
	// BatchSize counts calls by the number of requests in them, CallSeconds by
	// their duration.
	BatchSize, CallSeconds Histogram
	// Forwarded counts orders confirmed by the broker, PublishErrors messages
	// that were not, LeftBehind orders left in the outbox for the relay.
	Forwarded, PublishErrors, LeftBehind uint64
	// Carried is the orders reserved and not yet confirmed or left, now.
	Carried int64
	// MessageSize counts confirmed messages by the orders in them,
	// PublishSeconds by the time until the confirm.
	MessageSize, PublishSeconds Histogram
}

// Histogram is a histogram with fixed upper bounds.
type Histogram struct {
	// Count and Sum are over all observations.
	Count uint64
	Sum   float64
	// Buckets maps an upper bound to the number of observations at or below it.
	Buckets map[float64]uint64
}

var (
	sizeBounds    = []float64{1, 2, 4, 8, 16, 32, 64, 128, 256}
	secondsBounds = []float64{.0001, .0002, .0005, .001, .002, .005, .01, .02, .05, .1, .25, .5, 1, 2.5, 5}
)

// counters are the live form of Stats.
type counters struct {
	outcomes, lateOutcomes               [16]atomic.Uint64 // index: -outcome
	local, late                          atomic.Uint64
	calls, callErrors                    atomic.Uint64
	repeats, reads, readErrors           atomic.Uint64
	forwarded, publishErrors, leftBehind atomic.Uint64
	carried                              atomic.Int64
	leases                               limit.LeaseStats
	batchSize, callSeconds               histogram
	messageSize, publishSeconds          histogram
}

func newCounters() *counters {
	c := &counters{}
	c.batchSize.bounds, c.messageSize.bounds = sizeBounds, sizeBounds
	c.callSeconds.bounds, c.publishSeconds.bounds = secondsBounds, secondsBounds
	return c
}

func (c *counters) outcome(o lua.Outcome) {
	if i := -int(o); 0 <= i && i < len(c.outcomes) {
		c.outcomes[i].Add(1)
	}
}

func (c *counters) lateOutcome(o lua.Outcome) {
	if i := -int(o); 0 <= i && i < len(c.lateOutcomes) {
		c.lateOutcomes[i].Add(1)
	}
}

func (c *counters) snapshot() Stats {
	s := Stats{
		Outcomes: make(map[lua.Outcome]uint64), LateOutcomes: make(map[lua.Outcome]uint64),
		Local: c.local.Load(), Late: c.late.Load(),
		Repeats: c.repeats.Load(), Reads: c.reads.Load(), ReadErrors: c.readErrors.Load(),
		Calls: c.calls.Load(), CallErrors: c.callErrors.Load(),
		BatchSize: c.batchSize.snapshot(), CallSeconds: c.callSeconds.snapshot(),
		Forwarded: c.forwarded.Load(), PublishErrors: c.publishErrors.Load(), LeftBehind: c.leftBehind.Load(),
		Carried:     c.carried.Load(),
		MessageSize: c.messageSize.snapshot(), PublishSeconds: c.publishSeconds.snapshot(),
	}
	for _, o := range lua.Outcomes() {
		if o != lua.Denied { // counted with the limits
			s.Outcomes[o] = c.outcomes[-int(o)].Load()
			s.LateOutcomes[o] = c.lateOutcomes[-int(o)].Load()
		}
	}
	return s
}

// histogram is a Histogram that many goroutines observe into. At most 16 bounds.
type histogram struct {
	bounds []float64
	counts [17]atomic.Uint64
	micros atomic.Uint64 // the sum, in millionths
}

func (h *histogram) observe(v float64) {
	i := 0
	for i < len(h.bounds) && v > h.bounds[i] {
		i++
	}
	h.counts[i].Add(1)
	h.micros.Add(uint64(v * 1e6))
}

func (h *histogram) since(start, now time.Time) { h.observe(max(0, now.Sub(start).Seconds())) }

func (h *histogram) snapshot() Histogram {
	s := Histogram{Sum: float64(h.micros.Load()) / 1e6, Buckets: make(map[float64]uint64, len(h.bounds))}
	for i, bound := range h.bounds {
		s.Count += h.counts[i].Load()
		s.Buckets[bound] = s.Count
	}
	s.Count += h.counts[len(h.bounds)].Load()
	return s
}
