package history

import (
	"time"
)

// look is how long a program may take to look at all of its servers before it logs what
// it has seen: what it says of one is as old as that.
const look = 2 * time.Second

// Line is a line of a program's log that begins or ends an outage.
type Line struct {
	By string // the program
	// What tells the outages of one program apart, as "Redis, product 1001".
	What string
	// Server is whom the line is about; empty if it does not say.
	Server Server
	At     time.Time
	Begins bool // else it says that all is well again
	Text   string
}

// lines looks for logs that tell of one fault more than once, or of its end while it
// lasts.
func (c *check) lines() {
	type topic struct{ by, what string }
	begun := map[topic]int{}
	early, ends := map[topic]*Outage{}, map[topic]int{}
	for i := range c.Lines {
		l := &c.Lines[i]
		key := topic{l.By, l.What}
		if l.Begins {
			begun[key]++
			if allowed := c.faults(l.By); begun[key] == allowed+1 {
				c.fail(Untrue, "%s logs the beginning of an outage (%s) for time %d, and there was %d: %q", l.By, l.What, begun[key], allowed, l.Text)
			}
			continue
		}
		if o := c.broken(l.By, l.At.Add(-look), l.At, l.Server); o != nil {
			early[key] = o
			ends[key]++
		}
	}
	for key, o := range early {
		c.fail(Untrue, "%s logs the end of an outage (%s) %d times while %s %s", key.by, key.what, ends[key], o.Server, o.Cause)
	}
}

// faults is how many outages a program may have seen; without one of its servers it
// may have seen the end of another program.
func (c *check) faults(program string) int {
	n := 0
	for i := range c.Outages {
		if c.Outages[i].Server != Program && c.Outages[i].hits(program) {
			n += max(c.Outages[i].Times, 1)
		}
	}
	return max(n, 1)
}
