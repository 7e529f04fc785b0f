package store

import (
	"errors"
	"time"

	"github.com/seckill-edge/seckill/internal/order"
)

// Errors of this package; everything else is a failure of the database.
var (
	ErrNotFound = errors.New("not found")
	ErrExists   = errors.New("exists already")
	// ErrState: an activity stands in another state than the call expects.
	ErrState = errors.New("wrong state")
	// ErrSchema: the tables are older than this program; see Migrate.
	ErrSchema = errors.New("database schema is too old")
	// ErrNewerSchema: a newer program has changed the tables; this one may not know
	// what it must not do.
	ErrNewerSchema = errors.New("database schema is newer than this program")
)

// ActivityState is where an activity stands in SQL.
type ActivityState string

// The states. Scheduled is not in Redis yet; Open, Held and Closed are the
// operator's word, and Redis follows.
const (
	Scheduled ActivityState = "scheduled"
	Open      ActivityState = "open"
	Held      ActivityState = "held"
	Closed    ActivityState = "closed"
)

// Activity is one sale of one product. The product sells through the newest
// activity that is not closed; there is at most one.
type Activity struct {
	ID        string
	ProductID string
	Title     string
	Start     time.Time // UTC, whole milliseconds
	End       time.Time
	Total     int64         // units, 1 to order.MaxUnits
	Limit     int           // units per user, 1 to order.MaxQuantity
	PayWindow time.Duration // 0: no payment stage
	State     ActivityState
	// Manual says that only the operator preheats and opens it.
	Manual bool
	// Changes counts the changes of Total. Target is the total that the last one is
	// to reach; 0 once both SQL and Redis have it. Meanwhile Total is the greater one.
	Changes, Target int64
	// ArchivedAt is since when everything of it is settled; zero until then.
	ArchivedAt time.Time
	// Reserved is the units of all stored orders that hold stock; never above Total.
	Reserved  int64
	CreatedAt time.Time
}

// Order is a stored order.
type Order struct {
	order.Order
	State     order.State
	Reason    order.Reason // with order.Rejected, and perhaps with order.Cancelled
	CreatedAt time.Time
	UpdatedAt time.Time
	// DueAt is when it expires unless it is paid before; it says so in every later
	// state, too. Zero: no payment stage.
	DueAt time.Time
}

// Saved is what became of one order of a SaveOrders call.
type Saved struct {
	OrderID string
	// State is the row's: order.Created, or order.Rejected with Reason, or what
	// an earlier delivery and later moves have made of it.
	State  order.State
	Reason order.Reason
	// Repeat says that the row was there before.
	Repeat bool
	// Foreign says that the id is another order's, of another buyer or activity:
	// nothing of this one is stored, and it must be neither settled nor released.
	// All else is empty then.
	Foreign bool
	// PayWindow is the activity's; 0 means that a created order is settled.
	PayWindow time.Duration
}

// Total counts the orders of one state and their units.
type Total struct {
	Orders int64
	Units  int64
}
