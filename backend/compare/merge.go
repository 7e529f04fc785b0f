package compare

import (
	"slices"
	"strings"

	"github.com/seckill-edge/seckill/backend/settle"
	"github.com/seckill-edge/seckill/backend/store"
	"github.com/seckill-edge/seckill/internal/order"
	"github.com/seckill-edge/seckill/lua"
)

// keptGivenBack is how many given-back orders a record remembers, as release.lua
// has it.
const keptGivenBack = 8

// Merge makes of a buyer's record, damaged or not, the one that SQL's rows ask
// for: of orders that SQL knows the row is right, an order that it does not know
// stays as it is, and what cannot be read goes. rows are all that SQL has of the
// orders in the record, and any more of this buyer's.
func Merge(a store.Activity, user, record string, rows []store.Order) string {
	if !order.ValidUser(user) {
		return ""
	}
	entries := salvage(record)
	for _, row := range rows {
		at := slices.IndexFunc(entries, func(e lua.Entry) bool { return e.OrderID == row.ID })
		mark, ok := settle.MarkOf(row.State, a.PayWindow)
		if !ok || row.UserID != user || row.ActivityID != a.ID {
			// The order is another buyer's or another sale's.
			if at >= 0 {
				entries = slices.Delete(entries, at, at+1)
			}
			continue
		}
		if at < 0 {
			entries = append(entries, lua.Entry{OrderID: row.ID, Claim: 1, At: row.ReservedAt})
			at = len(entries) - 1
		}
		e := &entries[at]
		e.Mark, e.Quantity, e.Reason = mark, row.Quantity, ""
		if mark == lua.MarkRejected {
			e.Reason = row.Reason
		}
		if row.Claim > 0 {
			e.Claim = row.Claim
		}
	}
	return lua.FormatRecord(arranged(entries))
}

// arranged puts live entries first, in the order of reservation, and keeps those
// with the greatest ids of what has been given back.
func arranged(entries []lua.Entry) []lua.Entry {
	var live, back []lua.Entry
	for _, e := range entries {
		if e.Mark.GivenBack() {
			back = append(back, e)
		} else {
			live = append(live, e)
		}
	}
	slices.SortStableFunc(live, func(x, y lua.Entry) int { return x.At.Compare(y.At) })
	for len(back) > keptGivenBack {
		least := 0
		for i := range back {
			if back[i].OrderID < back[least].OrderID {
				least = i
			}
		}
		back = slices.Delete(back, least, least+1)
	}
	return append(live, back...)
}

// salvage reads every entry that can be read, an order once.
func salvage(record string) []lua.Entry {
	var entries []lua.Entry
	for part := range strings.SplitSeq(record, ",") {
		one, err := lua.ParseRecord(part)
		if err != nil || slices.ContainsFunc(entries, func(e lua.Entry) bool { return e.OrderID == one[0].OrderID }) {
			continue
		}
		entries = append(entries, one[0])
	}
	return entries
}

// Read reads a buyer's record, empty for one who has none; false if anything of it
// is damaged. A name that no buyer can have owns nothing: no message could carry
// its orders.
func Read(user, record string) ([]lua.Entry, bool) {
	switch {
	case record == "":
		return nil, true
	case !order.ValidUser(user):
		return nil, false
	}
	entries := salvage(record)
	return entries, len(entries) == strings.Count(record, ",")+1
}
