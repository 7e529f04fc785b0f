package store

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/seckill-edge/seckill/internal/order"
)

func saved(id string, state order.State, reason order.Reason) Saved {
	return Saved{OrderID: id, State: state, Reason: reason}
}

func repeat(s Saved) Saved {
	s.Repeat = true
	return s
}

func TestSaveOrdersAndRead(t *testing.T) {
	onEach(t, func(t *testing.T, address string) {
		s := open(t, address)
		a := Activity{
			ID: "paid", ProductID: "p", Start: epoch, End: epoch, Total: 10, Limit: 3,
			PayWindow: time.Minute, State: Open,
		}
		require.NoError(t, s.CreateActivity(t.Context(), a))
		o := a.wants("ann", 2, 1)
		got, err := s.SaveOrders(t.Context(), []order.Order{o})
		require.NoError(t, err)
		require.Equal(t, []Saved{{OrderID: o.ID, State: order.Created, PayWindow: time.Minute}}, got)

		stored, err := s.Order(t.Context(), o.ID)
		require.NoError(t, err)
		require.Equal(t, Order{Order: o, State: order.Created, CreatedAt: epoch, UpdatedAt: epoch, DueAt: epoch.Add(time.Minute)}, stored)
		totals, err := s.Totals(t.Context(), a.ID)
		require.NoError(t, err)
		require.Equal(t, map[order.State]Total{order.Created: {Orders: 1, Units: 2}}, totals)
		require.EqualValues(t, 2, requireExact(t, s, a.ID))

		_, err = s.Order(t.Context(), a.wants("x", 1, 1).ID)
		require.ErrorIs(t, err, ErrNotFound)
		_, err = s.Order(t.Context(), "é")
		require.ErrorIs(t, err, ErrNotFound)
		totals, err = s.Totals(t.Context(), "none")
		require.NoError(t, err)
		require.Empty(t, totals)
		got, err = s.SaveOrders(t.Context(), nil)
		require.NoError(t, err)
		require.Empty(t, got)
	})
}

func TestRedeliveryChangesNothing(t *testing.T) {
	onEach(t, func(t *testing.T, address string) {
		s := open(t, address)
		a := sale(t, s, 2, 1)
		batch := a.crowd(3) // the third is oversold
		first, err := s.SaveOrders(t.Context(), batch)
		require.NoError(t, err)
		require.Equal(t, []Saved{
			saved(batch[0].ID, order.Created, ""),
			saved(batch[1].ID, order.Created, ""),
			saved(batch[2].ID, order.Rejected, order.ReasonOversold),
		}, first)

		slices.Reverse(batch)
		again, err := s.SaveOrders(t.Context(), batch)
		require.NoError(t, err)
		require.Equal(t, []Saved{repeat(first[2]), repeat(first[1]), repeat(first[0])}, again)
		require.EqualValues(t, 2, requireExact(t, s, a.ID))

		// A later state is what a repeat is told.
		require.NoError(t, s.db.Exec("UPDATE orders SET state = 'paid' WHERE id = ?", first[0].OrderID).Error)
		again, err = s.SaveOrders(t.Context(), batch[2:])
		require.NoError(t, err)
		require.Equal(t, []Saved{repeat(saved(first[0].OrderID, order.Paid, ""))}, again)
	})
}

func TestWhatIsRejected(t *testing.T) {
	onEach(t, func(t *testing.T, address string) {
		s := open(t, address)
		a, b := sale(t, s, 100, 2), sale(t, s, 100, 2)
		unknown := Activity{ID: "never-made", ProductID: a.ProductID}
		wrong := Activity{ID: a.ID, ProductID: b.ProductID}
		batch := []order.Order{
			a.wants("ann", 2, 1),
			b.wants("ann", 1, 1),       // another activity
			a.wants("ann", 1, 1),       // the claim of the first
			a.wants("ann", 1, 2),       // a third unit
			unknown.wants("ann", 1, 1), // no such activity
			wrong.wants("bob", 1, 1),   // which sells something else
			a.wants("bob", 3, 1),       // beyond the limit
			a.wants("bob", 1, 3),       // beyond the limit
			a.wants("bob", 0, 1), a.wants("bob", -1, 1), a.wants("bob", 1, 0),
			a.wants("bob", 1, 1),
			a.wants("bob", 1, 2),
		}
		rejected := []order.Reason{
			"", "", order.ReasonDuplicate, order.ReasonInvalid, order.ReasonUnknownActivity,
			order.ReasonInvalid, order.ReasonInvalid, order.ReasonInvalid, order.ReasonInvalid,
			order.ReasonInvalid, order.ReasonInvalid, "", "",
		}
		got, err := s.SaveOrders(t.Context(), batch)
		require.NoError(t, err)
		for i, o := range batch {
			want := saved(o.ID, order.Created, "")
			if rejected[i] != "" {
				want = saved(o.ID, order.Rejected, rejected[i])
			}
			require.Equal(t, want, got[i], "order %d", i)
			stored, err := s.Order(t.Context(), o.ID)
			require.NoError(t, err)
			if rejected[i] != "" {
				o.Claim = 0 // given back
			}
			require.Equal(t, Order{
				Order: o, State: want.State, Reason: want.Reason, CreatedAt: epoch, UpdatedAt: epoch,
			}, stored)
		}
		require.EqualValues(t, 4, requireExact(t, s, a.ID))
		require.EqualValues(t, 1, requireExact(t, s, b.ID))

		// The same against rows instead of the same batch.
		later := []order.Order{a.wants("ann", 1, 1), a.wants("ann", 1, 2), b.wants("ann", 1, 2)}
		got, err = s.SaveOrders(t.Context(), later)
		require.NoError(t, err)
		require.Equal(t, []Saved{
			saved(later[0].ID, order.Rejected, order.ReasonDuplicate),
			saved(later[1].ID, order.Rejected, order.ReasonInvalid),
			saved(later[2].ID, order.Created, ""),
		}, got)
	})
}

func TestASmallerOrderStillFits(t *testing.T) {
	onEach(t, func(t *testing.T, address string) {
		s := open(t, address)
		a := sale(t, s, 5, 5)
		batch := []order.Order{a.wants("a", 4, 1), a.wants("b", 2, 1), a.wants("c", 1, 1), a.wants("d", 1, 1)}
		got, err := s.SaveOrders(t.Context(), batch)
		require.NoError(t, err)
		require.Equal(t, []Saved{
			saved(batch[0].ID, order.Created, ""),
			saved(batch[1].ID, order.Rejected, order.ReasonOversold),
			saved(batch[2].ID, order.Created, ""),
			saved(batch[3].ID, order.Rejected, order.ReasonOversold),
		}, got)
		require.EqualValues(t, 5, requireExact(t, s, a.ID))
	})
}

func TestRepeatsInsideABatch(t *testing.T) {
	onEach(t, func(t *testing.T, address string) {
		s := open(t, address)
		a := sale(t, s, 10, 2)
		o, other := a.wants("ann", 1, 1), a.wants("bob", 1, 1)
		stolen := other
		stolen.ID = o.ID
		got, err := s.SaveOrders(t.Context(), []order.Order{o, other, o, stolen})
		require.NoError(t, err)
		require.Equal(t, []Saved{
			saved(o.ID, order.Created, ""),
			saved(other.ID, order.Created, ""),
			repeat(saved(o.ID, order.Created, "")),
			{OrderID: o.ID, Foreign: true},
		}, got)
		got, err = s.SaveOrders(t.Context(), []order.Order{stolen})
		require.NoError(t, err)
		require.Equal(t, []Saved{{OrderID: o.ID, Foreign: true}}, got)
		require.EqualValues(t, 2, requireExact(t, s, a.ID))
	})
}

// What comes under an id that is stored, of the same buyer in the same activity, is
// the order that is stored, whatever else it says.
func TestCopiesThatDiffer(t *testing.T) {
	onEach(t, func(t *testing.T, address string) {
		s := open(t, address)
		a, b := sale(t, s, 10, 3), sale(t, s, 10, 3)
		o, rejected := a.wants("ann", 1, 1), a.wants("bob", 1, 1)
		got, err := s.SaveOrders(t.Context(), []order.Order{o})
		require.NoError(t, err)
		require.Equal(t, []Saved{saved(o.ID, order.Created, "")}, got)
		_, err = s.RejectOrder(t.Context(), rejected, order.ReasonDead)
		require.NoError(t, err)
		for name, tc := range map[string]struct {
			change  func(*order.Order)
			foreign bool
		}{
			"quantity": {func(o *order.Order) { o.Quantity = 2 }, false},
			"too many": {func(o *order.Order) { o.Quantity = 999 }, false},
			"claim":    {func(o *order.Order) { o.Claim = 2 }, false},
			"product":  {func(o *order.Order) { o.ProductID = "another" }, false},
			"time":     {func(o *order.Order) { o.ReservedAt = o.ReservedAt.Add(time.Hour) }, false},
			"user":     {func(o *order.Order) { o.UserID = "eve" }, true},
			"activity": {func(o *order.Order) { o.ActivityID = b.ID }, true},
			"unknown":  {func(o *order.Order) { o.ActivityID = "unknown" }, true},
		} {
			first, second := o, rejected
			tc.change(&first)
			tc.change(&second)
			want := []Saved{repeat(saved(o.ID, order.Created, "")), repeat(saved(rejected.ID, order.Rejected, order.ReasonDead))}
			if tc.foreign {
				want = []Saved{{OrderID: o.ID, Foreign: true}, {OrderID: rejected.ID, Foreign: true}}
			}
			got, err := s.SaveOrders(t.Context(), []order.Order{first, second})
			require.NoError(t, err)
			require.Equal(t, want, got, name)
			one, err := s.RejectOrder(t.Context(), first, order.ReasonDead)
			require.NoError(t, err)
			require.Equal(t, want[0], one, name)
		}
		require.EqualValues(t, 1, requireExact(t, s, a.ID))
		require.Zero(t, requireExact(t, s, b.ID))
	})
}

func TestUsersCompareByteByByte(t *testing.T) {
	onEach(t, func(t *testing.T, address string) {
		s := open(t, address)
		a := sale(t, s, 100, 1)
		users := []string{
			"a", "A", "a ", " a", "ä", "a\u0308", "ａ", "ß", "ss", "🙂", "🙃", "o'hara", `back\slash`, `"`, "%", "?",
			strings.Repeat("x", 128), strings.Repeat("🙂", 32), strings.Repeat("x", 127) + "X",
		}
		var batch []order.Order
		for _, u := range users {
			require.True(t, order.ValidUser(u))
			batch = append(batch, a.wants(u, 1, 1))
		}
		got, err := s.SaveOrders(t.Context(), batch)
		require.NoError(t, err)
		found, err := s.Orders(t.Context(), idsOf(batch))
		require.NoError(t, err)
		for i := range batch {
			require.Equal(t, order.Created, got[i].State, "%q", users[i])
			require.Equal(t, users[i], found[batch[i].ID].UserID)
		}
		for _, u := range users {
			again, err := s.SaveOrders(t.Context(), []order.Order{a.wants(u, 1, 1)})
			require.NoError(t, err)
			require.Equal(t, order.ReasonDuplicate, again[0].Reason, "%q", u)
		}
	})
}

// What was inserted in the hope that all is new must go when the last is not.
func TestALateRepeat(t *testing.T) {
	onEach(t, func(t *testing.T, address string) {
		s := open(t, address)
		a := sale(t, s, 5000, 1)
		batch := a.crowd(3*chunk + 1)
		_, err := s.SaveOrders(t.Context(), batch[3*chunk:])
		require.NoError(t, err)
		taken := a.wants(batch[3*chunk].UserID, 1, 1)
		got, err := s.SaveOrders(t.Context(), append(batch, taken))
		require.NoError(t, err)
		for i, g := range got {
			want := saved(batch[min(i, 3*chunk)].ID, order.Created, "")
			want.Repeat = i == 3*chunk
			if i > 3*chunk {
				want = saved(taken.ID, order.Rejected, order.ReasonDuplicate)
			}
			require.Equal(t, want, g)
		}
		require.EqualValues(t, 3*chunk+1, requireExact(t, s, a.ID))
	})
}

func TestALargeBatch(t *testing.T) {
	onEach(t, func(t *testing.T, address string) {
		s := open(t, address)
		a, b := sale(t, s, 1200, 1), sale(t, s, 10_000, 1)
		batch := append(a.crowd(1500), b.crowd(1500)...)
		got, err := s.SaveOrders(t.Context(), batch)
		require.NoError(t, err)
		require.Len(t, got, len(batch))
		require.EqualValues(t, 1200, requireExact(t, s, a.ID))
		require.EqualValues(t, 1500, requireExact(t, s, b.ID))
		totals, err := s.Totals(t.Context(), a.ID)
		require.NoError(t, err)
		require.Equal(t, map[order.State]Total{
			order.Created: {1200, 1200}, order.Rejected: {300, 300},
		}, totals)
		found, err := s.Orders(t.Context(), idsOf(batch))
		require.NoError(t, err)
		require.Len(t, found, len(batch))
		again, err := s.SaveOrders(t.Context(), batch)
		require.NoError(t, err)
		for i := range got {
			require.Equal(t, repeat(got[i]), again[i])
		}
	})
}

// An order that the schema refuses spoils its batch, as a whole, and is to blame.
func TestDataToBlame(t *testing.T) {
	onEach(t, func(t *testing.T, address string) {
		s := open(t, address)
		a := sale(t, s, 10, 1)
		longID := a.wants("ann", 1, 1)
		longID.ID += "0"
		unknown := a.wants("ann", 1, 1)
		unknown.ActivityID = strings.Repeat("y", 65)
		for name, bad := range map[string]order.Order{
			"long user":     a.wants(strings.Repeat("x", 129), 1, 1),
			"long id":       longID,
			"huge quantity": a.wants("ann", 1<<20, 1),
			"long activity": unknown,
		} {
			good := a.wants("bob", 1, 1)
			_, err := s.SaveOrders(t.Context(), []order.Order{good, bad})
			require.Error(t, err, name)
			require.False(t, IsTransient(err), "%s: %v", name, err)
			_, err = s.Order(t.Context(), good.ID)
			require.ErrorIs(t, err, ErrNotFound, name)
		}
		require.Zero(t, requireExact(t, s, a.ID))
	})
}

func idsOf(orders []order.Order) []string {
	ids := make([]string, len(orders))
	for i := range orders {
		ids[i] = orders[i].ID
	}
	return ids
}
