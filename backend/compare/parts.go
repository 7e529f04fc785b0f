package compare

import (
	"context"

	"github.com/seckill-edge/seckill/backend/store"
	"github.com/seckill-edge/seckill/lua"
)

// buyer is one record that was read.
type buyer struct {
	user    string
	entries []lua.Entry
	damaged bool
}

// compareRecords looks for the rows of some records' orders.
func (c *look) compareRecords(ctx context.Context, records map[string]string) error {
	buyers := make([]buyer, 0, len(records))
	var ids, queued []string
	var counted Result
	for user, record := range records {
		entries, ok := Read(user, record)
		buyers = append(buyers, buyer{user, entries, !ok || record == ""})
		for _, e := range entries {
			ids = append(ids, e.OrderID)
			if e.Mark == lua.MarkQueued {
				queued = append(queued, e.OrderID)
			}
			counted.count(e)
		}
	}
	outbox, err := c.outboxOf(ctx, queued)
	if err != nil {
		return err
	}
	rows, err := c.Store.Orders(ctx, ids)
	if err != nil {
		return err
	}
	counted.Buyers = int64(len(records))
	var found []Difference
	var matched int64
	for _, b := range buyers {
		if b.damaged {
			found = append(found, Difference{Kind: DamagedRecord, UserID: b.user})
		}
		for i := range b.entries {
			e := &b.entries[i]
			row := rowOf(rows, e.OrderID)
			if row != nil && live(row.State) && row.UserID == b.user && row.ActivityID == c.Activity.ID {
				matched++
			}
			kind, differs := judge(c.Activity, b.user, e, outbox[e.OrderID], row)
			switch {
			case differs && young(e, c.now, c.Patience):
				counted.OnTheWay++
			case differs:
				found = append(found, Difference{Kind: kind, UserID: b.user, OrderID: e.OrderID, Entry: e, Row: row})
			}
		}
	}
	return c.tell(ctx, counted, matched, int64(len(records)), found)
}

func (r *Result) count(e lua.Entry) {
	r.Entries++
	if !e.Mark.GivenBack() {
		r.Live++
	}
	switch {
	case e.Mark.Frozen():
		r.Units.Frozen += int64(e.Quantity)
	case e.Mark.Sold():
		r.Units.Sold += int64(e.Quantity)
	}
}

func rowOf(rows map[string]store.Order, id string) *store.Order {
	row, ok := rows[id]
	if !ok {
		return nil
	}
	return &row
}

// outboxOf says which buyer the outbox has for each of the orders.
func (s Sides) outboxOf(ctx context.Context, product string, ids []string) (map[string]string, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	users, err := lua.InOutbox(ctx, s.Redis, product, ids)
	if err != nil {
		return nil, err
	}
	outbox := make(map[string]string, len(ids))
	for i, user := range users {
		outbox[ids[i]] = user
	}
	return outbox, nil
}

func (c *look) outboxOf(ctx context.Context, ids []string) (map[string]string, error) {
	return c.Sides.outboxOf(ctx, c.Activity.ProductID, ids)
}

// compareRows looks for the records of some rows, after the rows: what is stored
// then has been reserved before.
func (c *look) compareRows(ctx context.Context, rows []store.Order) error {
	users := make([]string, len(rows))
	for i := range rows {
		users[i] = rows[i].UserID
	}
	asking, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	records, err := lua.RawRecords(asking, c.Redis, c.Activity.ProductID, users)
	if err != nil {
		return err
	}
	var found []Difference
	for i := range rows {
		row := &rows[i]
		if entryOf(salvage(records[i]), row.ID) != nil {
			continue // met among the records, or will be at the next look
		}
		kind, differs := judge(c.Activity, row.UserID, nil, "", row)
		if !differs && records[i] == "" && row.ActivityID == c.Activity.ID {
			kind, differs = Forgotten, true
		}
		if differs {
			found = append(found, Difference{Kind: kind, UserID: row.UserID, OrderID: row.ID, Row: row})
		}
	}
	return c.tell(ctx, Result{}, 0, int64(len(rows)), found)
}

func entryOf(entries []lua.Entry, id string) *lua.Entry {
	for i := range entries {
		if entries[i].OrderID == id {
			return &entries[i]
		}
	}
	return nil
}

// Again judges orders a second time, each as both stores have it now, and returns
// those that still differ, of whatever kind. Records, outbox and rows are read
// one after the other.
func (s Sides) Again(ctx context.Context, a store.Activity, differences []Difference) ([]Difference, error) {
	var still []Difference
	for len(differences) > 0 {
		n := min(part, len(differences))
		some, err := s.again(ctx, a, differences[:n])
		if err != nil {
			return nil, err
		}
		still = append(still, some...)
		differences = differences[n:]
	}
	return still, nil
}

func (s Sides) again(ctx context.Context, a store.Activity, differences []Difference) ([]Difference, error) {
	users, ids := make([]string, len(differences)), make([]string, len(differences))
	for i, d := range differences {
		users[i], ids[i] = d.UserID, d.OrderID
	}
	// A missing record needs the row first, everything else the record first. Rows
	// that hold stock are not taken away, so that an old reading of them will do.
	asking, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	records, err := lua.RawRecords(asking, s.Redis, a.ProductID, users)
	if err != nil {
		return nil, err
	}
	outbox, err := s.outboxOf(ctx, a.ProductID, ids)
	if err != nil {
		return nil, err
	}
	rows, err := s.Store.Orders(ctx, ids)
	if err != nil {
		return nil, err
	}
	var still []Difference
	for i, d := range differences {
		entries, ok := Read(d.UserID, records[i])
		if d.Kind == DamagedRecord {
			if !ok || records[i] == "" { // an empty one is none that a script writes
				still = append(still, d)
			}
			continue
		}
		row, entry := rowOf(rows, d.OrderID), entryOf(entries, d.OrderID)
		if d.Kind == MissingInRedis && entry != nil {
			continue
		}
		if kind, differs := judge(a, d.UserID, entry, outbox[d.OrderID], row); differs {
			still = append(still, Difference{Kind: kind, UserID: d.UserID, OrderID: d.OrderID, Entry: entry, Row: row})
		}
	}
	return still, nil
}
