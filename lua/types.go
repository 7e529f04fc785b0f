package lua

import (
	"time"

	"github.com/seckill-edge/seckill/internal/order"
)

// ActivityState is the operator's switch of an activity in Redis.
type ActivityState string

// The states. OnHold is held by an operator, or until the stock is proven (see
// Snapshot.HeldByOperator); Closed is over for good.
const (
	Open   ActivityState = "open"
	OnHold ActivityState = "held"
	Closed ActivityState = "closed"
)

// Activity is one sale as Redis knows it.
type Activity struct {
	ID        string
	ProductID string
	Title     string
	Start     time.Time // whole milliseconds
	End       time.Time
	Total     int64 // units
	// Changes counts the changes of Total so far, those that were refused among
	// them; see Resize.
	Changes   int64
	Limit     int // units per user
	PayWindow time.Duration
	State     ActivityState
	// Epoch rises whenever the gate is shut or opened. A reservation made under
	// another epoch is refused.
	Epoch int64
	// RunID is the run id of the Redis server it was opened under; empty if the
	// server does not tell, and until it is opened.
	RunID string
}

// Snapshot is an activity with its counters, from one atomic read.
type Snapshot struct {
	Activity
	// Now is the server's clock.
	Now time.Time
	// Available + Frozen + Sold = Total, always; Damaged says that this is not so,
	// or that a field, counter or hash is missing, unreadable or of a wrong type;
	// the buyers, too, where units are frozen or sold. Reserve answers Unavailable
	// then.
	Available, Frozen, Sold int64
	Damaged                 bool
	// ServerRun is the run id of the server that answered; empty if it does not
	// tell.
	ServerRun string
	// Outbox is the number of orders not confirmed by the broker, Users of buyers.
	Outbox, Users int64
}

// Proven says that the stock can be believed: nothing is damaged, and the server
// is the one the activity was opened on. Another one, restarted or promoted, may
// have forgotten the last reservations; it sells nothing until a backend has
// proven the stock and opened the activity again.
func (s Snapshot) Proven() bool { return !s.Damaged && s.RunID == s.ServerRun }

// HeldByOperator says that somebody has held the activity, or has not opened it
// yet. One that Hold has shut is held until its stock is proven, and reads so even
// if an operator holds it meanwhile; Prove then leaves it held by the operator.
func (s Snapshot) HeldByOperator() bool {
	return s.State == OnHold && s.RunID != Unproven && !s.Damaged
}

// Forgetful says that the server may have forgotten orders of the activity, or have
// them damaged. One that was never opened has none to forget, though its stock is
// not proven.
func (s Snapshot) Forgetful() bool {
	return !s.Proven() && (s.Damaged || s.RunID != "" || s.State == Open)
}

// Request is one request to buy, checked by the caller: a valid order id, user
// id and quantity.
type Request struct {
	OrderID  string
	UserID   string
	Quantity int
	// Key is what HashKey made of the buyer's Idempotency-Key; empty for none.
	Key string
}

// Result is Redis's answer to one Request.
type Result struct {
	Outcome Outcome
	// OrderID is the order the buyer already has, with AlreadyBought and with
	// Repeat.
	OrderID string
	// Claim is the order's number among the buyer's live ones, with Reserved
	// unless it is a Repeat.
	Claim int
	// Repeat says, with Reserved, that an earlier request of this buyer had the
	// same key and quantity: OrderID is what it got, in whatever state that is.
	// This request has got nothing.
	Repeat bool
	// Earlier is set, with Reserved, if the buyer's record had this order id
	// already: what it says of the order, in whatever state that is. Nothing was
	// reserved now, and the request may have asked for another quantity.
	Earlier *Entry
}

// Batch is the answer to one Reserve call.
type Batch struct {
	// ActivityID and Epoch are the activity's as Redis has it now; empty with
	// NoProduct.
	ActivityID string
	Epoch      int64
	State      ActivityState
	// At is the server's clock; every reservation of the batch has this time.
	At time.Time
	// Available is what is left after the batch; -1 if it cannot be read.
	Available int64
	// Results has one entry a request, in their order.
	Results []Result
}

// Mark is the letter that stands for an order's state in a buyer's record.
type Mark byte

// The marks. Frozen ones keep units frozen, sold ones sold; the rest have given
// them back.
const (
	MarkQueued    Mark = 'q' // frozen, not stored yet
	MarkCreated   Mark = 'c' // frozen, stored, waiting for the payment
	MarkSettled   Mark = 's' // sold, stored, no payment stage
	MarkPaid      Mark = 'p' // sold
	MarkRejected  Mark = 'r'
	MarkCancelled Mark = 'x'
	MarkExpired   Mark = 'e'
)

// Entry is one order in a buyer's record.
type Entry struct {
	Mark     Mark
	OrderID  string
	Quantity int
	Claim    int
	At       time.Time
	// Key is what HashKey made of the buyer's Idempotency-Key; empty for none.
	Key string
	// Reason is why it was rejected; empty with every mark but MarkRejected, and
	// if nobody said why.
	Reason order.Reason
}

// Move is one order whose state is to change.
type Move struct {
	UserID  string
	OrderID string
	// Reason is noted with MarkRejected; a reason that records have no letter for
	// is left out.
	Reason order.Reason
}

// Moved is what became of a Move.
type Moved int

// The results of Settle and Release.
const (
	Done     Moved = 1  // the units moved now
	Already  Moved = 0  // it was in that state; nothing changed
	Unknown  Moved = -1 // the buyer's record has no such order
	Conflict Moved = -2 // it is in a state this move does not start from; nothing changed
)
