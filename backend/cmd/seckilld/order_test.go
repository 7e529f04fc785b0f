package main

import (
	"crypto/rand"
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/seckill-edge/seckill/backend/api"
	"github.com/seckill-edge/seckill/backend/store"
	"github.com/seckill-edge/seckill/internal/order"
	"github.com/seckill-edge/seckill/lua"
)

// bought makes an order that waits for its payment, in Redis and in SQL.
func (s *shell) bought() string {
	client, err := lua.NewClient(s.env["SECKILL_REDIS_URL"], "test")
	require.NoError(s, err)
	defer func() { require.NoError(s, client.Close()) }()
	stored, err := store.New(s.Context(), s.env["SECKILL_DATABASE_URL"], nil)
	require.NoError(s, err)
	defer func() { require.NoError(s, stored.Close()) }()
	id, err := order.NewID(time.Now(), rand.Reader)
	require.NoError(s, err)
	snapshot, _, err := lua.Audit(s.Context(), client, "1001")
	require.NoError(s, err)
	batch, err := lua.Reserve(s.Context(), client, "1001", snapshot.Epoch, []lua.Request{{OrderID: id, UserID: "buyer " + id, Quantity: 1}})
	require.NoError(s, err)
	require.Equal(s, lua.Reserved, batch.Results[0].Outcome)
	_, err = stored.SaveOrders(s.Context(), []order.Order{{
		ID: id, ActivityID: batch.ActivityID, ProductID: "1001", UserID: "buyer " + id, Quantity: 1, Claim: 1, ReservedAt: batch.At,
	}})
	require.NoError(s, err)
	return id
}

// reserved is an order that Redis has and nobody else, as an edge that dies leaves it.
func (s *shell) reserved() string {
	client, err := lua.NewClient(s.env["SECKILL_REDIS_URL"], "test")
	require.NoError(s, err)
	defer func() { require.NoError(s, client.Close()) }()
	id, err := order.NewID(time.Now(), rand.Reader)
	require.NoError(s, err)
	snapshot, _, err := lua.Audit(s.Context(), client, "1001")
	require.NoError(s, err)
	batch, err := lua.Reserve(s.Context(), client, "1001", snapshot.Epoch, []lua.Request{{OrderID: id, UserID: "buyer " + id, Quantity: 1}})
	require.NoError(s, err)
	require.Equal(s, lua.Reserved, batch.Results[0].Outcome)
	return id
}

func TestOrdersAndRefunds(t *testing.T) {
	s := newShell(t)
	s.must("migrate")
	s.must(create("--pay-window", "1h")...)
	s.must("activity", "preheat", "1001")
	s.must("activity", "open", "1001")
	paid, gone := s.bought(), s.bought()

	for _, repeat := range []bool{false, true} {
		var out api.Paid
		require.NoError(t, json.Unmarshal([]byte(s.must("order", "pay", paid, "--payment", "p/1", "--json")), &out))
		require.Equal(t, "applied", out.Outcome)
		require.Equal(t, repeat, out.Repeat)
	}
	require.Contains(t, s.must("order", "cancel", gone, "--reason", "fraud"), "cancelled: fraud")
	require.Contains(t, s.must("order", "show", s.bought()), "to be paid by")
	late := s.must("order", "pay", gone, "--payment", "p/2")
	require.Contains(t, late, "refund_due")
	require.Contains(t, late, "seckilld refund done p/2")
	require.NotContains(t, late, "to be paid by", "it is cancelled")
	var again api.Paid
	require.NoError(t, json.Unmarshal([]byte(s.must("order", "pay", gone, "--payment", "p/2", "--json")), &again))
	require.Equal(t, "refund_due", again.Outcome)
	audit := s.must("activity", "audit", "1001")
	require.Contains(t, audit, "available 5 + frozen 1 + sold 1")
	require.Contains(t, audit, "drift")

	var shown api.OrderShown
	require.NoError(t, json.Unmarshal([]byte(s.must("order", "show", paid, "--json")), &shown))
	require.Equal(t, "paid", shown.State)
	require.NotNil(t, shown.Due)
	require.Equal(t, "p/1", shown.Payments[0].ID)
	require.Contains(t, s.must("order", "show", gone), "p/2 of ")

	require.Contains(t, s.must("refund", "list"), "p/2")
	require.Contains(t, s.must("refund", "done", "p/2"), "refunded at")
	require.Equal(t, "no refund is due\n", s.must("refund", "list"))
	var none api.Refunds
	require.NoError(t, json.Unmarshal([]byte(s.must("refund", "list", "--json")), &none))
	require.Zero(t, none.Total)

	unknown, err := order.NewID(time.Now(), rand.Reader)
	require.NoError(t, err)
	for name, tc := range map[string]struct {
		args []string
		code int
		says string
	}{
		"cancel what is paid": {[]string{"order", "cancel", paid}, exitRefused, "it is paid, for good"},
		"unknown order":       {[]string{"order", "show", unknown}, exitRefused, "show: order " + unknown + " is not stored"},
		"cancel no order":     {[]string{"order", "cancel", unknown}, exitRefused, "cancel: order " + unknown + " is not stored"},
		"pay no order":        {[]string{"order", "pay", unknown, "--payment", "p/9"}, exitRefused, "pay: order " + unknown + " is not stored"},
		"unknown payment":     {[]string{"refund", "done", "none"}, exitRefused, `done: payment "none" was never reported`},
		"no refund due":       {[]string{"refund", "done", "p/1"}, exitRefused, "no refund is due"},
		"another's payment":   {[]string{"order", "pay", gone, "--payment", "p/1"}, exitRefused, paid},
		"no id":               {[]string{"order", "show", "x"}, exitUsage, "26 of"},
		"no reference":        {[]string{"order", "pay", paid}, exitUsage, "--payment"},
		"bad reason":          {[]string{"order", "cancel", paid, "--reason", "No!"}, exitUsage, "--reason"},
		"bad limit":           {[]string{"refund", "list", "--limit", "0"}, exitUsage, "--limit"},
	} {
		t.Run(name, func(t *testing.T) {
			code, _, errs := s.run(tc.args...)
			require.Equal(t, tc.code, code, errs)
			require.Contains(t, errs, tc.says)
		})
	}
}

func TestNoPaymentStageIsRefused(t *testing.T) {
	s := newShell(t)
	s.must("migrate")
	s.must(create()...)
	s.must("activity", "preheat", "1001")
	s.must("activity", "open", "1001")
	id := s.bought()
	for _, args := range [][]string{{"order", "pay", id, "--payment", "p"}, {"order", "cancel", id}} {
		code, _, errs := s.run(args...)
		require.Equal(t, exitRefused, code)
		require.Contains(t, errs, "no payment stage")
	}
}
