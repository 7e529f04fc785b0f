package store

import (
	"time"

	"github.com/seckill-edge/seckill/internal/order"
)

// ledger is what is known about the orders of a batch, under the locks of their
// activities. decide keeps it up to date as it goes.
type ledger struct {
	activities map[string]activityRow // by id; never changed
	rows       map[string]orderRow    // by order id
	claims     map[claim]bool         // taken by orders that hold stock
	held       map[buyer]int          // units of orders that hold stock
}

type buyer struct{ activity, user string }

type claim struct {
	buyer
	number int
}

// newLedger knows the activities and no order, and has room for size orders.
func newLedger(activities map[string]activityRow, size int) *ledger {
	return &ledger{
		activities: activities,
		rows:       make(map[string]orderRow, size),
		claims:     make(map[claim]bool, size),
		held:       make(map[buyer]int, size),
	}
}

// take notes that an order holds stock.
func (l *ledger) take(b buyer, number, quantity int) {
	l.claims[claim{b, number}] = true
	l.held[b] += quantity
}

// decision is what a batch comes to.
type decision struct {
	insert []orderRow
	units  map[string]int64 // to reserve, by activity
	saved  []Saved          // in the order of the input
}

// rejects says that an order is rejected now, for good.
func (d *decision) rejects() bool {
	for i := range d.insert {
		if d.insert[i].State == string(order.Rejected) {
			return true
		}
	}
	return false
}

// decide gives the orders, one by one as they come, what they would get if each
// were stored alone. It is pure: the same ledger gives the same decision.
func decide(l *ledger, orders []*order.Order, now time.Time) decision {
	d := decision{
		insert: make([]orderRow, 0, len(orders)),
		units:  make(map[string]int64),
		saved:  make([]Saved, len(orders)),
	}
	for i, o := range orders {
		a := l.activities[o.ActivityID]
		row, repeat := l.rows[o.ID]
		if !repeat {
			state, reason := l.judge(o, d.units[o.ActivityID])
			row = newOrderRow(o, state, reason, now)
			row.setDue(a.payWindow(), now)
			l.rows[o.ID] = row
			d.insert = append(d.insert, row)
			if state.HoldsStock() {
				l.take(buyer{o.ActivityID, o.UserID}, o.Claim, o.Quantity)
				d.units[o.ActivityID] += int64(o.Quantity)
			}
		}
		d.saved[i] = Saved{
			OrderID: o.ID, State: order.State(row.State), Reason: order.Reason(row.Reason),
			Repeat: repeat, PayWindow: a.payWindow(),
		}
		if !row.isFor(o) {
			d.saved[i] = Saved{OrderID: o.ID, Foreign: true}
		}
	}
	return d
}

// judge says what a new order becomes, after taken units of its activity went to
// earlier orders of the batch.
func (l *ledger) judge(o *order.Order, taken int64) (order.State, order.Reason) {
	a, known := l.activities[o.ActivityID]
	b := buyer{o.ActivityID, o.UserID}
	switch {
	case !known:
		return order.Rejected, order.ReasonUnknownActivity
	case o.ProductID != a.ProductID,
		o.Quantity < 1, o.Quantity > a.LimitPerUser,
		o.Claim < 1, o.Claim > a.LimitPerUser:
		return order.Rejected, order.ReasonInvalid
	case l.claims[claim{b, o.Claim}]:
		return order.Rejected, order.ReasonDuplicate
	case l.held[b]+o.Quantity > a.LimitPerUser:
		return order.Rejected, order.ReasonInvalid
	case int64(o.Quantity) > a.Total-a.Reserved-taken:
		return order.Rejected, order.ReasonOversold
	}
	return order.Created, ""
}
