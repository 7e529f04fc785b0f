package main

import (
	"fmt"

	"github.com/seckill-edge/seckill/internal/order"
)

// verdict is the comparison of what the buyers were told with what the stores
// hold.
type verdict struct {
	// Told is the units of promised orders that their buyers can read as created
	// or paid; Unknown those of clicks without an answer, which may have bought.
	Told    int64 `json:"told"`
	Unknown int64 `json:"unknown"`
	// Sold and Stored are the units that Redis gave away and SQL stored during
	// the run.
	Sold   int64 `json:"sold"`
	Stored int64 `json:"stored"`
	Fates  fates `json:"fates"`
	Audit  audit `json:"audit"`
	// Failures are sentences; none means that everything agrees.
	Failures []string `json:"failures"`
}

// compare judges a settled run. before and after are the audits around it.
func compare(t *tally, f fates, before, after audit) verdict {
	v := verdict{
		Told:    int64(f.Units[order.Created] + f.Units[order.Paid]),
		Unknown: int64(t.unknown), // a click of the crowd asks for one unit
		Sold:    after.taken() - before.taken(),
		Stored:  after.stored() - before.stored(),
		Fates:   f, Audit: after,
		Failures: []string{},
	}
	v.fail(after.taken() != after.stored(),
		"Redis gave away %d units and SQL stored %d", after.taken(), after.stored())
	v.fail(v.Stored < v.Told || v.Stored > v.Told+v.Unknown,
		"the buyers hold %s units and SQL stored %d", interval(v.Told, v.Told+v.Unknown), v.Stored)
	v.fail(after.Drift != 0, "the stores drift by %d units", after.Drift)
	v.fail(after.stored() > after.Total, "oversold: %d units stored, there were %d", after.stored(), after.Total)
	v.fail(f.Orders[unknownOrder] > 0,
		"%d promised orders are unknown to the edge, as %s", f.Orders[unknownOrder], f.lost)
	v.fail(f.Orders[order.Queued] > 0,
		"%d promised orders still read as queued", f.Orders[order.Queued])
	if len(t.twice) > 0 {
		v.fail(true, "%d order ids were promised twice, as %s", len(t.twice), t.twice[0])
	}
	return v
}

// fail notes what is broken.
func (v *verdict) fail(broken bool, format string, args ...any) {
	if broken {
		v.Failures = append(v.Failures, fmt.Sprintf(format, args...))
	}
}

// lives adds what must hold when all orders have ended: every unit is paid for or
// for sale again.
func (v *verdict) lives(l *life, before, after audit) {
	paid := after.Units["paid"] - before.Units["paid"]
	applied := int64(v.Fates.Units[order.Paid])
	v.fail(paid != applied, "SQL has %d units paid in this run, the buyers read %d", paid, applied)
	v.fail(int64(v.Fates.Orders[order.Paid]) != l.Paid-l.Late,
		"%d orders read as paid, %d payments were applied", v.Fates.Orders[order.Paid], l.Paid-l.Late)
	v.fail(after.Available+after.Sold != after.Total || after.Frozen != 0 || after.Units["created"] != 0,
		"not every unit is paid for or for sale: total %d, available %d, frozen %d, sold %d, waiting for payment %d",
		after.Total, after.Available, after.Frozen, after.Sold, after.Units["created"])
	if failure := l.failure.Load(); failure != nil {
		v.fail(true, "%d payments or cancellations were refused, as %v", l.Failed, *failure)
	}
}

func interval(low, high int64) string {
	if low == high {
		return fmt.Sprint(low)
	}
	return fmt.Sprintf("%d to %d", low, high)
}
