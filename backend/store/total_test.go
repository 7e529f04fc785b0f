package store

import (
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestChangeTotal(t *testing.T) {
	onEach(t, func(t *testing.T, address string) {
		ctx := t.Context()
		s := open(t, address)
		a := sale(t, s, 10, 1)
		has := func(total, target, changes int64) {
			t.Helper()
			got, err := s.Activity(ctx, a.ID)
			require.NoError(t, err)
			require.Equal(t, [3]int64{total, target, changes}, [3]int64{got.Total, got.Target, got.Changes})
		}
		_, err := s.ChangeTotal(ctx, "none", 10, 12)
		require.ErrorIs(t, err, ErrNotFound)
		_, err = s.ChangeTotal(ctx, a.ID, 9, 12)
		require.ErrorIs(t, err, ErrState)
		require.ErrorContains(t, err, "its total is 10")

		got, err := s.ChangeTotal(ctx, a.ID, 10, 12)
		require.NoError(t, err)
		require.EqualValues(t, 1, got.Changes)
		has(12, 12, 1) // what Redis may grant from now on finds room
		_, err = s.ChangeTotal(ctx, a.ID, 12, 13)
		require.ErrorIs(t, err, ErrState)
		require.ErrorContains(t, err, "to 12, has not ended")
		require.NoError(t, s.EndChange(ctx, a.ID, 9, true), "no such change")
		has(12, 12, 1)
		for range 2 {
			require.NoError(t, s.EndChange(ctx, a.ID, 1, true))
			has(12, 0, 1)
		}

		_, err = s.SaveOrders(ctx, a.crowd(5))
		require.NoError(t, err)
		_, err = s.ChangeTotal(ctx, a.ID, 12, 5)
		require.NoError(t, err)
		has(12, 5, 2)
		require.NoError(t, s.EndChange(ctx, a.ID, 2, true))
		has(5, 0, 2)

		_, err = s.ChangeTotal(ctx, a.ID, 5, 4)
		require.NoError(t, err)
		require.ErrorIs(t, s.EndChange(ctx, a.ID, 3, true), ErrState, "five are stored")
		has(5, 4, 3)
		require.NoError(t, s.EndChange(ctx, a.ID, 3, false))
		has(5, 0, 3)

		require.NoError(t, s.SetActivityState(ctx, a.ID, []ActivityState{Open}, Closed))
		_, err = s.ChangeTotal(ctx, a.ID, 5, 6)
		require.ErrorIs(t, err, ErrState)
		require.ErrorContains(t, err, "it is closed")
	})
}

func TestOneChangeAtATime(t *testing.T) {
	onEach(t, func(t *testing.T, address string) {
		s := open(t, address)
		a := sale(t, s, 10, 1)
		var all sync.WaitGroup
		var won atomic.Int64
		for i := range 8 {
			all.Go(func() {
				if _, err := s.ChangeTotal(t.Context(), a.ID, 10, int64(11+i)); err == nil {
					won.Add(1)
				}
			})
		}
		all.Wait()
		require.EqualValues(t, 1, won.Load())
	})
}

func TestArchive(t *testing.T) {
	onEach(t, func(t *testing.T, address string) {
		ctx := t.Context()
		s := open(t, address)
		_, err := s.Archive(ctx, "none")
		require.ErrorIs(t, err, ErrNotFound)
		a, other := sale(t, s, 10, 1), sale(t, s, 10, 1)
		_, err = s.Archive(ctx, a.ID)
		require.ErrorIs(t, err, ErrState)
		require.NoError(t, s.SetActivityState(ctx, a.ID, []ActivityState{Open}, Closed))
		for _, first := range []bool{true, false} {
			archived, err := s.Archive(ctx, a.ID)
			require.NoError(t, err)
			require.Equal(t, first, archived)
		}
		got, err := s.Activity(ctx, a.ID)
		require.NoError(t, err)
		require.Equal(t, epoch, got.ArchivedAt)
		left, err := s.Unarchived(ctx)
		require.NoError(t, err)
		require.Len(t, left, 1)
		require.Equal(t, other.ID, left[0].ID)
	})
}
