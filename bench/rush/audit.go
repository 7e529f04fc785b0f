package main

import (
	"context"
	"errors"
	"time"
)

const (
	// auditPause is the time between two looks at the console.
	auditPause = 200 * time.Millisecond
	// driftLooks is how often a drift must be seen in a row to be believed. The
	// backend takes half a second for each: time for it to notice that Redis was
	// restarted, and to shut the sale.
	driftLooks = 12
)

// audit is the backend's consistent view of one activity: what Redis, the queue
// and SQL hold of it.
type audit struct {
	Total      int64            `json:"total"`
	Available  int64            `json:"available"`
	Frozen     int64            `json:"frozen"`
	Sold       int64            `json:"sold"`
	Outbox     int64            `json:"outbox"`
	Queued     int64            `json:"queued"`
	QueueKnown bool             `json:"queue_known"`
	Orders     map[string]int64 `json:"orders"`
	Units      map[string]int64 `json:"units"`
	Drift      int64            `json:"drift"`
	Consistent bool             `json:"consistent"`
}

// taken is the units that Redis has given away; stored those of SQL's orders
// that hold stock.
func (a audit) taken() int64  { return a.Frozen + a.Sold }
func (a audit) stored() int64 { return a.Units["created"] + a.Units["paid"] }

// settled says that nothing is on its way any more. Units stay frozen while
// stored orders wait for their payment.
func (a audit) settled() bool {
	return a.Outbox == 0 && a.Queued == 0 && a.QueueKnown && a.Consistent && (a.Frozen == 0 || a.Frozen == a.Units["created"])
}

// errUnsettled reports that ctx ended before everything was settled; the others,
// that nothing can be judged meanwhile.
var (
	errUnsettled    = errors.New("not settled in time")
	errQueueUnknown = errors.New("the backend cannot ask the broker what it still holds")
)

// settle asks until nothing is on its way any more, the stock is proven, and a
// drift has stayed. With errUnsettled it returns the last audit it saw, and what
// was in the way. thawed asks that no unit waits for its payment any more, either.
func (c console) settle(ctx context.Context, product string, thawed bool) (last audit, err error) {
	for drifts := 0; ; {
		a, hindrance := c.judge(ctx, product, &last)
		switch {
		case hindrance != nil, !a.settled(), thawed && a.Frozen != 0:
			drifts = 0
		case a.Drift == 0:
			return a, nil
		default:
			if drifts++; drifts == driftLooks {
				return a, nil
			}
		}
		if !pause(ctx, auditPause) {
			if errors.Is(hindrance, ctx.Err()) {
				hindrance = nil // cut short: it says nothing of the console
			}
			return last, errors.Join(errUnsettled, hindrance)
		}
	}
}

// judge looks once. The error says why the figures mean nothing yet.
func (c console) judge(ctx context.Context, product string, last *audit) (audit, error) {
	a, err := c.look(ctx, product)
	if err != nil {
		return a, err
	}
	*last = a
	if !a.QueueKnown {
		return a, errQueueUnknown
	}
	sale, err := c.activity(ctx, product)
	if err == nil && sale.unproven() {
		err = errors.New(sale.Why)
	}
	return a, err
}

// pause waits and says whether ctx lets us go on.
func pause(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}
