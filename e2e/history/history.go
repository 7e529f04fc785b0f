// Package history judges a sale by what its clients were told and what the
// stores hold at the end. It knows no server and no clock: a history goes in,
// violations come out, so that the judge itself can be tested.
package history

import (
	"time"

	"github.com/seckill-edge/seckill/internal/order"
	"github.com/seckill-edge/seckill/lua"
)

// Click is one request to buy as its client saw it.
type Click struct {
	Buyer    string
	Quantity int
	Edge     int // which edge was asked
	// Start and End are when it was sent and when its answer, or its failure, was
	// there.
	Start, End time.Time
	// Status is the HTTP status; 0 means no answer: the outcome is unknown, the
	// order may or may not exist.
	Status int
	// Code is the outcome code of a refusal.
	Code lua.Outcome
	// OrderID is the new order with 202, the order he has with AlreadyBought.
	OrderID   string
	ResolveBy time.Time // with 202
}

// accepted says that the client was told "queued".
func (c *Click) accepted() bool { return c.Status == 202 }

// Told is one answer about an order's fate.
type Told struct {
	OrderID string
	Edge    int // which edge was asked
	// At is when it was asked, End when the answer was there; a zero End means At.
	At, End time.Time
	// Status is the HTTP status: 200 with State, 404 for an unknown order, others
	// and 0 for no answer about the order.
	Status int
	State  order.State
	Reason order.Reason
}

// Row is an order in SQL.
type Row struct {
	OrderID, Buyer string
	Quantity       int
	State          order.State
	Reason         order.Reason
	// Reserved and Stored are when it was reserved, by Redis's clock, and stored, by
	// the database's; zero if nobody has looked.
	Reserved, Stored time.Time
}

// Entry is an order in a buyer's record in Redis.
type Entry struct {
	Buyer string
	lua.Entry
}

// History is one sale from its first click to its end.
type History struct {
	Total int64
	Limit int
	// Forgetful says that Redis may have forgotten, without anybody else knowing,
	// what it answered within its last second: it died under appendfsync everysec
	// (or was emptied) together with an edge. Then, and only then, a queued order
	// may be lost, and its buyer must be told so.
	Forgetful bool
	// Outages is what was done to servers and programs, and when. While Redis or SQL
	// is away an order may be late; nothing else excuses it.
	Outages []Outage
	// Backends is how many there are.
	Backends int
	// Holds says that the sale is held while the fault lasts, by an operator or
	// because the database has forgotten. Else nobody may be told that it is.
	Holds bool
	// Plenty says that there are more units than anybody asks for.
	Plenty bool
	// Unheard is how long after its click a "queued" comes that is given without
	// Redis's word. Nothing is reserved for it yet: if Redis stays away too long, or
	// the edge dies, it comes to nothing, and its buyer must be told so. 0: never.
	Unheard time.Duration
	// Healed is when the last fault was over.
	Healed time.Time
	// Bound is how long after Healed an order's fate may be open, if that is
	// later than what the buyer was promised.
	Bound time.Duration

	Clicks []Click
	// Told are the answers about orders' fates, in order of time; the last ones
	// were asked for at the end.
	Told []Told
	// Statements are what the programs said of themselves, Lines what they logged of
	// outages; both in order of time.
	Statements []Statement
	Lines      []Line
	// SellsAgain is when the last edge sold again after Healed; zero if one did not.
	SellsAgain time.Time
	End        End
}

// End is what the stores hold at the end.
type End struct {
	At time.Time
	// Open says that Redis has the activity, open, undamaged and proven.
	Open                           bool
	Available, Frozen, Sold, Total int64
	Outbox                         int64
	Entries                        []Entry
	Rows                           []Row
	// Reserved is what SQL's guard has counted.
	Reserved int64
	// Queued is the messages that wait in the broker, Dead the dead letters of
	// this sale that nobody meant to be there.
	Queued, Dead int
	// Drift is what the backend's own audit says.
	Drift int64
	// Selling says that each edge has answered a buyer after the last fault with
	// something else than "come again".
	Selling bool
}
