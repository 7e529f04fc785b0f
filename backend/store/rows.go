package store

import (
	"time"

	"github.com/seckill-edge/seckill/internal/order"
)

// activityRow is a row of activities. Times are in milliseconds since 1970, UTC.
type activityRow struct {
	ID           string  `gorm:"column:id;primaryKey"`
	ProductID    string  `gorm:"column:product_id"`
	Live         *string `gorm:"column:live"`
	Title        string  `gorm:"column:title"`
	StartMS      int64   `gorm:"column:start_ms"`
	EndMS        int64   `gorm:"column:end_ms"`
	Total        int64   `gorm:"column:total"`
	LimitPerUser int     `gorm:"column:limit_per_user"`
	PayWindowMS  int64   `gorm:"column:pay_window_ms"`
	Reserved     int64   `gorm:"column:reserved"`
	State        string  `gorm:"column:state"`
	CreatedMS    int64   `gorm:"column:created_ms"`
	Manual       bool    `gorm:"column:manual"`
	Changes      int64   `gorm:"column:changes"`
	Target       int64   `gorm:"column:target"`
	ArchivedMS   *int64  `gorm:"column:archived_ms"`
}

// TableName tells GORM where activities are.
func (activityRow) TableName() string { return "activities" }

func newActivityRow(a *Activity, now time.Time) activityRow {
	return activityRow{
		ID: a.ID, ProductID: a.ProductID, Live: live(a.ProductID, a.State), Title: a.Title,
		StartMS: a.Start.UnixMilli(), EndMS: a.End.UnixMilli(),
		Total: a.Total, LimitPerUser: a.Limit, PayWindowMS: a.PayWindow.Milliseconds(),
		State: string(a.State), CreatedMS: now.UnixMilli(), Manual: a.Manual,
	}
}

// live is the value of the column that allows one live activity a product.
func live(product string, s ActivityState) *string {
	if s == Closed {
		return nil
	}
	return &product
}

func (r *activityRow) activity() Activity {
	a := Activity{
		ID: r.ID, ProductID: r.ProductID, Title: r.Title,
		Start: instant(r.StartMS), End: instant(r.EndMS),
		Total: r.Total, Limit: r.LimitPerUser, PayWindow: r.payWindow(),
		State: ActivityState(r.State), Reserved: r.Reserved, CreatedAt: instant(r.CreatedMS),
		Manual: r.Manual, Changes: r.Changes, Target: r.Target,
	}
	if r.ArchivedMS != nil {
		a.ArchivedAt = instant(*r.ArchivedMS)
	}
	return a
}

func (r *activityRow) payWindow() time.Duration {
	return time.Duration(r.PayWindowMS) * time.Millisecond
}

// orderRow is a row of orders.
type orderRow struct {
	ID         string `gorm:"column:id;primaryKey"`
	ActivityID string `gorm:"column:activity_id"`
	ProductID  string `gorm:"column:product_id"`
	UserID     string `gorm:"column:user_id"`
	Quantity   int    `gorm:"column:quantity"`
	// Claim is nil once the order holds no stock.
	Claim      *int   `gorm:"column:claim"`
	State      string `gorm:"column:state"`
	Reason     string `gorm:"column:reason"`
	ReservedMS int64  `gorm:"column:reserved_ms"`
	CreatedMS  int64  `gorm:"column:created_ms"`
	UpdatedMS  int64  `gorm:"column:updated_ms"`
	// DueMS is nil where there is no payment stage.
	DueMS *int64 `gorm:"column:due_ms"`
}

// TableName tells GORM where orders are.
func (orderRow) TableName() string { return "orders" }

func newOrderRow(o *order.Order, state order.State, reason order.Reason, now time.Time) orderRow {
	r := orderRow{
		ID: o.ID, ActivityID: o.ActivityID, ProductID: o.ProductID, UserID: o.UserID,
		Quantity: o.Quantity, State: string(state), Reason: string(reason),
		ReservedMS: o.ReservedAt.UnixMilli(), CreatedMS: now.UnixMilli(), UpdatedMS: now.UnixMilli(),
	}
	if state.HoldsStock() {
		claim := o.Claim
		r.Claim = &claim
	}
	return r
}

// setDue gives an order that waits for its payment the time until which it does.
func (r *orderRow) setDue(payWindow time.Duration, now time.Time) {
	if payWindow > 0 && order.State(r.State) == order.Created {
		due := now.Add(payWindow).UnixMilli()
		r.DueMS = &due
	}
}

// isFor says whether the row is the one of o. An id is a buyer's in an activity:
// a copy that says something else of quantity, claim or time is a copy still. A
// rejected row without a user bars the id, whoever comes with it.
func (r *orderRow) isFor(o *order.Order) bool {
	return r.ActivityID == o.ActivityID && (r.UserID == o.UserID || r.UserID == "")
}

func (r *orderRow) order() Order {
	o := Order{
		Order: order.Order{
			ID: r.ID, ActivityID: r.ActivityID, ProductID: r.ProductID, UserID: r.UserID,
			Quantity: r.Quantity, ReservedAt: instant(r.ReservedMS),
		},
		State: order.State(r.State), Reason: order.Reason(r.Reason),
		CreatedAt: instant(r.CreatedMS), UpdatedAt: instant(r.UpdatedMS),
	}
	if r.DueMS != nil {
		o.DueAt = instant(*r.DueMS)
	}
	if r.Claim != nil {
		o.Claim = *r.Claim
	}
	return o
}

func instant(ms int64) time.Time { return time.UnixMilli(ms).UTC() }
