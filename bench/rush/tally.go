package main

import (
	"cmp"
	"fmt"
	"slices"
	"time"
)

// tally is what the buyers were told, counted.
type tally struct {
	buyers, clicks int
	elapsed        time.Duration
	took           map[outcome][]time.Duration
	orders         map[string]told // by order id
	units          map[int]int     // queued, by buyer
	unknown        int             // clicks that may have bought
	firstErr       error           // why a click has no proper answer
	twice          []string        // order ids that two buyers were told
}

// told is an order that a buyer was promised.
type told struct {
	buyer    int
	quantity int
}

func newTally() *tally {
	return &tally{
		took:   map[outcome][]time.Duration{},
		orders: map[string]told{},
		units:  map[int]int{},
	}
}

func (t *tally) add(a answer) {
	t.clicks++
	t.took[a.outcome] = append(t.took[a.outcome], a.took)
	switch {
	case a.kind == noAnswer:
		t.unknown++
		t.firstErr = cmp.Or(t.firstErr, a.err)
	case a.unknown():
		t.unknown++
		t.firstErr = cmp.Or(t.firstErr, fmt.Errorf("HTTP %d that no edge answers a purchase with", a.status))
	case a.kind == queued:
		if _, known := t.orders[a.orderID]; known {
			t.twice = append(t.twice, a.orderID)
			return
		}
		t.orders[a.orderID] = told{a.buyer, a.quantity}
		t.units[a.buyer] += a.quantity
	}
}

// row is one outcome of the report.
type row struct {
	Outcome string  `json:"outcome"`
	Status  int     `json:"status"`
	Code    int     `json:"code"`
	Clicks  int     `json:"clicks"`
	P50     float64 `json:"p50_ms"`
	P99     float64 `json:"p99_ms"`
	Max     float64 `json:"max_ms"`
}

// rows lists the outcomes, the most frequent first but queued before all.
func (t *tally) rows() []row {
	var rows []row
	for o, took := range t.took {
		slices.Sort(took)
		rows = append(rows, row{
			Outcome: o.kind, Status: o.status, Code: o.code, Clicks: len(took),
			P50: percentile(took, 50), P99: percentile(took, 99), Max: percentile(took, 100),
		})
	}
	slices.SortFunc(rows, func(a, b row) int {
		if (a.Outcome == queued) != (b.Outcome == queued) {
			return map[bool]int{true: -1, false: 1}[a.Outcome == queued]
		}
		return cmp.Or(cmp.Compare(b.Clicks, a.Clicks), cmp.Compare(a.Status, b.Status), cmp.Compare(a.Code, b.Code), cmp.Compare(a.Outcome, b.Outcome))
	})
	return rows
}

// count is the clicks that came to kind.
func (t *tally) count(kind string) (n int) {
	for o, took := range t.took {
		if o.kind == kind {
			n += len(took)
		}
	}
	return n
}

// perSecond are the clicks accepted and refused a second; those without an
// answer are neither.
func (t *tally) perSecond() (accepted, refused float64) {
	s := max(t.elapsed.Seconds(), 1e-9)
	yes := t.count(queued)
	return float64(yes) / s, float64(t.clicks-yes-t.count(noAnswer)) / s
}

// percentile of sorted times in milliseconds: the smallest that p percent of
// them do not exceed.
func percentile(sorted []time.Duration, p int) float64 {
	i := (len(sorted)*p+99)/100 - 1
	return float64(sorted[max(i, 0)].Microseconds()) / 1000
}

// greedy finds a buyer who was told that he has more than limit units.
func (t *tally) greedy(limit int) (buyer, units int, found bool) {
	for b, units := range t.units {
		if units > limit {
			return b, units, true
		}
	}
	return 0, 0, false
}
