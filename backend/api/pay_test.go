package api

import (
	"crypto/rand"
	"encoding/json"
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/seckill-edge/seckill/internal/order"
)

// order stores an order of a sale with a payment stage, or without.
func (s *site) order(t *testing.T, payWindow int) string {
	product := fmt.Sprint(2000 + payWindow)
	out := s.do(t, request{method: http.MethodPost, path: "/api/activities", body: draft(func(d map[string]any) {
		d["id"], d["product_id"], d["pay_window_seconds"] = "sale-"+product, product, payWindow
	})})
	require.Contains(t, []int{http.StatusCreated, http.StatusConflict}, out.Code, out.Body)
	id, err := order.NewID(time.Now(), rand.Reader)
	require.NoError(t, err)
	saved, err := s.store.SaveOrders(t.Context(), []order.Order{{
		ID: id, ActivityID: "sale-" + product, ProductID: product, UserID: "buyer of " + id, Quantity: 1, Claim: 1, ReservedAt: time.Now(),
	}})
	require.NoError(t, err)
	require.Equal(t, order.Created, saved[0].State)
	return id
}

// post sends a body and reads the answer into out.
func (s *site) post(t *testing.T, path, body string, status int, out any) {
	t.Helper()
	got := s.do(t, request{method: http.MethodPost, path: path, body: body})
	require.Equal(t, status, got.Code, got.Body)
	require.NoError(t, json.Unmarshal(got.Body.Bytes(), out))
}

func TestPaymentsThroughTheAPI(t *testing.T) {
	s := newSite(t, "")
	id := s.order(t, 60)
	for _, repeat := range []bool{false, true} {
		var paid Paid
		s.post(t, "/api/orders/"+id+"/paid", `{"payment_id":"pay/1"}`, http.StatusOK, &paid)
		require.Equal(t, "applied", paid.Outcome)
		require.Equal(t, repeat, paid.Repeat)
		require.Equal(t, "paid", paid.Order.State)
	}
	var problem stateError
	s.post(t, "/api/orders/"+id+"/cancel", "", http.StatusConflict, &problem)
	require.Equal(t, "paid", problem.State)
	require.Contains(t, problem.Detail, "it is paid, for good")

	var shown OrderShown
	out := s.do(t, request{path: "/api/orders/" + id})
	require.NoError(t, json.Unmarshal(out.Body.Bytes(), &shown))
	require.Equal(t, "paid", shown.State)
	require.Equal(t, "2060", shown.ProductID)
	require.Equal(t, "buyer of "+id, shown.UserID)
	require.NotNil(t, shown.Due)
	require.Len(t, shown.Payments, 1)

	// One that comes too late is kept, told of, and given back.
	late := s.order(t, 60)
	for _, repeat := range []bool{false, true} {
		var cancelled Cancelled
		s.post(t, "/api/orders/"+late+"/cancel", `{"reason":"changed_mind"}`, http.StatusOK, &cancelled)
		require.Equal(t, "cancelled", cancelled.Order.State)
		require.Equal(t, "changed_mind", cancelled.Order.Reason)
		require.Equal(t, repeat, cancelled.Repeat)
	}
	var paid Paid
	s.post(t, "/api/orders/"+late+"/paid", `{"payment_id":"late/1"}`, http.StatusOK, &paid)
	require.Equal(t, "refund_due", paid.Outcome)
	require.Equal(t, "cancelled", paid.Order.State)
	var refunds Refunds
	list := func() {
		out := s.do(t, request{path: "/api/refunds"})
		refunds = Refunds{}
		require.NoError(t, json.Unmarshal(out.Body.Bytes(), &refunds))
	}
	list()
	require.EqualValues(t, 1, refunds.Total)
	require.Equal(t, "late/1", refunds.Refunds[0].ID)
	for range 2 {
		var done Payment
		s.post(t, "/api/refunds/late%2F1/done", "", http.StatusOK, &done)
		require.Equal(t, "refunded", done.Outcome)
		require.NotNil(t, done.RefundedAt)
	}
	list()
	require.Zero(t, refunds.Total)
	s.post(t, "/api/refunds/pay%2F1/done", "", http.StatusConflict, &problem)
	s.post(t, "/api/refunds/none/done", "", http.StatusNotFound, &problem)
}

func TestRefusedPayments(t *testing.T) {
	s := newSite(t, "secret")
	token := map[string]string{"Authorization": "Bearer secret"}
	sold, err := order.NewID(time.Now(), rand.Reader)
	require.NoError(t, err)
	for _, path := range []string{"/api/orders/" + sold + "/paid", "/api/orders/" + sold + "/cancel", "/api/refunds/x/done"} {
		out := s.do(t, request{method: http.MethodPost, path: path, body: `{"payment_id":"p"}`})
		require.Equal(t, http.StatusUnauthorized, out.Code)
		out = s.do(t, request{method: http.MethodPost, path: path, body: `{"payment_id":"p"}`, header: token})
		require.Contains(t, []int{http.StatusNotFound, http.StatusUnprocessableEntity}, out.Code, out.Body)
	}

	s = newSite(t, "")
	id := s.order(t, 0)
	var problem stateError
	for _, path := range []string{"/paid", "/cancel"} {
		s.post(t, "/api/orders/"+id+path, map[string]string{"/paid": `{"payment_id":"p"}`}[path], http.StatusConflict, &problem)
		require.Equal(t, "created", problem.State)
		require.Contains(t, problem.Detail, "no payment stage")
	}
	for _, tc := range []struct{ path, body string }{
		{"/api/orders/" + id + "/paid", `{}`},
		{"/api/orders/" + id + "/paid", `{"payment_id":""}`},
		{"/api/orders/" + id + "/paid", `{"payment_id":"a b"}`},
		{"/api/orders/x/paid", `{"payment_id":"p"}`},
		{"/api/orders/" + id + "/cancel", `{"reason":"Not so"}`},
	} {
		s.post(t, tc.path, tc.body, http.StatusUnprocessableEntity, &problem)
	}
	// A reference belongs to one order.
	one, two := s.order(t, 60), s.order(t, 60)
	var paid Paid
	s.post(t, "/api/orders/"+one+"/paid", `{"payment_id":"p"}`, http.StatusOK, &paid)
	s.post(t, "/api/orders/"+two+"/paid", `{"payment_id":"p"}`, http.StatusConflict, &problem)
	require.Contains(t, problem.Detail, one)
}
