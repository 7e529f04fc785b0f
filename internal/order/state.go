package order

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

// HoldsStock says whether an order in this state keeps its units from others.
func (s State) HoldsStock() bool {
	return s == Queued || s == Created || s == Paid
}

// Reason says why an order was rejected. Empty for every other state.
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
