package history

import (
	"slices"
	"time"
)

// Server is what a program needs and a fault can hit.
type Server string

// The servers. Program is one of our own: it is not there itself.
const (
	Redis    Server = "redis"
	Broker   Server = "rabbitmq"
	Database Server = "database"
	Program  Server = "program"
)

// Cause is what is wrong with a server.
type Cause string

// The causes.
const (
	// Away: connections break and none can be made, or a program has ended.
	Away Cause = "is away"
	// Silent: connections stay open, and nothing is answered.
	Silent Cause = "does not answer"
	// Refuses: it is there and does not take what a purchase or an order needs.
	Refuses Cause = "refuses writes"
	// Now and then: it is slow, or works in between.
	Fitful Cause = "works now and then"
	// Forgets: it has lost something that it had confirmed.
	Forgets Cause = "has forgotten"
)

// Outage is what was done to a server, and when. Nobody can say how things are from
// Begun to Broken and from Healing to Healed; between Broken and Healing it is
// certain.
type Outage struct {
	Server Server
	Cause  Cause
	// Programs are those for whom it is broken, as "edge 1" and "backend 2"; nil
	// means all of them: the server itself is broken.
	Programs []string
	// Times is how often it was broken in a row, if it worked in between: each may be
	// told of. 0 means once.
	Times int
	// Recovery is how long after Healed it may take until all is well, as the
	// documentation has it.
	Recovery                       time.Duration
	Begun, Broken, Healing, Healed time.Time
}

// hits says whether the outage is one for a program.
func (o *Outage) hits(program string) bool {
	return o.Programs == nil || slices.Contains(o.Programs, program)
}

// certain says that the server was broken all the time from one moment to another.
func (o *Outage) certain(from, until time.Time) bool {
	return o.Cause != Fitful && o.Cause != Forgets && from.After(o.Broken) && until.Before(o.Healing)
}

// possible says that it may have been broken at some time between.
func (o *Outage) possible(from, until time.Time) bool {
	return !until.Before(o.Begun) && !from.After(o.Healed.Add(o.Recovery))
}

// broken finds a server out of some that was certainly broken for a program.
func (c *check) broken(program string, from, until time.Time, servers ...Server) *Outage {
	for i := range c.Outages {
		if o := &c.Outages[i]; slices.Contains(servers, o.Server) && o.hits(program) && o.certain(from, until) {
			return o
		}
	}
	return nil
}

// well says that nothing was broken for anybody: the fault has not begun, or every
// edge has sold again since.
func (c *check) well(from, until time.Time) bool {
	before, after := true, !c.SellsAgain.IsZero() && from.After(c.SellsAgain)
	for i := range c.Outages {
		before = before && until.Before(c.Outages[i].Begun)
		after = after && from.After(c.Outages[i].Healed.Add(c.Outages[i].Recovery))
	}
	return before || after
}
