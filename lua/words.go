package lua

// String is the mark in words.
func (m Mark) String() string {
	switch m {
	case MarkQueued:
		return "queued"
	case MarkCreated:
		return "created"
	case MarkSettled:
		return "settled"
	case MarkPaid:
		return "paid"
	case MarkRejected:
		return "rejected"
	case MarkCancelled:
		return "cancelled"
	case MarkExpired:
		return "expired"
	}
	return "unknown"
}

// Frozen says that an order of this mark keeps its units frozen.
func (m Mark) Frozen() bool { return m == MarkQueued || m == MarkCreated }

// Sold says that the units of an order of this mark are sold.
func (m Mark) Sold() bool { return m == MarkSettled || m == MarkPaid }

// GivenBack says that an order of this mark has given its units back.
func (m Mark) GivenBack() bool {
	return m == MarkRejected || m == MarkCancelled || m == MarkExpired
}

// String is the result in words.
func (m Moved) String() string {
	switch m {
	case Done:
		return "moved"
	case Already:
		return "moved before"
	case Unknown:
		return "no such order"
	case Conflict:
		return "another state"
	}
	return "unknown"
}
