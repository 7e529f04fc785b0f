package main

import (
	"fmt"
	"io"
	"math"
	"time"
)

// The limit of an address in this test.
const (
	ipBurst   = 60
	ipPerHour = 60
	ipLimit   = "60/1h burst 60"
)

// counts are answers by what they mean to the caller.
type counts struct {
	letIn   uint64 // whatever is behind the limits has answered
	limited uint64 // 429
	other   uint64 // anything else, a lost connection too
}

func (c counts) total() uint64 { return c.letIn + c.limited + c.other }

// seen is what a run has shown.
type seen struct {
	strangers, abuser counts
	served            int           // honest buyers who got all four answers
	again             int           // how often they were told to come again (503), and did
	failure           string        // the first honest call that went wrong
	p50, p99          time.Duration // of honest calls
	took              time.Duration
	peak              float64 // MiB of the edge
	keys              string  // addresses told apart at the end
}

// finding is what became of one check.
type finding string

// The findings.
const (
	held     finding = "held"
	wrong    finding = "WRONG"
	unproven finding = "NOT PROVEN" // this machine was too slow to put it to the test
)

// check is one thing that a run has to show.
type check struct {
	finding
	words string
}

// judge says of each check whether it held.
func (s seen) judge(o options) []check {
	var checks []check
	judge := func(ok bool, otherwise finding, good, bad string) {
		c := check{held, good}
		if !ok {
			c = check{otherwise, bad}
		}
		checks = append(checks, c)
	}
	called := s.strangers.total()
	judge(called == o.strangers, unproven,
		fmt.Sprintf("all %d strangers called", called),
		fmt.Sprintf("%d of %d strangers called within %v; this machine is too slow now, allow more by --within, or send fewer by --strangers", called, o.strangers, o.within))
	judge(s.strangers.other == 0, wrong,
		"each stranger got an answer, the shop's or a limit's",
		fmt.Sprintf("%d strangers got an answer that is neither the shop's nor a limit's", s.strangers.other))
	judge(s.strangers.limited*1000 <= called, wrong,
		"strangers were let in",
		fmt.Sprintf("%d strangers were limited at their first call", s.strangers.limited))
	most := uint64(ipBurst + math.Ceil(s.took.Hours()*ipPerHour))
	judge(s.abuser.letIn <= most, wrong,
		fmt.Sprintf("the abuser was let in %d times, of %d that are his share", s.abuser.letIn, most),
		fmt.Sprintf("the abuser was let in %d times, %d are his share", s.abuser.letIn, most))
	least := uint64(float64(o.abuse) * s.took.Seconds() * 0.8)
	judge(s.abuser.total() >= least, unproven,
		fmt.Sprintf("the abuser called %d times", s.abuser.total()),
		fmt.Sprintf("the abuser called %d times only, %d were planned; this machine is too busy now", s.abuser.total(), least))
	judge(s.abuser.other == 0, wrong,
		"each of his answers was the shop's or a limit's",
		fmt.Sprintf("the abuser got %d answers that are neither the shop's nor a limit's", s.abuser.other))
	judge(s.served == o.honest, wrong,
		fmt.Sprintf("all %d honest buyers were served", s.served),
		fmt.Sprintf("%d of %d honest buyers were served; first failure: %s", s.served, o.honest, s.failure))
	judge(s.peak <= o.memory, wrong,
		fmt.Sprintf("the edge needed %.0f MiB, of %.0f at most", s.peak, o.memory),
		fmt.Sprintf("the edge needed %.0f MiB, more than %.0f", s.peak, o.memory))
	return checks
}

// conclude prints the checks and returns the exit code.
func conclude(w io.Writer, checks []check) int {
	count := map[finding]int{}
	for _, c := range checks {
		count[c.finding]++
		fmt.Fprintf(w, "%-11s %s\n", c.finding, c.words)
	}
	switch {
	case count[wrong] > 0:
		fmt.Fprintf(w, "\n%d of %d checks are WRONG.\n", count[wrong], len(checks))
		return exitWrong
	case count[unproven] > 0:
		fmt.Fprintln(w, "\nNOT PROVEN: nothing is wrong, but this was not the whole test.")
		return exitUnproven
	}
	fmt.Fprintln(w, "\nThe abuser stayed limited, everybody honest was served, and the memory is within its bound.")
	return exitDone
}

func (s seen) print(w io.Writer) {
	fmt.Fprintf(w, "\n%-12s %10s %10s %10s %8s\n", "", "calls", "let in", "limited", "other")
	for _, row := range []struct {
		name string
		counts
	}{{"strangers", s.strangers}, {"abuser", s.abuser}} {
		fmt.Fprintf(w, "%-12s %10d %10d %10d %8d\n", row.name, row.total(), row.letIn, row.limited, row.other)
	}
	fmt.Fprintf(w, "\nhonest buyers served            %d, told %d times to come again\n", s.served, s.again)
	fmt.Fprintf(w, "their calls, p50 and p99        %v  %v\n", s.p50.Round(100*time.Microsecond), s.p99.Round(100*time.Microsecond))
	fmt.Fprintf(w, "the flood took                  %v, %.0f calls/s\n", s.took.Round(100*time.Millisecond), float64(s.strangers.total())/s.took.Seconds())
	fmt.Fprintf(w, "addresses told apart at the end %s\n", s.keys)
	fmt.Fprintf(w, "the edge's memory at its peak   %.0f MiB\n\n", s.peak)
}
