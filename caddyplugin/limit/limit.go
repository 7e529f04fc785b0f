// Package limit says how many calls are let in: of one address, of one buyer, for
// one product, on this edge, and on all edges together. It works in bounded
// memory, and no call waits for another server. The local token buckets are
// golang.org/x/time/rate's; what is ours is forgetting them without giving
// anything away, and taking tokens ahead of a count that all edges share.
package limit

// Level is one of the limits, told apart in answers and metrics.
type Level uint8

// The levels, in the order they are asked.
const (
	IP             Level = iota // one client address
	Total                       // this edge
	SharedTotal                 // all edges
	User                        // one buyer
	Activity                    // one product, on this edge
	SharedActivity              // one product, on all edges

	levels = iota
)

// Levels are all there are.
var Levels = [levels]Level{IP, Total, SharedTotal, User, Activity, SharedActivity}

// String names the level the way answers and metrics do.
func (l Level) String() string {
	return [levels]string{"ip", "total", "shared_total", "user", "activity", "shared_activity"}[l]
}

// Shared says that all edges count together.
func (l Level) Shared() bool { return l == SharedTotal || l == SharedActivity }

// Set is a set of levels.
type Set uint8

func (s Set) with(l Level) Set { return s | 1<<l }

// Has says whether l is in the set.
func (s Set) Has(l Level) bool { return s>>l&1 == 1 }

// Verdict is what the limits say to one call. The zero Verdict lets it in.
type Verdict struct {
	// Refused says that the call must not go on, and Level which limit says so;
	// Denied that its address is on the deny list, which is no limit.
	Refused, Denied bool
	Level           Level
	// RetryAfter is when the next token is there, in whole seconds; it is up to a
	// quarter, or a second, later for some than for others, so that those refused
	// together do not come back together.
	RetryAfter int
	// Policy is the limit as a RateLimit-Policy field has it.
	Policy string
	// Shadowed are the limits that would have refused the call if they were not in
	// shadow mode.
	Shadowed Set
}

// Then is the verdict of limits asked after those of v, which have let the call in.
func (v Verdict) Then(next Verdict) Verdict {
	next.Shadowed |= v.Shadowed
	return next
}

// In says that the call may go on.
func (v Verdict) In() bool { return !v.Refused && !v.Denied }
