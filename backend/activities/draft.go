package activities

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/seckill-edge/seckill/backend/store"
	"github.com/seckill-edge/seckill/internal/order"
)

// Draft is an activity as an operator writes it down. Times are RFC 3339 with a
// zone; the wall clock of a server is nobody's.
type Draft struct {
	// ID is made if empty.
	ID        string
	ProductID string
	Title     string
	Start     string
	End       string
	// Total is in units, 1 to order.MaxUnits; Limit in units per user, 1 to
	// order.MaxQuantity.
	Total int64
	Limit int
	// PayWindow is how long a buyer may take to pay; 0 means that a stored order
	// is sold.
	PayWindow time.Duration
	// Manual leaves preheating and opening to the operator.
	Manual bool
}

// Field is one field that is wrong: its name as in the API's JSON, its value, and
// what is allowed.
type Field struct {
	Name    string
	Value   string
	Allowed string
}

// Invalid reports every wrong field of what was asked.
type Invalid struct{ Fields []Field } //nolint:errname // activities.Invalid says what it is

// Error names each field, its value and what is allowed.
func (e *Invalid) Error() string {
	parts := make([]string, len(e.Fields))
	for i, f := range e.Fields {
		parts[i] = fmt.Sprintf("%s %q: %s", f.Name, f.Value, f.Allowed)
	}
	return strings.Join(parts, "; ")
}

const (
	allowedID    = "must be 1 to 64 of A-Z a-z 0-9 _ and -"
	allowedTime  = "must be a time with its zone, in the years 1970 to 9999 UTC, like 2026-11-11T20:00:00+08:00"
	maxPayWindow = 7 * 24 * time.Hour
)

// activity checks the draft. The error is *Invalid.
func (d Draft) activity(now time.Time) (store.Activity, error) {
	var wrong []Field
	check := func(ok bool, name, value, allowed string) {
		if !ok {
			wrong = append(wrong, Field{name, value, allowed})
		}
	}
	check(d.ID == "" || order.ValidProduct(d.ID), "id", d.ID, allowedID)
	check(order.ValidProduct(d.ProductID), "product_id", d.ProductID, allowedID)
	if err := order.CheckTitle(d.Title); err != nil {
		check(false, "title", d.Title, err.Error())
	}
	start, err := time.Parse(time.RFC3339, d.Start)
	check(err == nil && order.ValidTime(start), "start", d.Start, allowedTime)
	end, err2 := time.Parse(time.RFC3339, d.End)
	check(err2 == nil && order.ValidTime(end), "end", d.End, allowedTime)
	if err == nil && err2 == nil && order.ValidTime(start) && order.ValidTime(end) {
		check(start.Truncate(time.Millisecond).Before(end.Truncate(time.Millisecond)), "end", d.End, "must be after the start, "+d.Start)
		check(end.After(now), "end", d.End, "must be in the future; it is "+now.UTC().Format(time.RFC3339)+" now")
	}
	check(1 <= d.Total && d.Total <= order.MaxUnits, "total", strconv.FormatInt(d.Total, 10), "must be 1 to 1000000000 units")
	check(1 <= d.Limit && d.Limit <= order.MaxQuantity, "limit", strconv.Itoa(d.Limit), "must be 1 to 999 units a user")
	check(0 <= d.PayWindow && d.PayWindow <= maxPayWindow && d.PayWindow%time.Second == 0,
		"pay_window_seconds", d.PayWindow.String(), "must be 0 (no payment stage) or whole seconds up to 168h")
	if wrong != nil {
		return store.Activity{}, &Invalid{wrong}
	}
	return store.Activity{
		ID:        d.ID,
		ProductID: d.ProductID,
		Title:     d.Title,
		Start:     start.UTC().Truncate(time.Millisecond),
		End:       end.UTC().Truncate(time.Millisecond),
		Total:     d.Total,
		Limit:     d.Limit,
		PayWindow: d.PayWindow,
		Manual:    d.Manual,
		State:     store.Scheduled,
		CreatedAt: now.UTC().Truncate(time.Millisecond),
	}, nil
}
