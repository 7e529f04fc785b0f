package activities

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/seckill-edge/seckill/internal/order"
	"github.com/seckill-edge/seckill/internal/queue"
	"github.com/seckill-edge/seckill/lua"
)

// speaking lets a backend say what it has in hand until the test ends.
func speaking(t *testing.T, s *Service, id string, inHand *atomic.Int64) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	say := func() {
		if err := lua.PresentBackend(ctx, s.Redis, id, func() int { return int(inHand.Load()) }, nil); err != nil && ctx.Err() == nil {
			t.Error(err)
		}
	}
	say()
	go func() {
		defer close(done)
		every := time.NewTicker(100 * time.Millisecond)
		defer every.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-every.C:
				say()
			}
		}
	}()
	t.Cleanup(func() { cancel(); <-done })
}

// lost makes a sale with one unit frozen that neither outbox nor SQL knows.
func lost(t *testing.T, s *Service) (orderID string) {
	held(t, s)
	view, err := s.Open(t.Context(), "1001")
	require.NoError(t, err)
	orderID = buy(t, s, view.Snapshot.Epoch, "ann")
	require.NoError(t, lua.Confirm(t.Context(), s.Redis, "1001", []string{orderID}))
	return orderID
}

// What a backend has in hand explains units that SQL does not have yet; and a
// backend that has not spoken since the queue was empty may have it.
func TestAuditHearsBackends(t *testing.T) {
	for _, tc := range []struct {
		name          string
		speak         func(t *testing.T, s *Service)
		queued, drift int
	}{
		{"nobody is there", func(*testing.T, *Service) {}, 0, 1},
		{"one has it in hand", func(t *testing.T, s *Service) {
			speaking(t, s, "idle", new(atomic.Int64))
			busy := new(atomic.Int64)
			busy.Store(1)
			speaking(t, s, "busy", busy)
		}, 1, 0},
		{"all are idle", func(t *testing.T, s *Service) {
			speaking(t, s, "a", new(atomic.Int64))
			speaking(t, s, "b", new(atomic.Int64))
		}, 0, 1},
		{"one has not spoken since", func(t *testing.T, s *Service) {
			require.NoError(t, lua.PresentBackend(t.Context(), s.Redis, "once", func() int { return 0 }, nil))
		}, 0, 0},
		{"one is gone for long", func(t *testing.T, s *Service) {
			require.NoError(t, s.Redis.HSet(t.Context(), "seckill:backends", "old", "5:1700000000000").Err())
		}, 0, 1},
	} {
		t.Run(tc.name, func(t *testing.T) {
			onEach(t, func(t *testing.T, s *Service) {
				lost(t, s)
				tc.speak(t, s)
				got, err := s.Audit(t.Context(), "1001")
				require.NoError(t, err)
				require.True(t, got.Consistent)
				require.True(t, got.QueueKnown)
				require.Equal(t, tc.queued, got.Queued)
				require.Equal(t, int64(tc.drift), got.Drift)
			})
		})
	}
}

// Without the broker an audit says what it knows, and calls a drift only what
// nothing in the broker could explain.
func TestAuditWithoutTheBroker(t *testing.T) {
	onEach(t, func(t *testing.T, s *Service) {
		orderID := lost(t, s)
		away, err := queue.Open("amqp://guest:guest@127.0.0.1:1/")
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, away.Close()) })
		d := s.Deps
		d.Queue = away
		blind := New(d)
		got, err := blind.Audit(t.Context(), "1001")
		require.NoError(t, err)
		require.False(t, got.QueueKnown)
		require.Equal(t, int64(1), got.Frozen)
		require.Zero(t, got.Drift, "the broker may have it")

		// Two orders in SQL, and one unit given away in Redis.
		a, err := s.find(t.Context(), "1001")
		require.NoError(t, err)
		stored := order.Order{ID: orderID, ActivityID: a.ID, ProductID: "1001", UserID: "ann", Quantity: 1, Claim: 1, ReservedAt: time.Now()}
		second := stored
		second.ID, second.UserID = orderID[:25]+"z", "bob"
		if second.ID == orderID {
			second.ID = orderID[:25] + "y"
		}
		_, err = s.Store.SaveOrders(t.Context(), []order.Order{stored, second})
		require.NoError(t, err)
		all, err := blind.AuditAll(t.Context())
		require.NoError(t, err)
		require.Len(t, all, 1)
		require.False(t, all[0].QueueKnown)
		require.Equal(t, int64(1), all[0].Drift)
	})
}
