package compare

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/seckill-edge/seckill/backend/store"
	"github.com/seckill-edge/seckill/internal/order"
	"github.com/seckill-edge/seckill/lua"
)

var at = time.UnixMilli(1_794_000_000_000)

func id(n byte) string { return "01kb0c3v9t4z6q8w2x5y7a1d" + string([]byte{'0' + n/10, '0' + n%10}) }

func entry(mark lua.Mark, n byte, quantity int) lua.Entry {
	return lua.Entry{Mark: mark, OrderID: id(n), Quantity: quantity, Claim: 1, At: at.Add(time.Duration(n) * time.Second)}
}

func row(state order.State, n byte, quantity int) store.Order {
	o := store.Order{State: state, Order: order.Order{
		ID: id(n), ActivityID: "a", ProductID: "p", UserID: "u", Quantity: quantity, ReservedAt: at.Add(time.Duration(n) * time.Second),
	}}
	if live(state) {
		o.Claim = 1
	}
	if state == order.Rejected {
		o.Reason = order.ReasonOversold
	}
	return o
}

// TestJudge meets every mark with every state, and none with none.
func TestJudge(t *testing.T) {
	const none = lua.Mark('-')
	type want map[lua.Mark]Kind
	const (
		ok = Kind("")
		// The outbox has the order in these columns.
		conflict = StateConflict
	)
	table := map[order.State]want{
		"": {none: ok, 'q': Unpublished, 'c': SettledNotStored, 's': SettledNotStored, 'p': SettledNotStored, 'r': ok, 'x': ok, 'e': ok},
		order.Created: {
			none: MissingInRedis, 'q': StoredNotSettled, 'c': ok, 's': conflict, 'p': conflict,
			'r': conflict, 'x': conflict, 'e': conflict,
		},
		order.Paid: {
			none: MissingInRedis, 'q': StoredNotSettled, 'c': StoredNotSettled, 's': ok, 'p': ok,
			'r': conflict, 'x': conflict, 'e': conflict,
		},
	}
	for _, back := range []order.State{order.Rejected, order.Cancelled, order.Expired} {
		table[back] = want{none: ok, 'q': StoredNotSettled, 'c': StoredNotSettled, 's': conflict, 'p': conflict, 'r': ok, 'x': ok, 'e': ok}
	}
	a := store.Activity{ID: "a", ProductID: "p", PayWindow: time.Minute}
	for state, wants := range table {
		for mark, kind := range wants {
			var e *lua.Entry
			var r *store.Order
			if mark != none {
				made := entry(mark, 1, 2)
				e = &made
			}
			if state != "" {
				made := row(state, 1, 2)
				r = &made
			}
			got, differs := judge(a, "u", e, "u", r)
			if !differs {
				got = ok
			}
			require.Equal(t, kind, got, "mark %c, state %q", mark, state)
			if e != nil && r != nil && live(state) {
				r.Quantity = 1
				_, differs = judge(a, "u", e, "u", r)
				require.True(t, differs, "another quantity: mark %c, state %q", mark, state)
			}
			if r != nil {
				r.UserID = "v"
				got, differs = judge(a, "u", e, "u", r)
				require.True(t, differs)
				require.Equal(t, conflict, got)
			}
		}
	}
	e := entry(lua.MarkQueued, 1, 2)
	got, _ := judge(a, "u", &e, "", nil)
	require.Equal(t, LostAfterPublish, got)
	// Without a payment stage a created order is sold.
	a.PayWindow = 0
	r := row(order.Created, 1, 2)
	e.Mark = lua.MarkCreated
	got, _ = judge(a, "u", &e, "", &r)
	require.Equal(t, StoredNotSettled, got)
}

func TestMerge(t *testing.T) {
	a := store.Activity{ID: "a", ProductID: "p"}
	format := func(entries ...lua.Entry) string { return lua.FormatRecord(entries) }
	rejected := entry(lua.MarkRejected, 3, 1)
	rejected.Reason = order.ReasonOversold
	foreign := row(order.Created, 2, 1)
	foreign.UserID = "v"
	var nine []lua.Entry
	for n := range byte(9) {
		nine = append(nine, entry(lua.MarkCancelled, 10+n, 1))
	}
	for name, tc := range map[string]struct {
		record string
		rows   []store.Order
		want   string
	}{
		"nothing":             {"", nil, ""},
		"new":                 {"", []store.Order{row(order.Created, 1, 2)}, format(entry('s', 1, 2))},
		"in order":            {format(entry('q', 2, 1)), []store.Order{row(order.Created, 1, 2)}, format(entry('s', 1, 2), entry('q', 2, 1))},
		"SQL knows better":    {format(entry('x', 1, 9)), []store.Order{row(order.Paid, 1, 2)}, format(entry('p', 1, 2))},
		"given back goes aft": {format(entry('s', 3, 1), entry('s', 4, 1)), []store.Order{row(order.Rejected, 3, 1)}, format(entry('s', 4, 1), rejected)},
		"unknown to SQL":      {format(entry('s', 1, 1), entry('q', 2, 1)), nil, format(entry('s', 1, 1), entry('q', 2, 1))},
		"another buyer's":     {format(entry('s', 1, 1), entry('s', 2, 1)), []store.Order{foreign}, format(entry('s', 1, 1))},
		"damaged":             {"x," + format(entry('s', 1, 1)) + ",y:z", nil, format(entry('s', 1, 1))},
		"twice":               {format(entry('s', 1, 1), entry('q', 1, 1)), nil, format(entry('s', 1, 1))},
		"eight are enough":    {format(nine...), nil, format(nine[1:]...)},
		"a reason goes":       {format(rejected), []store.Order{row(order.Created, 3, 1)}, format(entry('s', 3, 1))},
	} {
		t.Run(name, func(t *testing.T) {
			got := Merge(a, "u", tc.record, tc.rows)
			require.Equal(t, tc.want, got)
			require.Equal(t, got, Merge(a, "u", got, tc.rows), "twice is once")
			if got != "" {
				entries, err := lua.ParseRecord(got)
				require.NoError(t, err)
				require.Len(t, entries, strings.Count(got, ",")+1)
			}
		})
	}
}
