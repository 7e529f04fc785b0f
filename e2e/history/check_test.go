package history

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/seckill-edge/seckill/internal/order"
	"github.com/seckill-edge/seckill/lua"
)

var begin = time.Date(2026, 11, 11, 20, 0, 0, 0, time.UTC)

func id(n int) string { return fmt.Sprintf("01k%023d", n) }

// good is a sale of 10 units, limit 2, in which nothing went wrong: orders 1 to
// 3 of 2 units each, 4 refused after "queued", 5 stored though its click had no
// answer.
func good() *History {
	h := &History{Total: 10, Limit: 2, Healed: begin.Add(5 * time.Second), Bound: 20 * time.Second}
	for n := 1; n <= 3; n++ {
		buyer := fmt.Sprint("buyer-", n)
		h.Clicks = append(h.Clicks, Click{
			Buyer: buyer, Quantity: 2, Start: begin, End: begin.Add(time.Second),
			Status: 202, OrderID: id(n), ResolveBy: begin.Add(10 * time.Second),
		})
		h.Told = append(h.Told,
			Told{OrderID: id(n), At: begin, Status: 200, State: order.Queued},
			Told{OrderID: id(n), At: begin.Add(9 * time.Second), Status: 200, State: order.Created})
		h.End.Rows = append(h.End.Rows, Row{OrderID: id(n), Buyer: buyer, Quantity: 2, State: order.Created})
		h.End.Entries = append(h.End.Entries, Entry{buyer, lua.Entry{Mark: lua.MarkSettled, OrderID: id(n), Quantity: 2, Claim: 1}})
	}
	h.Clicks = append(h.Clicks,
		Click{Buyer: "buyer-4", Quantity: 1, Status: 202, OrderID: id(4), ResolveBy: begin.Add(10 * time.Second)},
		Click{Buyer: "buyer-5", Quantity: 1, Status: 0},
		Click{Buyer: "buyer-1", Quantity: 1, Status: 409, Code: lua.AlreadyBought, OrderID: id(1)},
		Click{Buyer: "buyer-6", Quantity: 1, Status: 503, Code: lua.Crowded})
	h.Told = append(h.Told, Told{OrderID: id(4), At: begin.Add(9 * time.Second), Status: 200, State: order.Rejected, Reason: "sold out"})
	h.End.Rows = append(h.End.Rows, Row{OrderID: id(5), Buyer: "buyer-5", Quantity: 1, State: order.Created})
	h.End.Entries = append(h.End.Entries, Entry{"buyer-5", lua.Entry{Mark: lua.MarkSettled, OrderID: id(5), Quantity: 1, Claim: 1}})
	h.End.At = begin.Add(time.Minute)
	h.End.Open, h.End.Selling = true, true
	h.End.Total, h.End.Available, h.End.Sold, h.End.Reserved = 10, 3, 7, 7
	return h
}

func TestAGoodHistoryPasses(t *testing.T) {
	require.Equal(t, Verdict{Orders: 4, Units: 7, Refused: map[order.Reason]int{"sold out": 1}}, Check(good()))
}

// lose takes order 3 out of every place but its buyer's hands.
func lose(h *History) {
	h.End.Rows = append(h.End.Rows[:2:2], h.End.Rows[3:]...)
	h.End.Entries = append(h.End.Entries[:2:2], h.End.Entries[3:]...)
	h.End.Sold, h.End.Available, h.End.Reserved = 5, 5, 5
}

// tell replaces the last answer about order n.
func (h *History) tell(n int, status int, state order.State, reason order.Reason) {
	h.Told = append(h.Told, Told{OrderID: id(n), At: begin.Add(50 * time.Second), Status: status, State: state, Reason: reason})
}

// forget removes all answers about an order.
func (h *History) forget(n int) {
	var kept []Told
	for _, t := range h.Told {
		if t.OrderID != id(n) {
			kept = append(kept, t)
		}
	}
	h.Told = kept
}

func TestBrokenPromisesAreFound(t *testing.T) {
	tests := []struct {
		name  string
		spoil func(*History)
		want  map[Kind]int
	}{
		{"SQL sells more than there is", func(h *History) {
			h.Total = 6
			h.End.Total, h.End.Available, h.End.Sold = 6, -1, 7
		}, map[Kind]int{Oversold: 2}},
		{"SQL's guard miscounts", func(h *History) { h.End.Reserved = 6 }, map[Kind]int{Oversold: 1}},
		{"Redis loses a unit", func(h *History) { h.End.Available = 2 }, map[Kind]int{Oversold: 1}},
		{"Redis has given away less than SQL holds", func(h *History) { h.End.Available, h.End.Sold = 4, 6 }, map[Kind]int{Oversold: 1}},
		{"buyers are told of more than there is", func(h *History) {
			for n := 10; n < 14; n++ {
				h.Clicks = append(h.Clicks, Click{Buyer: fmt.Sprint("b", n), Quantity: 2, Status: 202, OrderID: id(n), ResolveBy: begin})
				h.tell(n, 200, order.Created, "")
			}
		}, map[Kind]int{Oversold: 1, Lost: 4}},
		{
			"a buyer over the limit in SQL", func(h *History) { h.End.Rows[0].Quantity = 3; h.End.Reserved = 8; h.End.Sold, h.End.Available = 8, 2 },
			map[Kind]int{Duplicated: 2},
		}, // and the order is not what was asked for
		{"a buyer over the limit in Redis", func(h *History) { h.End.Entries[0].Quantity = 3 }, map[Kind]int{Duplicated: 1}},
		{"one id for two clicks", func(h *History) { c := h.Clicks[0]; h.Clicks = append(h.Clicks, c) }, map[Kind]int{Duplicated: 1}},
		{
			"one id in two rows", func(h *History) {
				h.End.Rows = append(h.End.Rows, Row{OrderID: id(1), Buyer: "buyer-1", Quantity: 2, State: order.Rejected})
			},
			map[Kind]int{Duplicated: 1, Lost: 2, Stuck: 1},
		},
		{"one id twice in the records", func(h *History) {
			e := h.End.Entries[0]
			e.Mark = lua.MarkRejected
			h.End.Entries = append([]Entry{e}, h.End.Entries...)
		}, map[Kind]int{Duplicated: 1}},
		{"an order nobody asked for, in SQL and Redis", func(h *History) {
			h.Clicks = append(h.Clicks[:4:4], h.Clicks[5:]...)
		}, map[Kind]int{Duplicated: 1}},
		{"an order nobody asked for, in Redis only", func(h *History) {
			h.End.Entries = append(h.End.Entries, Entry{"buyer-9", lua.Entry{Mark: lua.MarkQueued, OrderID: id(9), Quantity: 1}})
			h.End.Frozen, h.End.Available = 1, 2
		}, map[Kind]int{Duplicated: 1, Stuck: 2}},
		{"an order of a buyer who was told to come again", func(h *History) {
			h.End.Rows = append(h.End.Rows, Row{OrderID: id(6), Buyer: "buyer-6", Quantity: 1, State: order.Created})
			h.End.Entries = append(h.End.Entries, Entry{"buyer-6", lua.Entry{Mark: lua.MarkSettled, OrderID: id(6), Quantity: 1}})
			h.End.Sold, h.End.Available, h.End.Reserved = 8, 2, 8
		}, map[Kind]int{Duplicated: 1}},
		{"an order stored for another buyer", func(h *History) { h.End.Rows[0].Buyer = "buyer-7" }, map[Kind]int{Duplicated: 2}},
		{"a lost order whose buyer reads created", lose, map[Kind]int{Lost: 1}},
		{"a lost order whose buyer finds nothing", func(h *History) { lose(h); h.tell(3, 404, "", "") }, map[Kind]int{Lost: 1, Untrue: 1}},
		{
			"a lost order that the design does not allow", func(h *History) { lose(h); h.forget(3); h.tell(3, 200, order.Rejected, order.ReasonLost) },
			map[Kind]int{Lost: 1},
		},
		{"a lost order that it allows, but the buyer waits for ever", func(h *History) {
			h.Forgetful = true
			lose(h)
			h.forget(3)
			h.tell(3, 200, order.Queued, "")
		}, map[Kind]int{Stuck: 1, Late: 1}},
		{"a lost order that Redis had granted", func(h *History) {
			h.Unheard = 2 * time.Second
			lose(h)
			h.forget(3)
			h.tell(3, 200, order.Rejected, order.ReasonLost)
		}, map[Kind]int{Lost: 1}},
		{"an order rejected for no reason", func(h *History) {
			h.End.Rows[2].State, h.End.Rows[2].Reason = order.Rejected, order.ReasonOversold
			h.End.Entries[2].Mark = lua.MarkRejected
			h.End.Sold, h.End.Available, h.End.Reserved = 5, 5, 5
			h.forget(3)
			h.tell(3, 200, order.Rejected, order.ReasonOversold)
		}, map[Kind]int{Lost: 1}},
		{"created first, rejected later", func(h *History) { h.tell(3, 200, order.Rejected, order.ReasonOversold) }, map[Kind]int{Lost: 2, Untrue: 1}},
		{"rejected first, created later", func(h *History) {
			h.Told = append([]Told{{OrderID: id(3), Status: 200, State: order.Rejected}}, h.Told...)
		}, map[Kind]int{Lost: 1, Untrue: 1}},
		{"queued for ever", func(h *History) { h.forget(3); h.tell(3, 200, order.Queued, "") }, map[Kind]int{Stuck: 1, Late: 1}},
		{"never told", func(h *History) { h.forget(3) }, map[Kind]int{Stuck: 1}},
		{"refused, but its unit is held", func(h *History) {
			h.End.Entries = append(h.End.Entries, Entry{"buyer-4", lua.Entry{Mark: lua.MarkQueued, OrderID: id(4), Quantity: 1}})
		}, map[Kind]int{Stuck: 2}},
		{"judged too early", func(h *History) { h.forget(3); h.End.At = begin }, map[Kind]int{Stuck: 1}},
		{
			"stored and not settled", func(h *History) { h.End.Entries[1].Mark = lua.MarkQueued; h.End.Frozen, h.End.Sold = 2, 5 },
			map[Kind]int{Stuck: 2},
		},
		{"rejected and not released", func(h *History) {
			h.Clicks[0].Status, h.Clicks[0].OrderID = 0, ""
			h.forget(1)
			h.End.Rows[0].State = order.Rejected
			h.End.Reserved = 5
		}, map[Kind]int{Stuck: 1}},
		{"the activity stays held", func(h *History) { h.End.Open = false }, map[Kind]int{Stuck: 1}},
		{"an edge stays shut", func(h *History) { h.End.Selling = false }, map[Kind]int{Stuck: 1}},
		{"the outbox is not empty", func(h *History) { h.End.Outbox = 1 }, map[Kind]int{Stuck: 1}},
		{"the queue is not empty", func(h *History) { h.End.Queued = 1 }, map[Kind]int{Stuck: 1}},
		{"dead letters", func(h *History) { h.End.Dead = 1 }, map[Kind]int{Stuck: 1}},
		{"drift", func(h *History) { h.End.Drift = -1 }, map[Kind]int{Stuck: 1}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			h := good()
			test.spoil(h)
			v := Check(h)
			got := map[Kind]int{}
			for _, violation := range v.Violations {
				got[violation.Kind]++
			}
			require.Equal(t, test.want, got, "%v", v.Violations)
		})
	}
}

func TestALossThatTheDesignAllowsIsCountedApart(t *testing.T) {
	for name, allow := range map[string]func(*History){
		"Redis forgot, and an edge died":     func(h *History) { h.Forgetful = true },
		"it was queued without Redis's word": func(h *History) { h.Unheard = time.Second },
	} {
		t.Run(name, func(t *testing.T) {
			h := good()
			allow(h)
			lose(h)
			h.forget(3)
			h.tell(3, 200, order.Rejected, order.ReasonLost)
			v := Check(h)
			require.Empty(t, v.Violations)
			require.Equal(t, 1, v.GivenUp)
			require.Equal(t, map[order.Reason]int{"sold out": 1, order.ReasonLost: 1}, v.Refused)
		})
	}
}
