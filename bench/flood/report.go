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

// judge names what is not as it should be.
func (s seen) judge(o options) []string {
	var wrong []string
	add := func(format string, values ...any) { wrong = append(wrong, fmt.Sprintf(format, values...)) }
	if n := s.strangers.total(); n != o.strangers {
		add("%d of %d strangers called within %v; this machine is too slow, allow more by --within", n, o.strangers, o.within)
	}
	if s.strangers.other > 0 {
		add("%d strangers got an answer that is neither the shop's nor a limit's", s.strangers.other)
	}
	if s.strangers.limited*1000 > s.strangers.total() {
		add("%d strangers were limited at their first call", s.strangers.limited)
	}
	if most := uint64(ipBurst + math.Ceil(s.took.Hours()*ipPerHour)); s.abuser.letIn > most {
		add("the abuser was let in %d times, %d are his share", s.abuser.letIn, most)
	}
	if least := uint64(float64(o.abuse) * s.took.Seconds() * 0.8); s.abuser.total() < least {
		add("the abuser called %d times only, %d were planned; the machine is too busy", s.abuser.total(), least)
	}
	if s.abuser.other > 0 {
		add("the abuser got %d answers that are neither the shop's nor a limit's", s.abuser.other)
	}
	if s.served != o.honest {
		add("%d of %d honest buyers were served; first failure: %s", s.served, o.honest, s.failure)
	}
	if s.peak > o.memory {
		add("the edge needed %.0f MiB, more than %.0f", s.peak, o.memory)
	}
	return wrong
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
