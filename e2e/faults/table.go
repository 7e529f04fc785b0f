package faults

import (
	"fmt"
	"time"

	"github.com/seckill-edge/seckill/e2e/history"
)

// columns are the kinds of violations in the table.
var columns = []history.Kind{history.Lost, history.Oversold, history.Duplicated, history.Stuck, history.Late, history.Untrue}

// line is one kind of fault in the table.
type line struct {
	kind              string
	rounds            int
	counts            map[history.Kind]int
	givenUp, refused  int
	orders            int64
	recovery, settled time.Duration
	slowest           time.Duration
}

func (l *line) add(r *Result) {
	l.rounds++
	l.orders += r.Orders
	for _, kind := range columns {
		l.counts[kind] += r.Count(kind)
	}
	if r.Err != nil {
		l.counts[history.Stuck]++
	}
	l.givenUp += r.GivenUp
	for _, n := range r.Refused {
		l.refused += n
	}
	l.recovery, l.settled, l.slowest = max(l.recovery, r.Recovery), max(l.settled, r.Settled), max(l.slowest, r.Age)
}

// report prints the table. The last line is Total's, for the caller to print.
func (m Matrix) report(results []Result) Total {
	var lines []*line
	total := Total{Rounds: len(results)}
	for i := range results {
		r := &results[i]
		if len(lines) == 0 || lines[len(lines)-1].kind != r.Kind {
			lines = append(lines, &line{kind: r.Kind, counts: map[history.Kind]int{}})
		}
		lines[len(lines)-1].add(r)
	}
	total.Kinds = len(lines)
	fmt.Fprintf(m.Out, "\nseeds %d to %d for each kind\n\n", m.Seed, m.Seed+uint64(max(m.Rounds, 1))-1)
	fmt.Fprintf(m.Out, "%-36s %6s %7s", "fault", "rounds", "orders")
	for _, kind := range columns {
		fmt.Fprintf(m.Out, " %*s", len(kind), kind)
	}
	fmt.Fprintf(m.Out, " %8s %7s %11s %7s %7s\n", "given up", "refused", "sells again", "at rest", "slowest")
	for _, l := range lines {
		fmt.Fprintf(m.Out, "%-36s %6d %7d", l.kind, l.rounds, l.orders)
		for _, kind := range columns {
			fmt.Fprintf(m.Out, " %*d", len(kind), l.counts[kind])
		}
		fmt.Fprintf(m.Out, " %8d %7d %11s %7s %7s\n", l.givenUp, l.refused, tenths(l.recovery), tenths(l.settled), tenths(l.slowest))
		total.Lost += l.counts[history.Lost]
		total.Oversold += l.counts[history.Oversold]
		total.Duplicated += l.counts[history.Duplicated]
		total.Stuck += l.counts[history.Stuck]
		total.Late += l.counts[history.Late]
		total.Untrue += l.counts[history.Untrue]
	}
	fmt.Fprint(m.Out, "\nlate: orders whose fate was not known by their resolve_by, though Redis and SQL were there. untrue: statements\n"+
		"(status, readiness, activity show, logs, metrics, refusals) that contradict what was done to the servers, and\n"+
		"final states that changed. given up: orders that came to nothing where they may, and whose buyers were told:\n"+
		"\"queued\" without Redis's word while it stayed away or the edge died, or forgotten by Redis and an edge in one\n"+
		"moment under appendfsync everysec. refused: 202s that ended in a refusal. sells again, at rest: the slowest,\n"+
		"counted from the heal. slowest: the longest from an order's reservation until it was stored.\n\n")
	return total
}
