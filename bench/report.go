package main

import (
	"fmt"
	"io"
	"runtime"
	"slices"
	"text/tabwriter"
)

// goals are what issue and README promise.
var goals = []struct {
	name string
	goal float64
	what string
}{
	{"soldout", 0.85, "sold-out refusals ÷ bare Caddy respond"},
	{"proved", 0.75, "the same with signed tokens and tickets ÷ bare Caddy respond"},
	{"status", 0.7, "own orders' states told ÷ bare Caddy respond"},
	{"accepted", 0.35, "purchases accepted, confirmed and stored ÷ bare Caddy respond"},
	{"shut", 0.8, "refusals while Redis is down ÷ sold-out refusals"},
	{"grouped", 5, "reservations a second grouped ÷ one per call"},
	{"batched", 15, "orders stored a second in batches ÷ one a transaction"},
}

// report gathers figures over the rounds.
type report struct {
	options options
	ratios  map[string][]float64
	figures map[string][]float64 // absolute, for orientation
	order   []string
}

func newReport(o options) *report {
	return &report{options: o, ratios: map[string][]float64{}, figures: map[string][]float64{}}
}

func (r *report) ratio(name string, v float64) {
	r.ratios[name] = append(r.ratios[name], v)
	fmt.Printf("  %-10s %.2f\n", name, v)
}

func (r *report) figure(name string, v float64) {
	if _, ok := r.figures[name]; !ok {
		r.order = append(r.order, name)
	}
	r.figures[name] = append(r.figures[name], v)
	fmt.Printf("  %-46s %12.1f\n", name, v)
}

func (r *report) print(w io.Writer) {
	fmt.Fprintln(w)
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "ratio\tmedian\tmin\tmax\tgoal\t\t")
	for _, g := range goals {
		v := r.ratios[g.name]
		verdict := "reached"
		if median(v) < g.goal {
			verdict = "NOT reached"
		}
		fmt.Fprintf(t, "%s\t%.2f\t%.2f\t%.2f\t≥ %g\t%s\t%s\n", g.name, median(v), slices.Min(v), slices.Max(v), g.goal, verdict, g.what)
	}
	_ = t.Flush()
}

// document is what is written as JSON.
func (r *report) document() any {
	medians := func(m map[string][]float64) map[string]float64 {
		out := make(map[string]float64, len(m))
		for name, v := range m {
			out[name] = median(v)
		}
		return out
	}
	return map[string]any{
		"ratios":      medians(r.ratios),
		"all_ratios":  r.ratios,
		"figures":     medians(r.figures),
		"rounds":      r.options.rounds,
		"seconds":     r.options.seconds,
		"connections": r.options.connections,
		"cores":       runtime.NumCPU(),
		"go":          runtime.Version(),
	}
}

func median(v []float64) float64 {
	s := slices.Sorted(slices.Values(v))
	if n := len(s); n%2 == 0 {
		return (s[n/2-1] + s[n/2]) / 2
	}
	return s[len(s)/2]
}
