package activities

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/seckill-edge/seckill/backend/compare"
	"github.com/seckill-edge/seckill/backend/store"
	"github.com/seckill-edge/seckill/internal/order"
	"github.com/seckill-edge/seckill/lua"
)

// Audit is one activity's stock in Redis beside its orders in SQL.
type Audit struct {
	ActivityID string
	ProductID  string
	// Verdict says whether the stores agree.
	Verdict Verdict
	// Total is SQL's, or, while that is being changed, Redis's; Available, Frozen and Sold are Redis's. All are units.
	Total, Available, Frozen, Sold int64
	// Outbox is the number of orders the broker has not confirmed yet.
	Outbox int64
	// Queued is the number of messages and orders, of all activities, that wait in
	// the broker or are in the hands of a backend. QueueKnown says that the broker
	// was asked; without it Queued is what the backends have in hand, and Drift
	// counts only what nothing in the broker could explain.
	Queued     int
	QueueKnown bool
	// Orders and Units count SQL's orders by state.
	Orders map[order.State]int64
	Units  map[order.State]int64
	// Drift is the units on which the stores disagree, beyond what orders on
	// their way explain. 0 is right.
	Drift int64
	// Consistent says that Redis stood still while SQL was read, so that the
	// figures belong to one moment. Under load several readings are tried.
	Consistent bool
	// Known says that Redis has this activity at all; without it all its figures
	// are 0 and Drift is what SQL holds.
	Known bool
	// Damaged says that a counter in Redis is missing or no number.
	Damaged bool
}

// Verdict is what an audit comes to: one, whatever its figures are.
type Verdict string

// The verdicts.
const (
	Agree  Verdict = "agree"
	Drifts Verdict = "drift"
	// Unknown: the broker did not say what is on its way, or the sale was too busy for
	// one view. Asked again, it may be known.
	Unknown Verdict = "unknown"
)

func verdict(a Audit) Verdict {
	switch {
	case a.Consistent && a.Drift != 0:
		return Drifts // what is on its way explains none of it
	case a.Consistent && a.QueueKnown:
		return Agree
	}
	return Unknown
}

const (
	// readings bounds how often the stores are read until they agree or have
	// stood still.
	readings     = 6
	readingPause = 60 * time.Millisecond
	// hearWithin bounds the further readings for which backends are waited for: each
	// says four times a second what it has in hand.
	hearWithin = 2 * time.Second
)

// Audit compares the stores for the activity that product sells through, else
// its newest. It reads Redis, SQL, and Redis again, and takes the reading only
// if Redis has not moved. A drift is believed only when it stands in every
// reading, and after every backend has said that it has nothing in hand. Without
// the broker it says what is certain.
func (s *Service) Audit(ctx context.Context, product string) (Audit, error) {
	a, err := s.find(ctx, product)
	if err != nil {
		return Audit{}, err
	}
	return s.audit(ctx, a, &traffic{Service: s})
}

func (s *Service) audit(ctx context.Context, a store.Activity, t *traffic) (Audit, error) {
	var best reading
	began := time.Now()
	t.forget()
	for n := 0; ; n++ {
		got, err := s.read(ctx, a, t)
		if err != nil {
			return Audit{}, fmt.Errorf("auditing activity %s of product %s: %w", a.ID, a.ProductID, err)
		}
		if got.Consistent && got.Drift == 0 && !got.doubt {
			return got.Audit, nil
		}
		better := got.Consistent && !best.Consistent ||
			got.Consistent == best.Consistent && (got.Drift <= best.Drift || best.doubt && !got.doubt)
		if n == 0 || better {
			best = got
		}
		if n >= readings-1 && (!got.doubt || time.Since(began) > hearWithin) {
			return best.Audit, nil
		}
		timer := time.NewTimer(readingPause)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return best.Audit, nil // what is certain by now
		}
	}
}

// reading is one reading of all stores.
type reading struct {
	Audit
	// unheard says that a backend which has not spoken yet may have orders in hand;
	// doubt, that Drift leaves out what those may explain.
	unheard, doubt bool
}

func (s *Service) read(ctx context.Context, a store.Activity, t *traffic) (reading, error) {
	before, err := s.snapshot(ctx, a.ProductID)
	if err != nil {
		return reading{}, err
	}
	t.saw(before)
	// What is on its way is counted before SQL is read: what was stored in
	// between is then seen twice, which explains a difference, and never missed.
	way, err := t.look(ctx)
	if err != nil {
		return reading{}, err
	}
	// Its total may change.
	if a, err = s.Store.Activity(ctx, a.ID); err != nil {
		return reading{}, err
	}
	totals, err := s.Store.Totals(ctx, a.ID)
	if err != nil {
		return reading{}, err
	}
	after, err := s.snapshot(ctx, a.ProductID)
	if err != nil {
		return reading{}, err
	}
	t.saw(after)
	out := Audit{
		ActivityID: a.ID,
		ProductID:  a.ProductID,
		Total:      a.Total,
		Queued:     way.messages,
		QueueKnown: way.queueKnown,
		Orders:     map[order.State]int64{},
		Units:      map[order.State]int64{},
		Consistent: same(before, after),
	}
	for state, total := range totals {
		out.Orders[state], out.Units[state] = total.Orders, total.Units
	}
	if after != nil && after.ID == a.ID {
		out.Known, out.Damaged = true, after.Damaged
		out.Available, out.Frozen, out.Sold, out.Outbox = after.Available, after.Frozen, after.Sold, after.Outbox
		out.Total = compare.Total(a, *after)
	}
	busy := out.Outbox > 0 || out.Queued > 0 || !out.QueueKnown || s.InHand() > 0
	out.Drift = drift(a, out, busy || way.unheard)
	out.Verdict = verdict(out)
	doubt := !busy && way.unheard && drift(a, out, false) != out.Drift
	return reading{Audit: out, unheard: way.unheard, doubt: doubt}, nil
}

// drift is the units that nothing explains. SQL never holds more than Redis has
// given away, whatever is on its way; it may hold less until all has arrived,
// while the sale is busy.
func drift(a store.Activity, got Audit, busy bool) int64 {
	held := got.Units[order.Created] + got.Units[order.Paid]
	if !got.Known && a.State == store.Closed {
		return 0 // over and settled; Redis may forget it
	}
	if !got.Known {
		return held
	}
	given := got.Frozen + got.Sold
	unexplained := abs(got.Total - got.Available - given)
	if !busy {
		return unexplained + abs(held-given)
	}
	return unexplained + max(0, held-given)
}

// same says that nothing moved between two readings of Redis.
func same(a, b *lua.Snapshot) bool {
	if a == nil || b == nil {
		return a == b
	}
	return a.ID == b.ID && a.Available == b.Available && a.Frozen == b.Frozen && a.Sold == b.Sold &&
		a.Outbox == b.Outbox && a.Epoch == b.Epoch && a.Users == b.Users && a.Changes == b.Changes
}

func abs(n int64) int64 { return max(n, -n) }

// AuditAll audits every activity that is open or held. One that cannot be audited
// is left out; the error says why.
func (s *Service) AuditAll(ctx context.Context) ([]Audit, error) {
	all, err := s.Store.Unarchived(ctx)
	if err != nil {
		return nil, fmt.Errorf("auditing all activities: %w", err)
	}
	var audits []Audit
	var errs []error
	t := &traffic{Service: s}
	for _, a := range all {
		if a.State != store.Open && a.State != store.Held {
			continue
		}
		audit, err := s.audit(ctx, a, t)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		audits = append(audits, audit)
	}
	return audits, errors.Join(errs...)
}
