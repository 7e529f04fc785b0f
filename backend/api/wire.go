package api

import (
	"time"

	"github.com/seckill-edge/seckill/backend/activities"
	"github.com/seckill-edge/seckill/backend/store"
	"github.com/seckill-edge/seckill/internal/order"
)

// Activity is an activity in JSON, the same in the API and in the commands.
type Activity struct {
	ID               string            `json:"id"`
	ProductID        string            `json:"product_id"`
	Title            string            `json:"title"`
	Start            time.Time         `json:"start"`
	End              time.Time         `json:"end"`
	Total            int64             `json:"total" doc:"Units to sell."`
	Limit            int               `json:"limit" doc:"Units per user."`
	PayWindowSeconds int64             `json:"pay_window_seconds" doc:"How long a buyer may take to pay; 0: an order is sold when it is stored."`
	State            string            `json:"state" enum:"scheduled,open,held,closed" doc:"The operator's word, from SQL."`
	Sale             string            `json:"sale" enum:"scheduled,open,sold_out,held,unavailable,ended,closed" doc:"Where the sale stands, in the word that buyers are shown, too."`
	Manual           bool              `json:"manual" doc:"Only the operator preheats and opens it."`
	Target           int64             `json:"target,omitempty" doc:"The total it is being changed to; absent if none is pending."`
	ArchivedAt       *time.Time        `json:"archived_at,omitempty" doc:"Since when everything of it is settled. Redis forgets its keys some time after that."`
	Why              string            `json:"why" doc:"What it is doing, and what to do if it should sell and does not."`
	Causes           map[string]string `json:"causes,omitempty" doc:"What keeps it from selling, or its orders from being stored: part to cause, as in /readyz. Absent if nothing is known to."`
	Redis            *Stock            `json:"redis,omitempty" doc:"What Redis has of it; absent if nothing."`
}

// Stock is an activity's counters in Redis, from one atomic read.
type Stock struct {
	State     string    `json:"state" enum:"open,held,closed"`
	Epoch     int64     `json:"epoch" doc:"Rises whenever the gate is shut or opened."`
	Available int64     `json:"available" doc:"Units nobody has reserved."`
	Frozen    int64     `json:"frozen" doc:"Units reserved and not settled."`
	Sold      int64     `json:"sold" doc:"Units settled."`
	Outbox    int64     `json:"outbox" doc:"Orders the broker has not confirmed yet."`
	Users     int64     `json:"users" doc:"Buyers with a record."`
	Damaged   bool      `json:"damaged" doc:"A counter is missing or no number."`
	Now       time.Time `json:"now" doc:"Redis's clock, which opens and ends the sale."`
}

// Audit compares Redis and SQL, in JSON.
type Audit struct {
	ActivityID string                `json:"activity_id"`
	ProductID  string                `json:"product_id"`
	Verdict    activities.Verdict    `json:"verdict" enum:"agree,drift,unknown" doc:"Whether the stores agree. unknown: something that could explain a drift cannot be asked, or the sale is too busy for one view."`
	Total      int64                 `json:"total" doc:"Units to sell, from SQL."`
	Available  int64                 `json:"available" doc:"Units nobody has reserved, from Redis."`
	Frozen     int64                 `json:"frozen" doc:"Units reserved and not settled, from Redis."`
	Sold       int64                 `json:"sold" doc:"Units settled, from Redis."`
	Outbox     int64                 `json:"outbox" doc:"Orders the broker has not confirmed yet."`
	Queued     int                   `json:"queued" doc:"Messages and orders of all activities that wait in the broker or are in the hands of a backend."`
	QueueKnown bool                  `json:"queue_known" doc:"The broker was asked. If false, queued is what backends have in hand, and drift is only what nothing in the broker could explain."`
	Orders     map[order.State]int64 `json:"orders" doc:"Orders in SQL, by state."`
	Units      map[order.State]int64 `json:"units" doc:"Their units, by state."`
	Drift      int64                 `json:"drift" doc:"Units on which the stores disagree beyond what is on its way. 0 is right."`
	Consistent bool                  `json:"consistent" doc:"Redis stood still while SQL was read. If false the sale is too busy for one view; ask again."`
	Known      bool                  `json:"known" doc:"Redis has this activity."`
	Damaged    bool                  `json:"damaged" doc:"A counter in Redis is missing or no number."`
}

// Order is a stored order in JSON.
type Order struct {
	ID         string    `json:"order_id"`
	ActivityID string    `json:"activity_id"`
	ProductID  string    `json:"product_id"`
	UserID     string    `json:"user_id"`
	Quantity   int       `json:"quantity"`
	Claim      int       `json:"claim"`
	State      string    `json:"state" enum:"created,paid,cancelled,expired,rejected"`
	Reason     string    `json:"reason,omitempty" doc:"Why it was rejected or cancelled."`
	ReservedAt time.Time `json:"reserved_at"`
	CreatedAt  time.Time `json:"created_at"`
	UpdatedAt  time.Time `json:"updated_at"`
	// Due is absent where there is no payment stage.
	Due *time.Time `json:"due,omitempty" doc:"When it expires, or would have, unless it is paid before; absent without a payment stage."`
}

// OrderShown is a stored order with its payments, in JSON.
type OrderShown struct {
	Order
	Payments []Payment `json:"payments" doc:"The oldest first."`
}

// ActivityOf puts a view into JSON's shape.
func ActivityOf(v activities.View) Activity {
	out := Activity{
		ID:               v.ID,
		ProductID:        v.ProductID,
		Title:            v.Title,
		Start:            instant(v.Start),
		End:              instant(v.End),
		Total:            v.Total,
		Limit:            v.Limit,
		PayWindowSeconds: int64(v.PayWindow / time.Second),
		State:            string(v.State),
		Sale:             string(v.Sale),
		Manual:           v.Manual,
		Target:           v.Target,
		Why:              v.Why,
		Causes:           v.Causes,
	}
	if !v.ArchivedAt.IsZero() {
		at := instant(v.ArchivedAt)
		out.ArchivedAt = &at
	}
	if s := v.Snapshot; s != nil {
		out.Redis = &Stock{
			State:     string(s.State),
			Epoch:     s.Epoch,
			Available: s.Available,
			Frozen:    s.Frozen,
			Sold:      s.Sold,
			Outbox:    s.Outbox,
			Users:     s.Users,
			Damaged:   s.Damaged,
			Now:       instant(s.Now),
		}
	}
	return out
}

// ActivitiesOf puts views into JSON's shape; never nil.
func ActivitiesOf(views []activities.View) []Activity {
	out := make([]Activity, len(views))
	for i, v := range views {
		out[i] = ActivityOf(v)
	}
	return out
}

// AuditOf puts an audit into JSON's shape.
func AuditOf(a activities.Audit) Audit { return Audit(a) }

// ShownOf puts an order and its payments into JSON's shape.
func ShownOf(o store.Order, payments []store.Payment) OrderShown {
	return OrderShown{Order: OrderOf(o), Payments: PaymentsOf(payments)}
}

// OrderOf puts a stored order into JSON's shape.
func OrderOf(o store.Order) Order {
	out := Order{
		ID:         o.ID,
		ActivityID: o.ActivityID,
		ProductID:  o.ProductID,
		UserID:     o.UserID,
		Quantity:   o.Quantity,
		Claim:      o.Claim,
		State:      string(o.State),
		Reason:     string(o.Reason),
		ReservedAt: instant(o.ReservedAt),
		CreatedAt:  instant(o.CreatedAt),
		UpdatedAt:  instant(o.UpdatedAt),
	}
	if !o.DueAt.IsZero() {
		due := instant(o.DueAt)
		out.Due = &due
	}
	return out
}

// instant is t as JSON can say it: one in a store that is out of bounds must not
// break a whole list.
func instant(t time.Time) time.Time {
	switch {
	case t.Before(order.FirstTime):
		return order.FirstTime
	case t.After(order.LastTime):
		return order.LastTime
	}
	return t.UTC()
}
