package main

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/seckill-edge/seckill/internal/order"
)

// report is the outcome of a run; its JSON is the output of --json.
type report struct {
	URL       string  `json:"url"`
	Product   string  `json:"product"`
	Buyers    int     `json:"buyers"`
	Clicks    int     `json:"clicks"`
	ElapsedMS int64   `json:"elapsed_ms"`
	Outcomes  []row   `json:"outcomes"`
	Accepted  float64 `json:"accepted_per_s"`
	Refused   float64 `json:"refused_per_s"`
	// Life is what became of the orders, with --pay, --cancel and --abandon.
	Life  *life    `json:"life,omitempty"`
	Check *verdict `json:"check,omitempty"`
	// Error says why nothing could be proven.
	Error string `json:"error,omitempty"`
	// AllRefused says that nothing is wrong, and nobody was promised anything.
	AllRefused bool `json:"all_refused,omitempty"`
	OK         bool `json:"ok"`
}

// conclude says how it went.
func (r *report) conclude(t *tally) {
	sound := r.Error == "" && (r.Check == nil || len(r.Check.Failures) == 0)
	r.AllRefused = sound && t.count(queued) == 0 && t.unknown == 0
	r.OK = sound && !r.AllRefused
}

func newReport(s settings, t *tally) report {
	r := report{
		URL: s.url.String(), Product: s.product, Buyers: s.buyers,
		Clicks: t.clicks, ElapsedMS: t.elapsed.Milliseconds(), Outcomes: t.rows(),
	}
	r.Accepted, r.Refused = t.perSecond()
	return r
}

func (r report) print(w io.Writer, asJSON bool) error {
	if asJSON {
		return json.NewEncoder(w).Encode(r)
	}
	_, err := io.WriteString(w, r.text())
	return err
}

func (r report) text() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d buyers, %d clicks in %.2f s: %.0f accepted and %.0f refused a second\n\n",
		r.Buyers, r.Clicks, float64(r.ElapsedMS)/1000, r.Accepted, r.Refused)
	table := tabwriter.NewWriter(&b, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(table, "outcome\tHTTP\tcode\tclicks\tp50 ms\tp99 ms\tmax ms\t")
	for _, o := range r.Outcomes {
		fmt.Fprintf(table, "%s\t%s\t%s\t%d\t%.1f\t%.1f\t%.1f\t\n",
			o.Outcome, dash(o.Status, o.Outcome), dash(o.Code, o.Outcome), o.Clicks, o.P50, o.P99, o.Max)
	}
	table.Flush()
	if l := r.Life; l != nil {
		fmt.Fprintf(&b, "\nlife        paid %d (too late %d), cancelled %d, abandoned %d; buyers came %d times\n",
			l.Paid, l.Late, l.Cancelled, l.Abandoned, l.Rounds)
	}
	if r.Check != nil {
		b.WriteByte('\n')
		r.Check.write(&b)
	}
	if r.AllRefused {
		fmt.Fprintf(&b, "\nEvery click was refused, most as %q.\n", r.Outcomes[0].Outcome)
	}
	if r.Error != "" {
		fmt.Fprintf(&b, "\nNothing is proven: %s\n", r.Error)
	}
	return b.String()
}

// dash hides the numbers of a click that got no answer.
func dash(n int, kind string) string {
	if kind == noAnswer {
		return "-"
	}
	return fmt.Sprint(n)
}

func (v *verdict) write(b *strings.Builder) {
	a := v.Audit
	fmt.Fprintf(b, "this run    units told %s, sold %d, stored %d\n", interval(v.Told, v.Told+v.Unknown), v.Sold, v.Stored)
	fmt.Fprintf(b, "whole sale  units total %d = available %d + frozen %d + sold %d, drift %d\n", a.Total, a.Available, a.Frozen, a.Sold, a.Drift)
	fmt.Fprint(b, "            orders")
	for _, state := range slices.Sorted(maps.Keys(a.Orders)) {
		if a.Orders[state] > 0 {
			fmt.Fprintf(b, " %s %d,", state, a.Orders[state])
		}
	}
	fmt.Fprintf(b, " in the outbox %d, in the queue %d\n", a.Outbox, a.Queued)
	rejected := v.Fates.Orders[order.Rejected]
	if rejected > 0 {
		fmt.Fprintf(b, "later       rejected %d (", rejected)
		for i, reason := range slices.Sorted(maps.Keys(v.Fates.Reasons)) {
			fmt.Fprintf(b, "%s%s %d", map[bool]string{true: "", false: ", "}[i == 0], reason, v.Fates.Reasons[reason])
		}
		fmt.Fprintln(b, ")")
	}
	for _, f := range v.Failures {
		fmt.Fprintf(b, "FAILED      %s\n", f)
	}
	switch {
	case len(v.Failures) > 0:
	case rejected > 0:
		fmt.Fprintln(b, "ok          every promised order is stored or was rejected, as its buyer reads, and nothing else is stored")
	default:
		fmt.Fprintln(b, "ok          every promised order is stored, and nothing else")
	}
}
