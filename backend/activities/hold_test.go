package activities

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/seckill-edge/seckill/backend/store"
	"github.com/seckill-edge/seckill/lua"
)

// Whoever holds a sale is in a hurry: the gate is shut though SQL cannot be told,
// and stays so until somebody opens it.
func TestHoldWithoutSQL(t *testing.T) {
	onEach(t, func(t *testing.T, s *Service) {
		ctx := t.Context()
		a, err := s.Create(ctx, draft())
		require.NoError(t, err)
		_, err = s.Preheat(ctx, "1001")
		require.NoError(t, err)
		_, err = s.Open(ctx, "1001")
		require.NoError(t, err)

		away, err := store.New(ctx, "sqlite:"+t.TempDir()+"/x.db", nil)
		require.NoError(t, err)
		require.NoError(t, away.Close())
		blind := New(s.Deps)
		blind.Store = away
		_, err = blind.Hold(ctx, "1001")
		require.ErrorIs(t, err, ErrHalf)
		require.ErrorContains(t, err, "nothing is sold; hold it again")
		require.Equal(t, lua.OnHold, snapshotOf(t, s).State)
		_, err = blind.Hold(ctx, "1002")
		require.Error(t, err)
		require.NotErrorIs(t, err, ErrHalf, "nothing was held")

		f := NewFollower(s)
		for range 3 {
			require.NoError(t, f.Pass(ctx))
		}
		require.Equal(t, lua.OnHold, snapshotOf(t, s).State)
		view, err := s.Hold(ctx, "1001")
		require.NoError(t, err)
		require.Equal(t, store.Held, view.State)
		require.Equal(t, a.ID, view.ID)
	})
}

// A sale that nobody stores says so.
func TestWhyNamesWhatDoesNotShowInTheSale(t *testing.T) {
	onEach(t, func(t *testing.T, s *Service) {
		ctx := t.Context()
		_, err := s.Create(ctx, draft())
		require.NoError(t, err)
		_, err = s.Preheat(ctx, "1001")
		require.NoError(t, err)
		view, err := s.Preheat(ctx, "1001")
		require.NoError(t, err)
		require.Contains(t, view.Why, "held by an operator: nothing is sold until it is opened; it was in Redis already")
		view, err = s.Open(ctx, "1001")
		require.NoError(t, err)
		require.Equal(t, "selling; but no backend (seckilld serve) runs: orders are queued and not stored", view.Why)

		require.NoError(t, lua.PresentBackend(ctx, s.Redis, "b1", func() int { return 0 }, nil))
		view, err = s.Show(ctx, "1001")
		require.NoError(t, err)
		require.Equal(t, "selling", view.Why)
		other := draft()
		other.ProductID = "1002"
		_, err = s.Create(ctx, other)
		require.NoError(t, err)
		_, err = s.Preheat(ctx, "1002")
		require.NoError(t, err)
		_, err = s.Open(ctx, "1002")
		require.NoError(t, err)
		broker := &noBroker{}
		s.Queue = broker
		views, err := s.List(ctx)
		require.NoError(t, err)
		require.Len(t, views, 2)
		for _, v := range views {
			require.Equal(t, "selling; but the broker does not answer: orders wait in Redis, 0 of them now", v.Why)
		}
		require.Equal(t, 1, broker.asked, "once for all")

		later := snapshotOf(t, s).Now.Add(-time.Minute)
		view.Snapshot.Now = later.Add(2 * time.Minute)
		require.Contains(t, (&around{Service: s}).explain(ctx, view).Why, "no backend", "one that has not spoken for long")
	})
}

// noBroker counts who asks it, and answers nobody.
type noBroker struct{ asked int }

func (b *noBroker) Depth(context.Context) (int, int, error) {
	b.asked++
	return 0, 0, context.DeadlineExceeded
}
