package order

import "slices"

// State is where a stored order stands. It is what SQL stores and what the
// status page says.
type State string

// The states of an order's life. Queued is known to Redis and the queue only;
// all others are rows.
const (
	Queued    State = "queued"
	Created   State = "created"
	Paid      State = "paid"
	Cancelled State = "cancelled"
	Expired   State = "expired"
	Rejected  State = "rejected"
)

// moves is the whole table of allowed moves. What is not in it does not happen,
// neither in SQL nor in Redis.
var moves = map[State][]State{
	Queued:  {Created, Rejected},
	Created: {Paid, Cancelled, Expired},
}

// States are all states, in the order of an order's life.
func States() []State {
	return []State{Queued, Created, Paid, Cancelled, Expired, Rejected}
}

// Next are the states that an order in state s can move to; none if s is final.
// Created leads on only where the activity has a payment stage: without one it is
// where an order ends, sold.
func (s State) Next() []State { return slices.Clone(moves[s]) }

// Previous are the states that an order can come to s from.
func (s State) Previous() []State {
	var from []State
	for _, before := range States() {
		if Moves(before, s) {
			from = append(from, before)
		}
	}
	return from
}

// Moves says whether an order may move from one state to the other.
func Moves(from, to State) bool { return slices.Contains(moves[from], to) }

// Final says that an order in this state stays in it, payment stage or not.
func (s State) Final() bool { return len(moves[s]) == 0 }

// HoldsStock says whether an order in this state keeps its units from others.
func (s State) HoldsStock() bool {
	return s == Queued || s == Created || s == Paid
}

// Reason says why an order was rejected or cancelled. Empty for every other state.
type Reason string

// The reasons a backend rejects a granted reservation for.
const (
	// ReasonOversold: SQL's guard found no unit left for it.
	ReasonOversold Reason = "oversold"
	// ReasonDuplicate: the buyer already has an order under this claim.
	ReasonDuplicate Reason = "duplicate"
	// ReasonUnknownActivity: SQL has no such activity.
	ReasonUnknownActivity Reason = "unknown_activity"
	// ReasonInvalid: quantity or claim beyond what the activity allows.
	ReasonInvalid Reason = "invalid"
	// ReasonLost: answered "queued", but it survived nowhere.
	ReasonLost Reason = "lost"
	// ReasonDead: it could not be stored and went to the dead letters; its units
	// were given back.
	ReasonDead Reason = "dead_letter"
)

// ValidCancelReason says whether r may be stored as the reason of a cancellation:
// up to 32 of a-z 0-9 and _, a word of the caller's own. It may be empty.
func ValidCancelReason(r Reason) bool {
	if len(r) > 32 {
		return false
	}
	for i := range len(r) {
		switch c := r[i]; {
		case 'a' <= c && c <= 'z', '0' <= c && c <= '9', c == '_':
		default:
			return false
		}
	}
	return true
}
