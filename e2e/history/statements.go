package history

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// Claim is what a statement comes to.
type Claim string

// The claims.
const (
	// Ready: it can do its work now. Only edges and backends say so.
	Ready Claim = "ready"
	// NotReady: it cannot, because of the servers that the statement names.
	NotReady Claim = "not ready"
	// Selling: the sale sells now.
	Selling Claim = "selling"
	// NoBackend: no backend runs.
	NoBackend Claim = "no backend runs"
	// HeldBySomebody: an operator holds the sale.
	HeldBySomebody Claim = "held"
)

// Statement is what a program says of itself or of a sale.
type Statement struct {
	// By is the program, as "edge 1", "backend 2" or "command line", Place where it
	// says it, as "/readyz".
	By, Place string
	// At is when it was asked, End when it had answered.
	At, End time.Time
	Claim   Claim
	// Names are the servers that it names as the cause.
	Names []Server
	// Text is the statement itself.
	Text string
}

const (
	// repeats is how many statements in a row must say the same untruth: the first
	// ones may be from what the program knew before.
	repeats = 3
	// repeatsAfter is the same once the fault is over and every edge sells again:
	// connections come back one by one.
	repeatsAfter = 12
	// brokerSilence is how long a broker may be silent until its connections count as
	// broken: three heartbeats of 5 s.
	brokerSilence = 15 * time.Second
)

// statements looks for statements that contradict what was done to the servers.
func (c *check) statements() {
	type speaker struct{ by, place string }
	said, times := map[speaker]string{}, map[speaker]int{}
	told := map[string]bool{}
	for i := range c.Statements {
		s := &c.Statements[i]
		who := speaker{s.By, s.Place}
		untruth, enough := c.untruth(s)
		if untruth == "" || untruth != said[who] {
			said[who], times[who] = untruth, 0
		}
		if untruth == "" {
			continue
		}
		times[who]++
		key := fmt.Sprint(who, untruth)
		if times[who] >= enough && !told[key] {
			told[key] = true
			c.fail(Untrue, "%s says on %s %q: %s", s.By, s.Place, s.Text, untruth)
		}
	}
}

// untruth is what is wrong with a statement, and how often in a row it must be said
// to count; empty if nothing is.
func (c *check) untruth(s *Statement) (words string, enough int) {
	switch s.Claim {
	case Ready:
		return c.readyThough(s), repeats
	case Selling:
		return c.sellingThough(s), repeats
	case NotReady:
		if c.well(s.At, s.End) {
			return "all is well", repeatsAfter
		}
		return c.blamesWrongly(s), repeats
	case NoBackend:
		return c.aBackendRuns(s), repeats
	case HeldBySomebody:
		if !c.Holds {
			return "nobody holds the sale", repeats
		}
	}
	return "", 0
}

// needs are the servers without which a program is not ready: an edge sells without
// the broker and the database.
func needs(program string) []Server {
	if strings.HasPrefix(program, "edge") {
		return []Server{Redis}
	}
	return []Server{Redis, Database, Broker}
}

func (c *check) readyThough(s *Statement) string {
	for _, server := range needs(s.By) {
		o := c.broken(s.By, s.At, s.End, server)
		switch {
		case o == nil:
		case server == Broker && o.Cause == Refuses: // it still delivers
		case server == Broker && o.Cause == Silent && s.At.Sub(o.Broken) < brokerSilence:
		case server == Redis && !c.failedSince(o, s.At):
		default:
			return fmt.Sprintf("%s %s", server, o.Cause)
		}
	}
	return ""
}

func (c *check) sellingThough(s *Statement) string {
	o := c.broken(s.By, s.At, s.End, Redis)
	if o == nil || o.Programs != nil || !c.failedSince(o, s.At) {
		return ""
	}
	return fmt.Sprintf("%s %s", Redis, o.Cause)
}

// failedSince says that a purchase has failed since Redis was certainly broken, and
// before a moment: from then on nobody can say that they have not noticed.
func (c *check) failedSince(o *Outage, until time.Time) bool {
	for i := range c.Clicks {
		click := &c.Clicks[i]
		if click.Status == 503 && click.Start.After(o.Broken) && click.End.Before(until) && o.hits(fmt.Sprint("edge ", click.Edge+1)) {
			return true
		}
	}
	// Where no edge is hit, what fails is a backend's work.
	return o.Programs != nil && !slices.ContainsFunc(o.Programs, func(p string) bool { return strings.HasPrefix(p, "edge") })
}

// blamesWrongly looks for the servers that a statement names among those that may
// be broken for that program.
func (c *check) blamesWrongly(s *Statement) string {
	for _, name := range s.Names {
		blamed, others := false, []string(nil)
		for i := range c.Outages {
			o := &c.Outages[i]
			switch {
			case o.Server == Program || !o.hits(s.By) || s.At.Before(o.Begun):
			case o.Server == name:
				blamed = true
			case o.certain(s.At, s.End):
				others = append(others, fmt.Sprintf("%s %s", o.Server, o.Cause))
			}
		}
		if !blamed && len(others) > 0 {
			return fmt.Sprintf("names %s, but %s", name, strings.Join(others, " and "))
		}
	}
	return ""
}

// aBackendRuns says whether one runs and reaches Redis, so that its heartbeats are
// there, or only Redis refuses to take them.
func (c *check) aBackendRuns(s *Statement) string {
	for n := 1; n <= c.Backends; n++ {
		name, runs := fmt.Sprint("backend ", n), true
		for i := range c.Outages {
			o := &c.Outages[i]
			if o.Programs != nil && o.hits(name) && (o.Server == Program || o.Server == Redis) && !s.End.Before(o.Begun) {
				runs = runs && !c.SellsAgain.IsZero() && s.At.After(c.SellsAgain) && s.At.After(o.Healed)
			}
		}
		if runs {
			return name + " runs"
		}
	}
	return ""
}
