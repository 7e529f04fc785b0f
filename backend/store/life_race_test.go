package store

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/seckill-edge/seckill/internal/order"
)

// A thousand orders that are paid, cancelled and expired at the same moment by
// many backends, while their buyers come again.
func TestEveryRaceHasOneWinner(t *testing.T) {
	onEach(t, func(t *testing.T, address string) {
		s := open(t, address)
		const n = 1000
		a := payable(t, s, n, 1)
		orders := save(t, s, a.crowd(n))
		won := raceThem(t, address, a, orders)

		totals, err := s.Totals(t.Context(), a.ID)
		require.NoError(t, err)
		count := map[order.State]int64{}
		ids := make([]string, n)
		for i := range orders {
			ids[i] = orders[i].ID
		}
		rows, err := s.Orders(t.Context(), ids)
		require.NoError(t, err)
		for _, o := range orders {
			stored := rows[o.ID]
			require.True(t, stored.State.Final(), "%s", stored.State)
			require.Equal(t, won[o.ID], stored.State, "who was told to have won has won")
			count[stored.State]++
			payments, err := s.Payments(t.Context(), o.ID)
			require.NoError(t, err)
			require.Len(t, payments, 1)
			require.Equal(t, stored.State == order.Paid, payments[0].Outcome == Applied)
		}
		t.Logf("paid %d, cancelled %d, expired %d", count[order.Paid], count[order.Cancelled], count[order.Expired])
		require.EqualValues(t, n, count[order.Paid]+count[order.Cancelled]+count[order.Expired])
		// What was given back was bought again, and nothing more.
		require.EqualValues(t, n, requireExact(t, s, a.ID)+a.Total-count[order.Paid]-totals[order.Created].Units)
		due, err := s.RefundsDue(t.Context())
		require.NoError(t, err)
		require.Equal(t, n-count[order.Paid], due)
	})
}

// raceThem lets backends pay, cancel and expire all orders at once, and store new
// ones of the same buyers; it returns which state each order was told to have
// come to, by exactly one of them.
func raceThem(t *testing.T, address string, a Activity, orders []order.Order) map[string]order.State {
	var racers errgroup.Group
	start := make(chan struct{})
	ctx := t.Context()
	type win struct {
		id string
		to order.State
	}
	wins := make(chan win, 4*len(orders))
	moves := func(move func(s *Store, o order.Order) (Moved, error), backwards bool) {
		s := open(t, address)
		mine := slices.Clone(orders)
		if backwards {
			slices.Reverse(mine)
		}
		racers.Go(func() error {
			<-start
			for _, o := range mine {
				m, err := move(s, o)
				if err != nil {
					return err
				}
				if m.Result == MoveDone && !m.Repeat {
					wins <- win{o.ID, m.Order.State}
				}
			}
			return nil
		})
	}
	for backwards := range 2 {
		moves(func(s *Store, o order.Order) (Moved, error) { return s.Pay(ctx, o.ID, "pay-"+o.ID) }, backwards == 1)
		moves(func(s *Store, o order.Order) (Moved, error) { return s.Cancel(ctx, o.ID, "race") }, backwards == 1)
		expirer := open(t, address)
		racers.Go(func() error {
			<-start
			for range 40 {
				expired, err := expirer.Expire(ctx, epoch.Add(window), 10)
				if err != nil {
					return err
				}
				for _, o := range expired {
					wins <- win{o.ID, order.Expired}
				}
			}
			return nil
		})
	}
	buyer := open(t, address)
	racers.Go(func() error {
		<-start
		for part := range slices.Chunk(orders, 50) {
			again := make([]order.Order, len(part))
			for i, o := range part {
				again[i] = a.wants(o.UserID, 1, 1)
			}
			if _, err := buyer.SaveOrders(ctx, again); err != nil {
				return err
			}
		}
		return nil
	})
	close(start)
	require.NoError(t, racers.Wait())
	close(wins)
	won := map[string]order.State{}
	for w := range wins {
		require.NotContains(t, won, w.id, "order %s has moved twice", w.id)
		won[w.id] = w.to
	}
	return won
}
