package caddyplugin

import (
	"errors"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/seckill-edge/seckill/caddyplugin/gate"
	"github.com/seckill-edge/seckill/internal/order"
	"github.com/seckill-edge/seckill/lua"
)

func TestShowActivity(t *testing.T) {
	start := time.Date(2026, 11, 11, 12, 0, 0, 0, time.UTC)
	end := start.Add(time.Hour)
	view := func(now time.Time, state lua.ActivityState, available int64, fresh, damaged bool) gate.View {
		return gate.View{Fresh: fresh, Snapshot: lua.Snapshot{
			Activity: lua.Activity{ID: "a1", ProductID: "1001", Title: `Phone "X" <b>`, Start: start, End: end, Total: 10, Limit: 2, PayWindow: 15 * time.Minute, State: state},
			Now:      now, Available: available, Damaged: damaged,
		}}
	}
	unproven := func(v gate.View) gate.View { // held until its stock is proven
		v.RunID = lua.Unproven
		return v
	}
	before, during := start.Add(-time.Millisecond), start
	for _, tc := range []struct {
		view  gate.View
		state string
		left  bool
	}{
		{view(before, lua.Open, 10, true, false), "scheduled", true},
		{view(before, lua.Open, 10, false, false), "scheduled", true},
		{view(before, lua.OnHold, 10, true, false), "held", true},
		{view(during, lua.Open, 10, true, false), "open", true},
		{view(before, lua.Open, 10, true, true), "unavailable", false},
		{view(during, lua.Open, 10, false, false), "unavailable", true},
		{view(during, lua.Open, 10, true, true), "unavailable", false},
		{view(during, lua.OnHold, 0, true, false), "held", false},
		{unproven(view(during, lua.OnHold, 10, true, false)), "unavailable", true},
		{unproven(view(before, lua.OnHold, 10, true, false)), "unavailable", true},
		{view(during, lua.Open, 0, true, false), "sold_out", false},
		{view(end.Add(-1), lua.Open, 1, true, false), "open", true},
		{view(end, lua.Open, 1, true, false), "ended", true},
		{view(end, lua.OnHold, 0, false, false), "ended", false},
		{view(during, lua.Closed, 1, true, false), "closed", true},
	} {
		s := newScript()
		s.view = tc.view
		r := serveAs(t, newTestHandler(s), get("/seckill/1001"), "")
		require.Equal(t, http.StatusOK, r.StatusCode)
		require.Equal(t, "public, max-age=1", r.Header.Get("Cache-Control"))
		require.Equal(t, "application/json", r.Header.Get("Content-Type"))
		require.Equal(t, map[string]any{
			"product_id": "1001", "activity_id": "a1", "title": `Phone "X" <b>`, "limit": 2.0, "pay_window_seconds": 900.0,
			"start": "2026-11-11T12:00:00.000Z", "end": "2026-11-11T13:00:00.000Z",
			"now": tc.view.Now.Format(timeLayout), "state": tc.state, "left": tc.left,
		}, document(t, r))
		require.Equal(t, "1001", s.asked)
	}
	s := newScript()
	s.outcome = lua.NoProduct
	requireProblem(t, serve(t, newTestHandler(s), get("/seckill/1001")), 404, -5)
	s.outcome = lua.Unavailable
	r := serve(t, newTestHandler(s), get("/seckill/1001"))
	requireProblem(t, r, 503, -14)
	require.Equal(t, "1", r.Header.Get("Retry-After"))
}

func TestShowOrder(t *testing.T) {
	for _, tc := range []struct {
		fate       gate.Fate
		want       map[string]any
		retryAfter string
	}{
		{
			gate.Fate{OrderID: orderID, State: order.Queued, Quantity: 2, ResolveBy: resolveBy, RetryAfter: time.Second},
			map[string]any{"final": false, "order_id": orderID, "status": "queued", "quantity": 2.0, "resolve_by": "2026-11-11T12:00:30.005Z"},
			"1",
		},
		{
			gate.Fate{OrderID: orderID, State: order.Created, Quantity: 1, ResolveBy: resolveBy, RetryAfter: 5 * time.Second},
			map[string]any{"final": false, "order_id": orderID, "status": "created", "quantity": 1.0},
			"5",
		},
		{
			gate.Fate{OrderID: orderID, State: order.Rejected, Reason: order.ReasonLost, Quantity: 1, Final: true},
			map[string]any{"final": true, "order_id": orderID, "status": "rejected", "reason": "lost", "quantity": 1.0},
			"",
		},
	} {
		s := newScript()
		s.fate = tc.fate
		r := serve(t, newTestHandler(s), get(location))
		require.Equal(t, http.StatusOK, r.StatusCode)
		require.Equal(t, "no-store", r.Header.Get("Cache-Control"))
		require.Equal(t, tc.retryAfter, r.Header.Get("Retry-After"))
		require.Equal(t, tc.want, document(t, r))
		require.Equal(t, "1001 alice "+orderID, s.asked)
	}
	s := newScript()
	s.err = gate.ErrNoOrder
	requireProblem(t, serve(t, newTestHandler(s), get(location)), 404, 0)
	s.err = errors.Join(gate.ErrUnavailable, errors.New("dial tcp"))
	r := serve(t, newTestHandler(s), get(location))
	requireProblem(t, r, 503, 0)
	require.Equal(t, "1", r.Header.Get("Retry-After"))
}
