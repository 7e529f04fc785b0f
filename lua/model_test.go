package lua

import (
	"slices"
	"time"

	"github.com/seckill-edge/seckill/internal/order"
)

// model says in plain Go, one request after the other, what the scripts must do.
type model struct {
	found               bool
	a                   Activity
	epoch               int64
	avail, frozen, sold int64
	users               map[string][]Entry
	outbox              map[string]string
}

func (m *model) reserve(epoch int64, r Request, at time.Time) Result {
	if r.Quantity < 1 || r.Quantity > 999 || (m.found && r.Quantity > m.a.Limit) ||
		!order.ValidID(r.OrderID) || !order.ValidUser(r.UserID) {
		return Result{Outcome: BadArguments}
	}
	held, latest, used := 0, "", map[int]bool{}
	for _, e := range m.users[r.UserID] {
		if r.Key != "" && e.Key == r.Key && e.Quantity != r.Quantity {
			return Result{Outcome: KeyReused}
		}
		if r.Key != "" && e.Key == r.Key && e.OrderID != r.OrderID {
			return Result{Outcome: Reserved, OrderID: e.OrderID, Repeat: true}
		}
	}
	for _, e := range m.users[r.UserID] {
		if e.OrderID == r.OrderID {
			return Result{Outcome: Reserved, Claim: e.Claim, Earlier: &e}
		}
		if !givenBack(e.Mark) {
			held, latest, used[e.Claim] = held+e.Quantity, e.OrderID, true
		}
	}
	back, least := leastGivenBack(m.users[r.UserID])
	switch {
	case !m.found:
		return Result{Outcome: NoProduct}
	case back >= 8 && r.OrderID < least:
		return Result{Outcome: NoTicket}
	case m.a.State == Closed:
		return Result{Outcome: Ended}
	case m.a.State == OnHold:
		return Result{Outcome: Held}
	case epoch != m.epoch:
		return Result{Outcome: Unavailable}
	case at.Before(m.a.Start):
		return Result{Outcome: NotStarted}
	case !at.Before(m.a.End):
		return Result{Outcome: Ended}
	case held+r.Quantity > m.a.Limit:
		return Result{Outcome: AlreadyBought, OrderID: latest}
	case m.avail == 0:
		return Result{Outcome: SoldOut}
	case m.avail < int64(r.Quantity):
		return Result{Outcome: TooFew}
	}
	claim := 1
	for used[claim] {
		claim++
	}
	m.avail -= int64(r.Quantity)
	m.frozen += int64(r.Quantity)
	m.users[r.UserID] = append(m.users[r.UserID], Entry{Mark: MarkQueued, OrderID: r.OrderID, Quantity: r.Quantity, Claim: claim, At: at, Key: r.Key})
	m.outbox[r.OrderID] = r.UserID
	return Result{Outcome: Reserved, Claim: claim}
}

func givenBack(m Mark) bool {
	return m == MarkRejected || m == MarkCancelled || m == MarkExpired
}

func (m *model) entry(v Move) *Entry {
	for i := range m.users[v.UserID] {
		if e := &m.users[v.UserID][i]; e.OrderID == v.OrderID {
			return e
		}
	}
	return nil
}

func (m *model) settle(to Mark, v Move) Moved {
	delete(m.outbox, v.OrderID)
	e := m.entry(v)
	switch {
	case e == nil:
		return Unknown
	case e.Mark == to, to == MarkCreated && (e.Mark == MarkSettled || e.Mark == MarkPaid):
		return Already
	case e.Mark != MarkQueued && e.Mark != MarkCreated:
		return Conflict
	}
	e.Mark = to
	if to != MarkCreated {
		m.frozen -= int64(e.Quantity)
		m.sold += int64(e.Quantity)
	}
	return Done
}

func (m *model) release(to Mark, v Move) Moved {
	delete(m.outbox, v.OrderID)
	e := m.entry(v)
	switch {
	case e == nil:
		return Unknown
	case givenBack(e.Mark):
		return Already
	case e.Mark != MarkQueued && e.Mark != MarkCreated:
		return Conflict
	}
	moved := *e
	moved.Mark = to
	if to == MarkRejected {
		moved.Reason = v.Reason
	}
	m.frozen -= int64(moved.Quantity)
	m.avail += int64(moved.Quantity)
	record := slices.DeleteFunc(m.users[v.UserID], func(o Entry) bool { return o.OrderID == v.OrderID })
	record = append(record, moved)
	if back, least := leastGivenBack(record); back > 8 {
		record = slices.DeleteFunc(record, func(o Entry) bool { return o.OrderID == least })
	}
	m.users[v.UserID] = record
	return Done
}

// leastGivenBack counts the orders of a record that were given back, and finds the
// least of their ids.
func leastGivenBack(record []Entry) (n int, least string) {
	for _, e := range record {
		if !givenBack(e.Mark) {
			continue
		}
		if n++; least == "" || e.OrderID < least {
			least = e.OrderID
		}
	}
	return n, least
}

func (m *model) setState(id string, to ActivityState) (int64, bool, error) {
	switch {
	case !m.found:
		return 0, false, ErrNoActivity
	case m.a.ID != id:
		return 0, false, ErrOtherActivity
	case m.a.State == to && to == OnHold:
		m.epoch++
		return m.epoch, false, nil
	case m.a.State == to:
		return m.epoch, false, nil
	case m.a.State == Closed:
		return 0, false, ErrClosed
	}
	m.a.State = to
	m.epoch++
	return m.epoch, true, nil
}

func (m *model) resize(id string, change, total int64) (Resized, error) {
	switch {
	case !m.found:
		return Resized{}, ErrNoActivity
	case m.a.ID != id:
		return Resized{}, ErrOtherActivity
	case m.a.Changes < change && total-m.frozen-m.sold >= 0:
		m.avail = total - m.frozen - m.sold
		m.a.Total = total
	}
	m.a.Changes = max(m.a.Changes, change)
	return Resized{Done: m.a.Total == total, Total: m.a.Total, Available: m.avail}, nil
}

func (m *model) preheat(a Activity) Preheated {
	switch {
	case m.found && m.a.ID == a.ID:
		return AlreadyThere
	case m.found && (m.a.State != Closed || m.frozen > 0 || len(m.outbox) > 0):
		return Refused
	}
	*m = model{found: true, a: a, epoch: m.epoch + 1, avail: a.Total, users: map[string][]Entry{}, outbox: map[string]string{}}
	return Loaded
}
