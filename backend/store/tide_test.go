package store

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/seckill-edge/seckill/internal/order"
)

// The tide rises once for whatever was written since the last look, and falls for
// nobody.
func TestTideRises(t *testing.T) {
	onEach(t, func(t *testing.T, address string) {
		s := open(t, address)
		height := func() int64 {
			h, err := s.Rise(t.Context())
			require.NoError(t, err)
			return h
		}
		first := height()
		a := sale(t, s, 10, 1)
		require.Equal(t, first, height(), "nothing is lost with it that Redis knows")
		for range 3 {
			_, err := s.SaveOrders(t.Context(), a.crowd(1))
			require.NoError(t, err)
		}
		require.Equal(t, first+1, height())
		require.Equal(t, first+1, height())
		require.NoError(t, s.Lift(t.Context(), first+9))
		require.NoError(t, s.Lift(t.Context(), first+3))
		require.Equal(t, first+9, height())
	})
}

// Whoever has written just before the database forgot does not hide that it has.
func TestALowTideDoesNotRise(t *testing.T) {
	onEach(t, func(t *testing.T, address string) {
		s, ctx := open(t, address), t.Context()
		a := sale(t, s, 10, 1)
		rise := func() int64 {
			_, err := s.SaveOrders(ctx, a.crowd(1))
			require.NoError(t, err)
			height, err := s.Rise(ctx)
			require.NoError(t, err)
			return height
		}
		before := rise()
		require.Equal(t, before+1, rise())
		_, err := s.SaveOrders(ctx, a.crowd(1))
		require.NoError(t, err)
		require.NoError(t, s.db.Exec("UPDATE tide SET height = ? WHERE id = 1", before).Error)
		height, err := s.Rise(ctx)
		require.NoError(t, err)
		require.Equal(t, before, height)
		_, err = s.SaveOrders(ctx, a.crowd(1))
		require.ErrorIs(t, err, ErrBehind, "it has seen the tide higher itself")
		require.NoError(t, s.Lift(ctx, before+1))
		height, err = s.Rise(ctx)
		require.NoError(t, err)
		require.Equal(t, before+2, height, "what was written then counts now")
	})
}

// Below the tide that somebody remembers nothing is decided, by whatever call.
func TestNothingIsDecidedBelowTheTide(t *testing.T) {
	onEach(t, func(t *testing.T, address string) {
		s, ctx := open(t, address), t.Context()
		a := payable(t, s, 10, 1)
		orders := a.crowd(3)
		_, err := s.SaveOrders(ctx, orders[:2])
		require.NoError(t, err)
		height, err := s.Rise(ctx)
		require.NoError(t, err)
		before, err := s.Totals(ctx, a.ID)
		require.NoError(t, err)
		s.Mind(height + 1)
		s.Mind(height)
		for name, call := range map[string]func() error{
			"save":   func() error { _, err := s.SaveOrders(ctx, orders[2:]); return err },
			"reject": func() error { _, err := s.RejectOrder(ctx, orders[2], order.ReasonDead); return err },
			"pay":    func() error { _, err := s.Pay(ctx, orders[0].ID, "p"); return err },
			"cancel": func() error { _, err := s.Cancel(ctx, orders[0].ID, ""); return err },
			"expire": func() error { _, err := s.Expire(ctx, epoch.Add(time.Hour), 10); return err },
			"change": func() error { _, err := s.ChangeTotal(ctx, a.ID, 10, 20); return err },
		} {
			err := call()
			require.ErrorIs(t, err, ErrBehind, name)
			require.True(t, IsTransient(err), name)
		}
		after, err := s.Totals(ctx, a.ID)
		require.NoError(t, err)
		require.Equal(t, before, after)
		require.NoError(t, s.Lift(ctx, height+1))
		_, err = s.SaveOrders(ctx, orders[2:])
		require.NoError(t, err)
	})
}

// Whoever is wary decides nothing before he has been told of the tide; he creates
// orders, which is right whatever was forgotten.
func TestWary(t *testing.T) {
	onEach(t, func(t *testing.T, address string) {
		s := open(t, address)
		a := payable(t, s, 2, 1)
		s.Wary()
		s.Wary()
		orders := save(t, s, a.crowd(2))
		_, err := s.SaveOrders(t.Context(), a.crowd(1))
		require.ErrorIs(t, err, ErrUnsure, "it would be rejected")
		_, err = s.Cancel(t.Context(), orders[0].ID, "")
		require.ErrorIs(t, err, ErrUnsure)
		ended, cancel := context.WithCancel(t.Context())
		cancel()
		_, err = s.Cancel(ended, orders[0].ID, "")
		require.ErrorIs(t, err, context.Canceled)
		s.Mind(0)
		s.Mind(0)
		_, err = s.Cancel(t.Context(), orders[0].ID, "")
		require.NoError(t, err)
		require.EqualValues(t, 1, requireExact(t, s, a.ID))
	})
}

// What was forgotten comes back with its claims and units; what the database knows
// better stays; nothing is done twice.
func TestTakeOrders(t *testing.T) {
	onEach(t, func(t *testing.T, address string) {
		s, ctx := open(t, address), t.Context()
		a := payable(t, s, 6, 2)
		crowd := a.crowd(8)
		_, err := s.SaveOrders(ctx, crowd[:4])
		require.NoError(t, err)
		_, err = s.Cancel(ctx, crowd[3].ID, "")
		require.NoError(t, err)
		// Of a buyer whose order was cancelled, his next one, under the same claim.
		next := crowd[6]
		next.UserID = crowd[1].UserID
		stands := func(o order.Order, state order.State) Order {
			return Order{Order: o, State: state, DueAt: epoch.Add(time.Minute)}
		}
		stranger := crowd[2]
		stranger.UserID = "somebody else"
		told := []Order{
			stands(crowd[0], order.Paid), stands(crowd[1], order.Cancelled), stands(stranger, order.Paid), stands(crowd[3], order.Paid),
			stands(crowd[4], order.Created), stands(crowd[5], order.Expired), stands(next, order.Paid),
		}
		want := Taken{Stored: 3, Moved: 2, Odd: 2}
		dry, err := s.TakeOrders(ctx, a.ID, told, true)
		require.NoError(t, err)
		require.Equal(t, want, dry)
		s.Mind(1 << 40) // whatever the tide
		taken, err := s.TakeOrders(ctx, a.ID, told, false)
		require.NoError(t, err)
		require.Equal(t, want, taken)
		again, err := s.TakeOrders(ctx, a.ID, told, false)
		require.NoError(t, err)
		require.Equal(t, Taken{Odd: 2}, again)
		totals, err := s.Totals(ctx, a.ID)
		require.NoError(t, err)
		require.Equal(t, map[order.State]Total{
			order.Paid: {2, 2}, order.Cancelled: {2, 2}, order.Created: {2, 2}, order.Expired: {1, 1},
		}, totals)
		require.EqualValues(t, 4, requireExact(t, s, a.ID))

		// More than there is is for people.
		_, err = s.TakeOrders(ctx, a.ID, []Order{{Order: more(crowd[7], 3), State: order.Created}}, false)
		require.ErrorIs(t, err, ErrState)
		require.EqualValues(t, 4, requireExact(t, s, a.ID))
	})
}

func more(o order.Order, quantity int) order.Order {
	o.Quantity = quantity
	return o
}

func TestTakeActivity(t *testing.T) {
	onEach(t, func(t *testing.T, address string) {
		s, ctx := open(t, address), t.Context()
		old := sale(t, s, 10, 1)
		a := old
		a.ID, a.Total, a.Changes, a.State = "next-"+old.ID, 12, 3, Held
		made, changed, err := s.TakeActivity(ctx, a, true)
		require.NoError(t, err)
		require.Equal(t, [2]bool{true, false}, [2]bool{made, changed})
		_, err = s.Activity(ctx, a.ID)
		require.ErrorIs(t, err, ErrNotFound)
		_, _, err = s.TakeActivity(ctx, a, false)
		require.NoError(t, err)
		got, err := s.LiveActivity(ctx, a.ProductID)
		require.NoError(t, err)
		require.Equal(t, [4]any{a.ID, int64(12), int64(3), Held}, [4]any{got.ID, got.Total, got.Changes, got.State})
		before, err := s.Activity(ctx, old.ID)
		require.NoError(t, err)
		require.Equal(t, Closed, before.State, "it could not have begun before")

		a.Total, a.Changes = 15, 4
		made, changed, err = s.TakeActivity(ctx, a, false)
		require.NoError(t, err)
		require.Equal(t, [2]bool{false, true}, [2]bool{made, changed})
		a.Total, a.Changes = 11, 2 // the database knows better
		made, changed, err = s.TakeActivity(ctx, a, false)
		require.NoError(t, err)
		require.Equal(t, [2]bool{false, false}, [2]bool{made, changed})
		got, err = s.Activity(ctx, a.ID)
		require.NoError(t, err)
		require.EqualValues(t, 15, got.Total)
	})
}

// A paid order whose payment is forgotten takes the first that comes, and no other.
func TestPayWhatIsPaidByNobody(t *testing.T) {
	onEach(t, func(t *testing.T, address string) {
		s, ctx := open(t, address), t.Context()
		a := payable(t, s, 10, 1)
		o := a.crowd(1)[0]
		_, err := s.TakeOrders(ctx, a.ID, []Order{{Order: o, State: order.Paid, DueAt: epoch}}, false)
		require.NoError(t, err)
		for _, step := range []struct {
			payment string
			outcome PaymentOutcome
		}{{"first", Applied}, {"second", RefundDue}, {"first", Applied}} {
			m, err := s.Pay(ctx, o.ID, step.payment)
			require.NoError(t, err)
			require.Equal(t, step.outcome, m.Payment.Outcome)
			require.Equal(t, order.Paid, m.Order.State)
		}
	})
}

// Orders go by the database's clock, whatever the machines of the backends say.
func TestTheDatabasesClock(t *testing.T) {
	onEach(t, func(t *testing.T, address string) {
		s, err := New(t.Context(), address, nil)
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, s.Close()) })
		now, err := s.Now(t.Context())
		require.NoError(t, err)
		require.WithinDuration(t, time.Now(), now, 10*time.Second)
		a := payable(t, open(t, address), 10, 1)
		saved, err := s.SaveOrders(t.Context(), a.crowd(1))
		require.NoError(t, err)
		row, err := s.Order(t.Context(), saved[0].OrderID)
		require.NoError(t, err)
		require.WithinDuration(t, now.Add(window), row.DueAt, time.Minute)
	})
}
