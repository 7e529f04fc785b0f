package store

import (
	"context"
	"database/sql"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/seckill-edge/seckill/internal/order"
)

func TestRejectOrder(t *testing.T) {
	onEach(t, func(t *testing.T, address string) {
		s := open(t, address)
		a := sale(t, s, 5, 2)
		save := func(o order.Order) Saved {
			saved, err := s.SaveOrders(t.Context(), []order.Order{o})
			require.NoError(t, err)
			return saved[0]
		}
		reject := func(o order.Order) Saved {
			saved, err := s.RejectOrder(t.Context(), o, order.ReasonDead)
			require.NoError(t, err)
			return saved
		}

		refused := a.wants("a", 2, 1)
		want := Saved{OrderID: refused.ID, State: order.Rejected, Reason: order.ReasonDead}
		require.Equal(t, want, reject(refused))
		want.Repeat = true
		require.Equal(t, want, reject(refused))
		require.Equal(t, want, save(refused), "what was rejected stays so")
		got, err := s.Order(t.Context(), refused.ID)
		require.NoError(t, err)
		require.Equal(t, order.ReasonDead, got.Reason)
		require.Zero(t, got.Claim)
		require.Equal(t, order.Created, save(a.wants("a", 2, 1)).State, "his right to buy is free")

		stored := a.wants("b", 1, 1)
		require.Equal(t, order.Created, save(stored).State)
		require.Equal(t, Saved{OrderID: stored.ID, State: order.Created, Repeat: true}, reject(stored))

		other := a.wants("c", 1, 1)
		other.ID = stored.ID
		require.Equal(t, Saved{OrderID: stored.ID, Foreign: true}, reject(other))
		got, err = s.Order(t.Context(), stored.ID)
		require.NoError(t, err)
		require.Equal(t, order.Created, got.State)

		half := a.wants("d", 1, 1)
		half.Quantity, half.Claim = 0, 0
		require.Equal(t, order.Rejected, reject(half).State)
		half.Quantity, half.Claim = 1, 1
		require.Equal(t, order.Rejected, save(half).State)

		unknown := a.wants("e", 1, 1)
		unknown.ActivityID = "nobody-knows"
		require.Equal(t, order.Rejected, reject(unknown).State)
		now, err := s.Activity(t.Context(), a.ID)
		require.NoError(t, err)
		require.Equal(t, int64(3), now.Reserved)
	})
}

// curse makes the database refuse every order of the user "cursed", until lift.
func curse(t *testing.T, address string) (lift func()) {
	driver, dsn := "sqlite", "file:"+strings.TrimPrefix(address, "sqlite:")
	statement := `CREATE TRIGGER curse BEFORE INSERT ON orders WHEN NEW.user_id = 'cursed' BEGIN SELECT RAISE(ABORT, 'cursed'); END`
	undo := `DROP TRIGGER curse`
	if rest, ok := strings.CutPrefix(address, "mysql://"); ok {
		login, rest, _ := strings.Cut(rest, "@")
		host, name, _ := strings.Cut(rest, "/")
		driver, dsn = "mysql", fmt.Sprintf("%s@tcp(%s)/%s", login, host, name)
		statement, undo = `ALTER TABLE orders ADD CONSTRAINT curse CHECK (user_id <> 'cursed')`, `ALTER TABLE orders DROP CONSTRAINT curse`
	}
	raw, err := sql.Open(driver, dsn)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, raw.Close()) })
	exec := func(statement string) {
		_, err := raw.ExecContext(t.Context(), statement)
		require.NoError(t, err)
	}
	exec(statement)
	return func() { exec(undo) }
}

// An order that the database takes in no form but its ids is rejected for good
// all the same.
func TestRejectOrderThatCannotBeStored(t *testing.T) {
	onEach(t, func(t *testing.T, address string) {
		s := open(t, address)
		a := sale(t, s, 5, 1)
		cursed, fine := a.wants("cursed", 1, 1), a.wants("cursed too", 1, 1)
		lift := curse(t, address)
		_, err := s.SaveOrders(t.Context(), []order.Order{cursed})
		require.Error(t, err)
		require.False(t, IsTransient(err))
		for range 2 {
			saved, err := s.RejectOrder(t.Context(), cursed, order.ReasonDead)
			require.NoError(t, err)
			require.Equal(t, order.Rejected, saved.State)
			require.Equal(t, order.ReasonDead, saved.Reason)
		}
		lift()
		saved, err := s.SaveOrders(t.Context(), []order.Order{cursed, fine})
		require.NoError(t, err)
		require.Equal(t, order.Rejected, saved[0].State)
		require.Equal(t, order.Created, saved[1].State)
	})
}

// Whoever comes first decides, and both sides hear the same.
func TestRejectOrderRacesWithSave(t *testing.T) {
	onEach(t, func(t *testing.T, address string) {
		s, second := open(t, address), open(t, address)
		const n = 40
		a := sale(t, s, n, 1)
		var created int64
		for i := range n {
			o := a.wants(fmt.Sprint("user ", i), 1, 1)
			var saved []Saved
			var rejected Saved
			var err1, err2 error
			var both sync.WaitGroup
			both.Go(func() { saved, err1 = s.SaveOrders(context.Background(), []order.Order{o}) })
			both.Go(func() { rejected, err2 = second.RejectOrder(context.Background(), o, order.ReasonDead) })
			both.Wait()
			require.NoError(t, err1)
			require.NoError(t, err2)
			require.Equal(t, saved[0].State, rejected.State)
			require.NotEqual(t, saved[0].Repeat, rejected.Repeat)
			if rejected.State == order.Created {
				created++
			}
		}
		now, err := s.Activity(t.Context(), a.ID)
		require.NoError(t, err)
		require.Equal(t, created, now.Reserved)
	})
}
