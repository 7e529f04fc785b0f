package activities

import (
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/seckill-edge/seckill/backend/store"
	"github.com/seckill-edge/seckill/lua"
)

// counts are SQL's and Redis's total, what is available, and the drift.
func counts(t *testing.T, s *Service) [4]int64 {
	t.Helper()
	a, err := s.find(t.Context(), "1001")
	require.NoError(t, err)
	audit, err := s.Audit(t.Context(), "1001")
	require.NoError(t, err)
	there := snapshotOf(t, s)
	require.False(t, there.Damaged)
	return [4]int64{a.Total, there.Total, there.Available, audit.Drift}
}

func TestChangeStock(t *testing.T) {
	onEach(t, func(t *testing.T, s *Service) {
		ctx := t.Context()
		change := func(c Change) error {
			_, err := s.ChangeStock(ctx, "1001", c)
			return err
		}
		require.ErrorIs(t, change(Change{Add: 1}), store.ErrNotFound)
		a := create(t, s, planned(-time.Minute, time.Hour))
		require.NoError(t, change(Change{Add: 3}), "SQL alone has it")
		require.NoError(t, change(Change{Withdraw: 3, IfTotal: 13}))
		require.ErrorContains(t, change(Change{Withdraw: 10}), "at least one must stay")
		pass(t, s)
		require.Equal(t, [4]int64{10, 10, 10, 0}, counts(t, s))
		for _, bad := range []Change{{}, {Add: 1, Withdraw: 1}, {Add: -1}, {Withdraw: -1}, {Add: 1e9 + 1}, {Add: 1, IfTotal: -1}} {
			_, invalid := errors.AsType[*Invalid](change(bad))
			require.True(t, invalid, "%+v", bad)
		}
		stored(t, s, a, buy(t, s, 2, "alice"), "alice", lua.MarkSettled)

		require.NoError(t, change(Change{Add: 5, IfTotal: 10}))
		require.Equal(t, [4]int64{15, 15, 14, 0}, counts(t, s))
		require.ErrorContains(t, change(Change{Add: 5, IfTotal: 10}), "its total is 15, not 10", "a repeat after a lost answer")
		require.NoError(t, change(Change{Withdraw: 14}))
		require.Equal(t, [4]int64{1, 1, 0, 0}, counts(t, s))
		for words, c := range map[string]Change{
			"at least one must stay": {Withdraw: 1},
			"more than 1000000000":   {Add: 1e9},
		} {
			err := change(c)
			require.ErrorIs(t, err, ErrRefused)
			require.ErrorContains(t, err, words)
		}
		require.NoError(t, change(Change{Add: 4}))
		err := change(Change{Withdraw: 5})
		require.ErrorIs(t, err, ErrRefused)
		buy(t, s, 2, "bob")
		require.ErrorContains(t, change(Change{Withdraw: 4}), "only 3 units are available")

		_, err = s.Hold(ctx, "1001")
		require.NoError(t, err)
		require.NoError(t, change(Change{Withdraw: 3}), "a held one can be changed, too")
		require.Equal(t, [4]int64{2, 2, 0, 0}, counts(t, s))
		_, err = s.Close(ctx, "1001")
		require.NoError(t, err)
		require.ErrorContains(t, change(Change{Add: 1}), "closed")
	})
}

// Whatever crashes between the two stores, nothing drifts meanwhile, and the keeper
// comes to the end.
func TestChangeThatWasLeftHalfDone(t *testing.T) {
	for _, tc := range []struct {
		name    string
		to      int64
		inRedis bool
		// before happens after the crash and before the keeper's pass.
		before func(t *testing.T, s *Service)
		want   [4]int64
	}{
		{"add, noted", 12, false, nil, [4]int64{12, 12, 11, 0}},
		{"add, in Redis", 12, true, nil, [4]int64{12, 12, 11, 0}},
		{"withdraw, noted", 4, false, nil, [4]int64{4, 4, 3, 0}},
		{"withdraw, in Redis", 4, true, nil, [4]int64{4, 4, 3, 0}},
		{"withdraw, sold meanwhile", 1, false, func(t *testing.T, s *Service) { buy(t, s, 2, "bob") }, [4]int64{10, 10, 8, 0}},
		{"add, closed meanwhile", 12, false, closed, [4]int64{12, 12, 11, 0}},
		{"withdraw, closed meanwhile", 4, false, closed, [4]int64{4, 4, 3, 0}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			onEach(t, func(t *testing.T, s *Service) {
				ctx := t.Context()
				a := create(t, s, planned(-time.Minute, time.Hour))
				pass(t, s)
				stored(t, s, a, buy(t, s, 2, "alice"), "alice", lua.MarkSettled)
				noted, err := s.Store.ChangeTotal(ctx, a.ID, 10, tc.to)
				require.NoError(t, err)
				if tc.inRedis {
					_, err = lua.Resize(ctx, s.Redis, "1001", a.ID, noted.Changes, tc.to)
					require.NoError(t, err)
				}
				if tc.before != nil {
					tc.before(t, s)
				}
				require.Zero(t, counts(t, s)[3], "pending is no drift")
				_, err = s.ChangeStock(ctx, "1001", Change{Add: 1})
				require.ErrorIs(t, err, ErrRefused, "one at a time")
				pass(t, s)
				got, err := s.Store.Activity(ctx, a.ID)
				require.NoError(t, err)
				require.Zero(t, got.Target)
				require.Equal(t, tc.want, counts(t, s))
			})
		})
	}
}

func closed(t *testing.T, s *Service) {
	_, err := s.Close(t.Context(), "1001")
	require.NoError(t, err)
}

// A change that nothing can make any more is dropped.
func TestChangeOfWhatIsGone(t *testing.T) {
	for name, to := range map[string]int64{"add": 12, "withdraw": 4} {
		t.Run(name, func(t *testing.T) {
			onEach(t, func(t *testing.T, s *Service) {
				a := create(t, s, planned(-time.Minute, time.Hour))
				pass(t, s)
				_, err := s.Store.ChangeTotal(t.Context(), a.ID, 10, to)
				require.NoError(t, err)
				closed(t, s)
				require.NoError(t, s.Redis.FlushDB(t.Context()).Err())
				pass(t, s)
				got, err := s.Store.Activity(t.Context(), a.ID)
				require.NoError(t, err)
				require.Zero(t, got.Target)
			})
		})
	}
}

// Operators, keepers and buyers at once: of the changes those that are told to be
// made are made, each once.
func TestChangesAtOnce(t *testing.T) {
	onEach(t, func(t *testing.T, s *Service) {
		ctx := t.Context()
		create(t, s, planned(-time.Minute, time.Hour))
		pass(t, s)
		var all sync.WaitGroup
		var mu sync.Mutex
		want, done := int64(10), make(chan struct{})
		for _, c := range []Change{{Add: 3}, {Add: 2}, {Withdraw: 1}, {Withdraw: 2}} {
			all.Go(func() {
				for range 8 {
					_, err := s.ChangeStock(ctx, "1001", c)
					switch {
					case err == nil:
						mu.Lock()
						want += c.Add - c.Withdraw
						mu.Unlock()
					case !errors.Is(err, ErrRefused):
						t.Error(err)
					}
				}
			})
		}
		var keeper sync.WaitGroup
		keeper.Go(func() {
			for k := NewKeeper(s); ; {
				if err := k.Pass(ctx); err != nil {
					t.Error(err)
				}
				select {
				case <-done:
					return
				default:
				}
			}
		})
		all.Wait()
		close(done)
		keeper.Wait()
		pass(t, s)
		require.Equal(t, [4]int64{want, want, want, 0}, counts(t, s))
	})
}

// A change of a scheduled activity meets a keeper, or an operator, who preheats it
// at this moment with the total of before, and may die behind it. Whatever comes
// first, Redis sells what SQL has in the end.
func TestChangeWhilePreheating(t *testing.T) {
	for name, tc := range map[string]struct {
		manual, died bool
		change       Change
		want         int64
	}{
		"add":                         {change: Change{Add: 5}, want: 15},
		"withdraw":                    {change: Change{Withdraw: 5}, want: 5},
		"withdraw, both died":         {died: true, change: Change{Withdraw: 5}, want: 5},
		"manual, add":                 {manual: true, change: Change{Add: 5}, want: 15},
		"manual, withdraw":            {manual: true, change: Change{Withdraw: 5}, want: 5},
		"manual, withdraw, both died": {manual: true, died: true, change: Change{Withdraw: 5}, want: 5},
	} {
		t.Run(name, func(t *testing.T) {
			onEach(t, func(t *testing.T, s *Service) {
				ctx := t.Context()
				d := planned(-time.Minute, time.Hour)
				d.Manual = tc.manual
				a := create(t, s, d)
				if _, err := s.ChangeStock(ctx, "1001", tc.change); err != nil {
					t.Fatal(err)
				}
				// He has read it before.
				if loaded, err := s.preheat(ctx, a, nil); err != nil || !loaded {
					t.Fatal(loaded, err)
				}
				require.EqualValues(t, 10, snapshotOf(t, s).Total)
				switch {
				case tc.died && tc.manual:
					require.NoError(t, s.Store.SetActivityState(ctx, a.ID, []store.ActivityState{store.Scheduled}, store.Held))
					pass(t, s)
				case tc.manual:
					_, err := s.Preheat(ctx, "1001")
					require.NoError(t, err)
				default:
					pass(t, s)
				}
				require.Equal(t, [4]int64{tc.want, tc.want, tc.want, 0}, counts(t, s))
			})
		})
	}
}

// Whoever noted a change of a scheduled activity has died before he ended it.
func TestPreheatFinishesAChange(t *testing.T) {
	for name, manual := range map[string]bool{"automatic": false, "manual": true} {
		t.Run(name, func(t *testing.T) {
			onEach(t, func(t *testing.T, s *Service) {
				d := planned(-time.Minute, time.Hour)
				d.Manual = manual
				a := create(t, s, d)
				_, err := s.Store.ChangeTotal(t.Context(), a.ID, 10, 4)
				require.NoError(t, err)
				if manual {
					_, err = s.Preheat(t.Context(), "1001")
					require.NoError(t, err)
				}
				pass(t, s)
				pass(t, s)
				require.Equal(t, [4]int64{4, 4, 4, 0}, counts(t, s))
			})
		})
	}
}
