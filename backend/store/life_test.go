package store

import (
	"crypto/rand"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/seckill-edge/seckill/internal/order"
)

const window = 15 * time.Minute

// payable makes an open activity with a payment stage.
func payable(t testing.TB, s *Store, total int64, limit int) Activity {
	a := sale(t, s, total, limit)
	require.NoError(t, s.db.Exec("UPDATE activities SET pay_window_ms = ? WHERE id = ?", window.Milliseconds(), a.ID).Error)
	a.PayWindow = window
	return a
}

// save stores orders that must all be created.
func save(t testing.TB, s *Store, orders []order.Order) []order.Order {
	saved, err := s.SaveOrders(t.Context(), orders)
	require.NoError(t, err)
	for _, one := range saved {
		require.Equal(t, order.Created, one.State)
	}
	return orders
}

func TestPay(t *testing.T) {
	onEach(t, func(t *testing.T, address string) {
		s := open(t, address)
		a := payable(t, s, 10, 3)
		o := save(t, s, []order.Order{a.wants("alice", 2, 1)})[0]
		stored, err := s.Order(t.Context(), o.ID)
		require.NoError(t, err)
		require.Equal(t, epoch.Add(window), stored.DueAt)

		m, err := s.Pay(t.Context(), o.ID, "pay-1")
		require.NoError(t, err)
		require.Equal(t, MoveDone, m.Result)
		require.False(t, m.Repeat)
		require.Equal(t, order.Paid, m.Order.State)
		require.Equal(t, 1, m.Order.Claim, "a paid order keeps its claim")
		require.Equal(t, window, m.PayWindow)
		require.Equal(t, Payment{ID: "pay-1", OrderID: o.ID, ActivityID: a.ID, Outcome: Applied, At: epoch}, m.Payment)
		require.EqualValues(t, 2, requireExact(t, s, a.ID))

		again, err := s.Pay(t.Context(), o.ID, "pay-1")
		require.NoError(t, err)
		require.True(t, again.Repeat)
		again.Repeat = false
		require.Equal(t, m, again)

		// Money that came twice is due back, and the order stays paid.
		twice, err := s.Pay(t.Context(), o.ID, "pay-2")
		require.NoError(t, err)
		require.Equal(t, MoveLost, twice.Result)
		require.Equal(t, RefundDue, twice.Payment.Outcome)
		require.Equal(t, order.Paid, twice.Order.State)

		lost, err := s.Cancel(t.Context(), o.ID, "late")
		require.NoError(t, err)
		require.Equal(t, MoveLost, lost.Result)
		require.Equal(t, order.Paid, lost.Order.State)
		expired, err := s.Expire(t.Context(), epoch.Add(2*window), 10)
		require.NoError(t, err)
		require.Empty(t, expired)
		require.EqualValues(t, 2, requireExact(t, s, a.ID))

		all, err := s.Payments(t.Context(), o.ID)
		require.NoError(t, err)
		require.Equal(t, []Payment{m.Payment, twice.Payment}, all)
	})
}

func TestCancelGivesBackOnce(t *testing.T) {
	onEach(t, func(t *testing.T, address string) {
		s := open(t, address)
		a := payable(t, s, 10, 3)
		o := save(t, s, []order.Order{a.wants("alice", 3, 1)})[0]
		m, err := s.Cancel(t.Context(), o.ID, "changed_mind")
		require.NoError(t, err)
		require.Equal(t, MoveDone, m.Result)
		require.Equal(t, order.Cancelled, m.Order.State)
		require.Equal(t, order.Reason("changed_mind"), m.Order.Reason)
		require.Zero(t, m.Order.Claim)
		require.Zero(t, requireExact(t, s, a.ID))
		stored, err := s.Order(t.Context(), o.ID)
		require.NoError(t, err)
		require.Equal(t, m.Order, stored)

		again, err := s.Cancel(t.Context(), o.ID, "another_word")
		require.NoError(t, err)
		require.True(t, again.Repeat)
		require.Equal(t, m.Order, again.Order)
		require.Zero(t, requireExact(t, s, a.ID))

		// A redelivery does not revive it, and the buyer may buy again.
		saved, err := s.SaveOrders(t.Context(), []order.Order{o, a.wants("alice", 3, 1)})
		require.NoError(t, err)
		require.Equal(t, order.Cancelled, saved[0].State)
		require.True(t, saved[0].Repeat)
		require.Equal(t, order.Created, saved[1].State)
		require.EqualValues(t, 3, requireExact(t, s, a.ID))
	})
}

func TestExpire(t *testing.T) {
	onEach(t, func(t *testing.T, address string) {
		s := open(t, address)
		a, b, unpaid := payable(t, s, 1000, 2), payable(t, s, 100, 1), sale(t, s, 10, 1)
		orders := save(t, s, slices.Concat(a.crowd(700), b.crowd(50), unpaid.crowd(5)))
		none, err := s.Expire(t.Context(), epoch.Add(window-time.Millisecond), 1000)
		require.NoError(t, err)
		require.Empty(t, none, "nobody is due yet")

		due := epoch.Add(window)
		first, err := s.Expire(t.Context(), due, 100)
		require.NoError(t, err)
		require.Len(t, first, 100)
		rest, err := s.Expire(t.Context(), due, 2000)
		require.NoError(t, err)
		require.Len(t, rest, 650, "orders without a payment stage never expire")
		seen := map[string]bool{}
		for _, o := range slices.Concat(first, rest) {
			require.False(t, seen[o.ID])
			seen[o.ID] = true
			require.Equal(t, order.Expired, o.State)
			require.Zero(t, o.Claim)
		}
		require.Zero(t, requireExact(t, s, a.ID))
		require.Zero(t, requireExact(t, s, b.ID))
		require.EqualValues(t, 5, requireExact(t, s, unpaid.ID))
		none, err = s.Expire(t.Context(), due, 1000)
		require.NoError(t, err)
		require.Empty(t, none)

		// A payment that comes now is kept and revives nothing.
		m, err := s.Pay(t.Context(), orders[0].ID, "late")
		require.NoError(t, err)
		require.Equal(t, MoveLost, m.Result)
		require.Equal(t, RefundDue, m.Payment.Outcome)
		require.Equal(t, order.Expired, m.Order.State)
		again, err := s.Pay(t.Context(), orders[0].ID, "late")
		require.NoError(t, err)
		require.True(t, again.Repeat)
		require.Equal(t, MoveLost, again.Result)
		require.Zero(t, requireExact(t, s, a.ID))
	})
}

// An activity whose figures are wrong keeps its own orders from expiring, and nobody
// else's, however many of them are due before all others.
func TestExpireBesideAWrongActivity(t *testing.T) {
	onEach(t, func(t *testing.T, address string) {
		s := open(t, address)
		wrong, right := payable(t, s, 100, 1), payable(t, s, 100, 1)
		save(t, s, wrong.crowd(20))
		s.now = func() time.Time { return epoch.Add(time.Second) }
		save(t, s, right.crowd(15))
		require.NoError(t, s.db.Exec("UPDATE activities SET reserved = 1 WHERE id = ?", wrong.ID).Error)
		due := epoch.Add(window + time.Second)
		for _, want := range []int{10, 5, 0} {
			expired, err := s.Expire(t.Context(), due, 10)
			require.ErrorContains(t, err, wrong.ID)
			require.Len(t, expired, want)
		}
		require.Zero(t, requireExact(t, s, right.ID))
		totals, err := s.Totals(t.Context(), wrong.ID)
		require.NoError(t, err)
		require.EqualValues(t, 20, totals[order.Created].Orders)
	})
}

// Of two orders that one payment is reported for at the same moment it is kept for
// one, and the other is as it was.
func TestOnePaymentForTwoOrdersAtOnce(t *testing.T) {
	onEach(t, func(t *testing.T, address string) {
		s, other := open(t, address), open(t, address)
		a := payable(t, s, 100, 1)
		orders := save(t, s, a.crowd(60))
		for i := 0; i < len(orders); i += 2 {
			payment := fmt.Sprint("pi-", i)
			var errs [2]error
			var both sync.WaitGroup
			for n, backend := range []*Store{s, other} {
				both.Go(func() { _, errs[n] = backend.Pay(t.Context(), orders[i+n].ID, payment) })
			}
			both.Wait()
			lost := errs[0]
			if lost == nil {
				lost = errs[1]
			}
			require.ErrorIs(t, lost, ErrExists)
			require.True(t, errs[0] == nil || errs[1] == nil)
		}
		totals, err := s.Totals(t.Context(), a.ID)
		require.NoError(t, err)
		require.EqualValues(t, 30, totals[order.Paid].Orders)
		require.EqualValues(t, 30, totals[order.Created].Orders)
		require.EqualValues(t, 60, requireExact(t, s, a.ID))
	})
}

func TestRefunds(t *testing.T) {
	onEach(t, func(t *testing.T, address string) {
		s := open(t, address)
		a := payable(t, s, 10, 1)
		orders := save(t, s, a.crowd(3))
		_, err := s.Pay(t.Context(), orders[0].ID, "good")
		require.NoError(t, err)
		for i, o := range orders[1:] {
			_, err := s.Cancel(t.Context(), o.ID, "")
			require.NoError(t, err)
			_, err = s.Pay(t.Context(), o.ID, fmt.Sprint("late-", i))
			require.NoError(t, err)
		}
		due, total, err := s.Refunds(t.Context(), 1)
		require.NoError(t, err)
		require.EqualValues(t, 2, total)
		require.Len(t, due, 1)
		require.Equal(t, "late-0", due[0].ID)

		done, err := s.RefundDone(t.Context(), "late-0")
		require.NoError(t, err)
		require.Equal(t, Refunded, done.Outcome)
		require.Equal(t, epoch, done.RefundedAt)
		again, err := s.RefundDone(t.Context(), "late-0")
		require.NoError(t, err)
		require.Equal(t, done, again)
		total, err = s.RefundsDue(t.Context())
		require.NoError(t, err)
		require.EqualValues(t, 1, total)
		// The payment service that repeats itself still hears that it came too late.
		m, err := s.Pay(t.Context(), orders[1].ID, "late-0")
		require.NoError(t, err)
		require.Equal(t, MoveLost, m.Result)
		require.Equal(t, Refunded, m.Payment.Outcome)

		_, err = s.RefundDone(t.Context(), "good")
		require.ErrorIs(t, err, ErrState)
		for _, id := range []string{"none", "", "a b"} {
			_, err = s.RefundDone(t.Context(), id)
			require.ErrorIs(t, err, ErrNotFound)
		}
	})
}

func TestMovesThatAreRefused(t *testing.T) {
	onEach(t, func(t *testing.T, address string) {
		s := open(t, address)
		sold := sale(t, s, 10, 1)
		o := save(t, s, sold.crowd(1))[0]
		require.Zero(t, dueOf(t, s, o.ID))
		m, err := s.Pay(t.Context(), o.ID, "pay-1")
		require.NoError(t, err)
		require.Equal(t, NoPaymentStage, m.Result)
		m, err = s.Cancel(t.Context(), o.ID, "")
		require.NoError(t, err)
		require.Equal(t, NoPaymentStage, m.Result)
		require.Equal(t, order.Created, m.Order.State)
		kept, err := s.Payments(t.Context(), o.ID)
		require.NoError(t, err)
		require.Empty(t, kept)
		require.EqualValues(t, 1, requireExact(t, s, sold.ID))

		// The money for an order that was rejected is due back, too.
		rejected := payable(t, s, 1, 1).wants("bob", 1, 1)
		_, err = s.RejectOrder(t.Context(), rejected, order.ReasonDead)
		require.NoError(t, err)
		m, err = s.Pay(t.Context(), rejected.ID, "pay-2")
		require.NoError(t, err)
		require.Equal(t, RefundDue, m.Payment.Outcome)
		m, err = s.Cancel(t.Context(), rejected.ID, "")
		require.NoError(t, err)
		require.Equal(t, MoveLost, m.Result)
		require.Equal(t, order.Rejected, m.Order.State)

		a := payable(t, s, 10, 1)
		orders := save(t, s, a.crowd(2))
		_, err = s.Pay(t.Context(), orders[0].ID, "pay-3")
		require.NoError(t, err)
		_, err = s.Pay(t.Context(), orders[1].ID, "pay-3")
		require.ErrorIs(t, err, ErrExists)
		require.ErrorContains(t, err, orders[0].ID)
		unknown, err := order.NewID(epoch, rand.Reader)
		require.NoError(t, err)
		for _, id := range []string{unknown, "", "x"} {
			_, err = s.Pay(t.Context(), id, "pay-4")
			require.ErrorIs(t, err, ErrNotFound)
			_, err = s.Cancel(t.Context(), id, "")
			require.ErrorIs(t, err, ErrNotFound)
		}
	})
}

func dueOf(t *testing.T, s *Store, id string) time.Time {
	o, err := s.Order(t.Context(), id)
	require.NoError(t, err)
	return o.DueAt
}
