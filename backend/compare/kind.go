// Package compare reads one activity from Redis and from SQL, order by order and
// both in parts, and names every difference. It changes nothing.
package compare

import (
	"time"

	"github.com/seckill-edge/seckill/backend/settle"
	"github.com/seckill-edge/seckill/backend/store"
	"github.com/seckill-edge/seckill/internal/order"
	"github.com/seckill-edge/seckill/lua"
)

// Kind names a difference between the stores.
type Kind string

// The kinds of one order.
const (
	// Unpublished: in the outbox, older than an edge needs to publish.
	Unpublished Kind = "unpublished"
	// LostAfterPublish: frozen, confirmed by the broker, and not stored. It may be
	// on its way, unless nothing is.
	LostAfterPublish Kind = "lost_after_publish"
	// StoredNotSettled: stored, and Redis has not been told.
	StoredNotSettled Kind = "stored_not_settled"
	// SettledNotStored: Redis has been told of a row that SQL does not have.
	SettledNotStored Kind = "settled_not_stored"
	// MissingInRedis: the row holds stock and Redis has no such order.
	MissingInRedis Kind = "missing_in_redis"
	// StateConflict: the row and the order in Redis cannot both be right.
	StateConflict Kind = "state_conflict"
	// UnknownOutboxEntry: the outbox names an order that its buyer does not have.
	UnknownOutboxEntry Kind = "unknown_outbox_entry"
)

// The kinds of a buyer, of counters and keys.
const (
	// DamagedRecord: a buyer's record that cannot be read.
	DamagedRecord Kind = "damaged_record"
	// Forgotten: orders that were given back, of a buyer Redis knows nothing of.
	// They hold no units: whoever rebuilds adds them, nobody else minds.
	Forgotten Kind = "forgotten"
	// ReleasedTwice: more units are for sale than the records leave.
	ReleasedTwice Kind = "released_twice"
	// CounterDrift: counters that are not the sum of the records in another way.
	CounterDrift Kind = "counter_drift"
	// DamagedCounter: a counter, a field or a hash that cannot be read.
	DamagedCounter Kind = "damaged_counter"
	// MissingKey: a key that an activity needs.
	MissingKey Kind = "missing_key"
	// UnknownKey: a key with the product's tag that nobody here has made.
	UnknownKey Kind = "unknown_key"
	// Unproven: the server is another one than the activity was opened on.
	Unproven Kind = "unproven"
	// StaleDead: dead letters whose orders are stored all the same.
	StaleDead Kind = "stale_dead"
)

// Kinds are all kinds that are reported.
func Kinds() []Kind {
	return []Kind{
		Unpublished, LostAfterPublish, StoredNotSettled, SettledNotStored, MissingInRedis, StateConflict,
		UnknownOutboxEntry, DamagedRecord, ReleasedTwice, CounterDrift, DamagedCounter, MissingKey, UnknownKey, Unproven, StaleDead,
	}
}

// Difference is one order, or one buyer's record, on which the stores differ.
type Difference struct {
	Kind            Kind
	UserID, OrderID string
	// Entry is the order in Redis, nil if it has none; Row is the order in SQL.
	Entry *lua.Entry
	Row   *store.Order
}

// judge compares one order. Both may be nil. The record must have been read
// before the row and the outbox before the row, for an order only ever moves
// from there to here. outbox is the buyer the outbox has for it.
func judge(a store.Activity, user string, entry *lua.Entry, outbox string, row *store.Order) (Kind, bool) {
	if row == nil {
		switch {
		case entry == nil || entry.Mark.GivenBack():
			return "", false
		case entry.Mark != lua.MarkQueued:
			return SettledNotStored, true
		case outbox == "":
			return LostAfterPublish, true
		}
		return Unpublished, true
	}
	want, ok := settle.MarkOf(row.State, a.PayWindow)
	switch {
	case !ok || row.UserID != user || row.ActivityID != a.ID:
		return StateConflict, true
	case entry == nil:
		return MissingInRedis, !want.GivenBack()
	case entry.Mark == want, entry.Mark.Sold() && want.Sold(), entry.Mark.GivenBack() && want.GivenBack():
		return StateConflict, entry.Quantity != row.Quantity && !want.GivenBack()
	case entry.Mark.Frozen() && entry.Quantity == row.Quantity:
		return StoredNotSettled, true
	}
	return StateConflict, true
}

// young says that an order may still be in the hands of an edge or a backend.
func young(e *lua.Entry, now time.Time, patience time.Duration) bool {
	return e != nil && !e.Aged(now, patience)
}

func live(s order.State) bool { return s == order.Created || s == order.Paid }
