package tide

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/seckill-edge/seckill/backend/compare"
	"github.com/seckill-edge/seckill/backend/store"
	"github.com/seckill-edge/seckill/internal/order"
	"github.com/seckill-edge/seckill/lua"
)

// Report is what Recover has done, or would do.
type Report struct {
	// Height is the tide of the database before, Was how high it had been: equal if it
	// has forgotten nothing.
	Height     int64      `json:"height" doc:"How far the database has come."`
	Was        int64      `json:"was" doc:"How far it had come, as Redis remembers."`
	Activities []Activity `json:"activities"`
}

// Activity is what one sale's part of it was.
type Activity struct {
	ProductID  string `json:"product_id"`
	ActivityID string `json:"activity_id"`
	// Made: the database did not know it at all, and has it held now. Changed: it had an
	// older total, or did not know that it was begun.
	Made    bool `json:"made"`
	Changed bool `json:"changed"`
	// The figures are orders, see store.Taken.
	Stored int `json:"stored" doc:"Orders that the database did not have."`
	Moved  int `json:"moved" doc:"Orders whose payment, cancellation or expiry it had forgotten."`
	Odd    int `json:"odd" doc:"Orders on which the two disagree in another way; they stay as the database has them."`
	// Failed is why it could not be taken back, empty if it was.
	Failed string `json:"failed,omitempty"`
}

// nothing says that the database has all of it.
func (a *Activity) nothing() bool {
	return !a.Made && !a.Changed && a.Stored+a.Moved == 0 && a.Failed == ""
}

// Nothing says that the database has everything that Redis knows.
func (r *Report) Nothing() bool { return r.Left() == 0 && r.taken() == 0 }

// Left counts the activities that could not be taken back.
func (r *Report) Left() (n int) {
	for i := range r.Activities {
		if r.Activities[i].Failed != "" {
			n++
		}
	}
	return n
}

func (r *Report) taken() (n int) {
	for i := range r.Activities {
		if !r.Activities[i].nothing() {
			n++
		}
	}
	return n
}

// Recover has the database take back from Redis what it has forgotten: sales, orders,
// and what became of them. Of payments the references are lost; the first one that is
// reported again for an order that is paid is taken for its own. Then the tide is
// lifted, and backends go on. What is on its way in queue and outbox comes by itself.
//
// dry changes nothing. Run with a tide that is not low it finds little or nothing. It
// may be repeated. If an activity fails the tide is not lifted.
func Recover(ctx context.Context, d Deps, dry bool) (Report, error) {
	var report Report
	var err error
	if report.Height, report.Was, err = heights(ctx, d); err != nil {
		return report, err
	}
	products, err := lua.Products(ctx, d.Redis)
	if err != nil {
		return report, err
	}
	report.Activities = []Activity{}
	for range passes {
		taken := false
		for _, product := range products {
			a, there, err := take(ctx, d, product, dry)
			if err != nil {
				if ctx.Err() != nil {
					return report, fmt.Errorf("recovering product %s: %w", product, err)
				}
				a.Failed = err.Error()
			}
			if there {
				report.add(a)
			}
			taken = taken || !a.nothing()
		}
		if dry || !taken || report.Left() > 0 {
			break
		}
	}
	if dry || report.Left() > 0 {
		return report, nil
	}
	return report, lift(ctx, d, report)
}

// passes bounds how often all is gone through: a backend may be telling Redis of what
// it had stored before the database forgot it.
const passes = 4

// add adds what a pass has done to one activity.
func (r *Report) add(a Activity) {
	for i := range r.Activities {
		if x := &r.Activities[i]; x.ProductID == a.ProductID && x.ActivityID == a.ActivityID {
			x.Changed = x.Changed || a.Changed
			x.Stored += a.Stored
			x.Moved += a.Moved
			x.Odd, x.Failed = a.Odd, a.Failed
			return
		}
	}
	r.Activities = append(r.Activities, a)
}

// lift makes the tide higher than it ever was.
func lift(ctx context.Context, d Deps, r Report) error {
	if r.Height >= r.Was {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	if err := d.Store.Lift(ctx, r.Was+1); err != nil {
		return err
	}
	_, err := lua.HighTide(ctx, d.Redis, r.Was+1)
	return err
}

// take takes back one product's activity; there is false if Redis has none.
func take(ctx context.Context, d Deps, product string, dry bool) (out Activity, there bool, err error) {
	asking, cancel := context.WithTimeout(ctx, callTimeout)
	s, there, err := lua.Audit(asking, d.Redis, product)
	cancel()
	out = Activity{ProductID: product, ActivityID: s.ID}
	switch {
	case err != nil || !there:
		return out, there, err
	case s.Limit < 1 || s.ID == "" || s.Total < 1:
		return out, true, errors.New("its fields in Redis cannot be read; close it, or restore them")
	}
	a := store.Activity{
		ID: s.ID, ProductID: product, Title: s.Title, Start: s.Start, End: s.End, Total: s.Total, Changes: s.Changes,
		Limit: s.Limit, PayWindow: s.PayWindow, State: store.Held, Manual: true,
	}
	if s.State == lua.Closed {
		a.State = store.Closed
	}
	if out.Made, out.Changed, err = d.Store.TakeActivity(ctx, a, dry); err != nil {
		return out, true, err
	}
	taken, err := takeOrders(ctx, d, s, dry)
	out.Stored, out.Moved, out.Odd = taken.Stored, taken.Moved, taken.Odd
	return out, true, err
}

// part is about how many buyers are read, and their orders taken back, at once.
const part = 300

func takeOrders(ctx context.Context, d Deps, s lua.Snapshot, dry bool) (all store.Taken, err error) {
	for cursor := uint64(0); ; {
		asking, cancel := context.WithTimeout(ctx, callTimeout)
		records, next, err := lua.BuyersScan(asking, d.Redis, s.ProductID, cursor, part)
		cancel()
		if err != nil {
			return all, err
		}
		var orders []store.Order
		for user, record := range records {
			entries, _ := compare.Read(user, record) // what is damaged the fence mends
			for _, e := range entries {
				if o, ok := orderOf(s, user, e); ok {
					orders = append(orders, o)
				}
			}
		}
		if len(orders) > 0 {
			taken, err := d.Store.TakeOrders(ctx, s.ID, orders, dry)
			if err != nil {
				return all, err
			}
			all.Add(taken)
		}
		if cursor = next; cursor == 0 {
			return all, nil
		}
	}
}

var stateOf = map[lua.Mark]order.State{
	lua.MarkCreated: order.Created, lua.MarkSettled: order.Created, lua.MarkPaid: order.Paid,
	lua.MarkRejected: order.Rejected, lua.MarkCancelled: order.Cancelled, lua.MarkExpired: order.Expired,
}

// orderOf is the row that an order in Redis once had; false if it was on its way.
// Who has not paid yet has the whole window again.
func orderOf(s lua.Snapshot, user string, e lua.Entry) (store.Order, bool) {
	state, ok := stateOf[e.Mark]
	if !ok {
		return store.Order{}, false
	}
	o := store.Order{State: state, Reason: e.Reason, Order: order.Order{
		ID: e.OrderID, ActivityID: s.ID, ProductID: s.ProductID, UserID: user, Quantity: e.Quantity, Claim: e.Claim, ReservedAt: e.At,
	}}
	if s.PayWindow > 0 && e.Mark != lua.MarkSettled && e.Mark != lua.MarkRejected {
		o.DueAt = later(e.At, s.Now, e.Mark == lua.MarkCreated).Add(s.PayWindow)
	}
	return o, true
}

func later(reserved, now time.Time, waits bool) time.Time {
	if waits {
		return now
	}
	return reserved
}
