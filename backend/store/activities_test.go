package store

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestActivityComesBackAsItWas(t *testing.T) {
	onEach(t, func(t *testing.T, address string) {
		s := open(t, address)
		a := Activity{
			ID: strings.Repeat("x", 64), ProductID: "Phone-15_Pro", Title: "折扣 💥 1'; DROP TABLE orders;--",
			Start: epoch.Add(123 * time.Millisecond), End: epoch.Add(48 * time.Hour),
			Total: 1_000_000_000, Limit: 999, PayWindow: 15*time.Minute + time.Millisecond,
			State: Scheduled, Manual: true, Reserved: 7, Changes: 3, Target: 4, CreatedAt: epoch.Add(-time.Hour),
		}
		require.NoError(t, s.CreateActivity(t.Context(), a))
		a.Reserved, a.Changes, a.Target, a.CreatedAt = 0, 0, 0, epoch
		got, err := s.Activity(t.Context(), a.ID)
		require.NoError(t, err)
		require.Equal(t, a, got)
		got, err = s.LiveActivity(t.Context(), a.ProductID)
		require.NoError(t, err)
		require.Equal(t, a, got)
	})
}

func TestActivitiesThatAreNotThere(t *testing.T) {
	onEach(t, func(t *testing.T, address string) {
		s := open(t, address)
		for _, id := range []string{"none", "", "é", strings.Repeat("x", 65)} {
			_, err := s.Activity(t.Context(), id)
			require.ErrorIs(t, err, ErrNotFound, id)
			_, err = s.LiveActivity(t.Context(), id)
			require.ErrorIs(t, err, ErrNotFound, id)
		}
		require.ErrorIs(t, s.SetActivityState(t.Context(), "none", []ActivityState{Open}, Held), ErrNotFound)
		all, err := s.Activities(t.Context())
		require.NoError(t, err)
		require.Empty(t, all)
	})
}

func TestOneLiveActivityAProduct(t *testing.T) {
	onEach(t, func(t *testing.T, address string) {
		s := open(t, address)
		one := sale(t, s, 10, 1)
		err := s.CreateActivity(t.Context(), one)
		require.ErrorIs(t, err, ErrExists)
		require.ErrorContains(t, err, "choose another id")
		require.False(t, IsTransient(err))

		two := one
		two.ID += "-again"
		err = s.CreateActivity(t.Context(), two)
		require.ErrorIs(t, err, ErrExists)
		require.ErrorContains(t, err, one.ID, "names the one in the way")

		// Ids differ by case.
		other := one
		other.ID, other.ProductID = strings.ToUpper(one.ID), strings.ToLower(one.ProductID)
		require.NoError(t, s.CreateActivity(t.Context(), other))

		anywhere := []ActivityState{Scheduled, Open, Held}
		require.NoError(t, s.SetActivityState(t.Context(), one.ID, anywhere, Closed))
		_, err = s.LiveActivity(t.Context(), one.ProductID)
		require.ErrorIs(t, err, ErrNotFound)
		require.NoError(t, s.CreateActivity(t.Context(), two))
		got, err := s.LiveActivity(t.Context(), one.ProductID)
		require.NoError(t, err)
		require.Equal(t, two.ID, got.ID)
		err = s.SetActivityState(t.Context(), one.ID, []ActivityState{Closed}, Open)
		require.ErrorIs(t, err, ErrExists)
	})
}

func TestActivityStates(t *testing.T) {
	onEach(t, func(t *testing.T, address string) {
		s := open(t, address)
		a := sale(t, s, 10, 1)
		set := func(to ActivityState, from ...ActivityState) error {
			return s.SetActivityState(t.Context(), a.ID, from, to)
		}
		err := set(Closed, Held)
		require.ErrorIs(t, err, ErrState)
		require.ErrorContains(t, err, "it is open")
		require.NoError(t, set(Held, Scheduled, Open))
		require.NoError(t, set(Held, Open, Held), "no change is no error")
		require.ErrorIs(t, set(Held, Open), ErrState)
		require.NoError(t, set(Open, Held))
		require.NoError(t, set(Closed, Open, Held))
		got, err := s.Activity(t.Context(), a.ID)
		require.NoError(t, err)
		require.Equal(t, Closed, got.State)
		require.NoError(t, set(Open, Closed), "its product is free")
		_, err = s.LiveActivity(t.Context(), a.ProductID)
		require.NoError(t, err)
	})
}

func TestActivitiesNewestFirst(t *testing.T) {
	onEach(t, func(t *testing.T, address string) {
		now := epoch
		s, err := New(t.Context(), address, nil, WithClock(func() time.Time { return now }))
		require.NoError(t, err)
		defer func() { require.NoError(t, s.Close()) }()
		first := sale(t, s, 1, 1)
		now = now.Add(time.Millisecond)
		second := sale(t, s, 1, 1)
		all, err := s.Activities(t.Context())
		require.NoError(t, err)
		require.Len(t, all, 2)
		require.Equal(t, []string{second.ID, first.ID}, []string{all[0].ID, all[1].ID})
	})
}

func TestActivitySchemaRefuses(t *testing.T) {
	onEach(t, func(t *testing.T, address string) {
		s := open(t, address)
		good := Activity{ID: "a", ProductID: "p", Start: epoch, End: epoch, Total: 1, Limit: 1, State: Open}
		for name, spoil := range map[string]func(*Activity){
			"negative total": func(a *Activity) { a.Total = -1 },
			"long id":        func(a *Activity) { a.ID = strings.Repeat("x", 65) },
			"long title":     func(a *Activity) { a.Title = strings.Repeat("ä", 256) },
		} {
			bad := good
			spoil(&bad)
			err := s.CreateActivity(t.Context(), bad)
			require.Error(t, err, name)
			require.False(t, IsTransient(err), "%s: %v", name, err)
		}
		good.Title = strings.Repeat("ä", 255)
		require.NoError(t, s.CreateActivity(t.Context(), good))
	})
}
