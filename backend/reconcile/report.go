// Package reconcile finds where Redis, the queue and SQL disagree about an
// activity, names each difference, and mends what has one right answer. It may
// run at any time, under load, twice, and in several processes: what it writes is
// guarded by order id, or by epoch and counters, and it never copies one store
// over another.
package reconcile

import (
	"time"

	"github.com/seckill-edge/seckill/backend/compare"
	"github.com/seckill-edge/seckill/backend/fence"
)

// Figure is a number as two sides have it.
type Figure struct {
	Redis string `json:"redis"`
	Right string `json:"right" doc:"What it should be, by SQL's rows or by the buyers' records."`
}

// Finding is one difference.
type Finding struct {
	Kind compare.Kind `json:"kind"`
	// OrderID and UserID are empty for counters and keys.
	OrderID string `json:"order_id,omitempty"`
	UserID  string `json:"user_id,omitempty"`
	// What names the key, counter or states in question.
	What string `json:"what"`
	// Figures, for counters: as stored and as they should be.
	Figures *Figure `json:"figures,omitempty"`
	// Mend is what is done about it: publish, settle, rebuild, remove, or report
	// for what has no one right answer.
	Mend   Mend `json:"mend" enum:"publish,settle,rebuild,remove,report"`
	Mended bool `json:"mended"`

	difference compare.Difference
}

// Mend is a way to mend.
type Mend string

// The ways.
const (
	Publish Mend = "publish"
	Settle  Mend = "settle"
	Rebuild Mend = "rebuild"
	Remove  Mend = "remove"
	Tell    Mend = "report"
)

var mends = map[compare.Kind]Mend{
	compare.Unpublished:        Publish,
	compare.LostAfterPublish:   Publish,
	compare.StoredNotSettled:   Settle,
	compare.SettledNotStored:   Tell,
	compare.MissingInRedis:     Rebuild,
	compare.StateConflict:      Rebuild,
	compare.UnknownOutboxEntry: Remove,
	compare.DamagedRecord:      Rebuild,
	compare.ReleasedTwice:      Rebuild,
	compare.CounterDrift:       Rebuild,
	compare.DamagedCounter:     Rebuild,
	compare.MissingKey:         Rebuild,
	compare.Unproven:           Rebuild,
	compare.UnknownKey:         Tell,
	compare.StaleDead:          Tell,
}

// maxFindings bounds what a report shows; Counts goes on counting.
const maxFindings = 1000

// Report is what one inspection has found.
type Report struct {
	ActivityID string    `json:"activity_id"`
	ProductID  string    `json:"product_id"`
	At         time.Time `json:"at"`
	// Idle says that no order was on its way: no edge, queue or backend had one.
	Idle bool `json:"idle" doc:"No order was on its way. If false, orders that may still arrive are not reported."`
	// Buyers, Entries, Live and Rows are what was compared; OnTheWay what was too
	// young or may still arrive.
	Buyers   int64 `json:"buyers" doc:"Buyers' records in Redis."`
	Entries  int64 `json:"entries" doc:"Orders in them."`
	Live     int64 `json:"live" doc:"Those of them that hold stock, as Rows do."`
	Rows     int64 `json:"rows" doc:"Orders in SQL that hold stock."`
	OnTheWay int64 `json:"on_the_way" doc:"Orders that may still arrive."`
	// Counts are all findings by kind; Findings the first thousand of them.
	Counts   map[compare.Kind]int `json:"counts"`
	Mended   map[compare.Kind]int `json:"mended"`
	Findings []Finding            `json:"findings"`
	// Proof is set if the stock was rebuilt.
	Proof *fence.Proof `json:"-"`
	// Note says why something was not mended.
	Note string `json:"note,omitempty"`

	// unproven says that the stock had to be proven when the inspection began.
	unproven bool
	// untold are findings that are mended like the others and not shown.
	untold []Finding
}

func (r *Report) add(f Finding) {
	f.Mend = mends[f.Kind]
	r.Counts[f.Kind]++
	if len(r.Findings) < maxFindings {
		r.Findings = append(r.Findings, f)
	} else if len(r.untold) < maxDifferences {
		r.untold = append(r.untold, f)
	}
}

// toMend are all findings of which something is done in this way.
func (r *Report) toMend(way Mend) []*Finding {
	var found []*Finding
	for _, list := range [][]Finding{r.Findings, r.untold} {
		for i := range list {
			if list[i].Mend == way {
				found = append(found, &list[i])
			}
		}
	}
	return found
}

// Clean says that nothing is left to be done or to be told.
func (r *Report) Clean() bool {
	for kind, n := range r.Counts {
		if r.Mended[kind] < n {
			return false
		}
	}
	return true
}

// mended notes that so many findings of a kind are no more.
func (r *Report) mended(kind compare.Kind, n int) {
	if n > 0 {
		r.Mended[kind] += n
	}
}
