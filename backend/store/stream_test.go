package store

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/seckill-edge/seckill/internal/order"
)

func TestOrdersAfter(t *testing.T) {
	onEach(t, func(t *testing.T, address string) {
		ctx := context.Background()
		s := open(t, address)
		a, other := sale(t, s, 100, 1), sale(t, s, 100, 1)
		orders := a.crowd(25)
		for i := range orders {
			_, err := s.SaveOrders(ctx, []order.Order{orders[len(orders)-1-i], other.wants("x", 1, 1)})
			require.NoError(t, err)
		}
		stored, err := s.Activity(ctx, a.ID)
		require.NoError(t, err)
		for _, size := range []int{1, 10, 25, 26} {
			var ids []string
			for after := FirstCursor(stored); ; after = ids[len(ids)-1] {
				page, err := s.OrdersAfter(ctx, a.ID, after, size)
				require.NoError(t, err)
				for _, o := range page {
					require.Equal(t, a.ID, o.ActivityID)
					require.Equal(t, 1, o.Claim)
					ids = append(ids, o.ID)
				}
				if len(page) < size {
					break
				}
			}
			require.Len(t, ids, 25)
			require.True(t, slices.IsSorted(ids))
		}
	})
}

func TestFirstCursor(t *testing.T) {
	a := Activity{CreatedAt: epoch}
	at, ok := order.IDTime(FirstCursor(a))
	require.True(t, ok)
	require.True(t, at.Equal(epoch.Add(-time.Hour)))
	require.Empty(t, FirstCursor(Activity{}))
}
