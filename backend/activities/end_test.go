package activities

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/seckill-edge/seckill/backend/store"
	"github.com/seckill-edge/seckill/internal/order"
	"github.com/seckill-edge/seckill/internal/servicetest"
	"github.com/seckill-edge/seckill/lua"
)

// ended waits until Redis's clock has passed the end.
func ended(t *testing.T, s *Service, a store.Activity) {
	t.Helper()
	servicetest.Eventually(t, func() bool { return !snapshotOf(t, s).Now.Before(a.End) })
}

func archived(t *testing.T, s *Service, id string) bool {
	t.Helper()
	a, err := s.Store.Activity(t.Context(), id)
	require.NoError(t, err)
	return !a.ArchivedAt.IsZero()
}

func keysLeft(t *testing.T, s *Service) (seconds float64) {
	t.Helper()
	left, err := s.Redis.PTTL(t.Context(), lua.KeysOf("1001").Users).Result()
	require.NoError(t, err)
	return left.Seconds()
}

// An activity whose end has passed is closed once its orders are stored, and
// archived once they are settled; only then do its keys expire, and nothing of that
// is a drift.
func TestTheEndOfAnActivity(t *testing.T) {
	onEach(t, func(t *testing.T, s *Service) {
		ctx := t.Context()
		s.KeepKeys = time.Hour
		d := planned(-time.Minute, 1500*time.Millisecond)
		d.PayWindow = time.Hour
		a := create(t, s, d)
		pass(t, s)
		paid, late := buy(t, s, 2, "alice"), buy(t, s, 2, "bob")
		stored(t, s, a, paid, "alice", lua.MarkCreated)
		pass(t, s)
		require.Equal(t, store.Open, agree(t, s), "its time has not passed")
		ended(t, s, a)
		pass(t, s)
		require.Equal(t, store.Open, agree(t, s), "bob's order is on its way")
		require.Contains(t, shown(t, s).Why, "closes it when its orders are stored")

		stored(t, s, a, late, "bob", lua.MarkCreated)
		pass(t, s)
		require.Equal(t, store.Closed, agree(t, s))
		pass(t, s)
		require.False(t, archived(t, s, a.ID), "two payments are due")
		require.Contains(t, shown(t, s).Why, "2 units frozen")

		// Paid in SQL, and Redis does not know yet; then cancelled, and it does.
		_, err := s.Store.Pay(ctx, paid, "p-1")
		require.NoError(t, err)
		_, err = s.Store.Cancel(ctx, late, "")
		require.NoError(t, err)
		_, err = lua.Release(ctx, s.Redis, "1001", lua.MarkCancelled, []lua.Move{{UserID: "bob", OrderID: late}})
		require.NoError(t, err)
		pass(t, s)
		require.False(t, archived(t, s, a.ID), "Redis has a unit frozen")
		require.Negative(t, keysLeft(t, s))
		_, err = lua.Settle(ctx, s.Redis, "1001", lua.MarkPaid, []lua.Move{{UserID: "alice", OrderID: paid}})
		require.NoError(t, err)
		pass(t, s)
		require.True(t, archived(t, s, a.ID))
		require.InDelta(t, 3600, keysLeft(t, s), 60)
		require.Contains(t, shown(t, s).Why, "archived at")

		audit, err := s.Audit(ctx, "1001")
		require.NoError(t, err)
		require.Zero(t, audit.Drift)
		require.NoError(t, s.Redis.FlushDB(ctx).Err()) // the keys have expired
		pass(t, s)
		f := NewFollower(s)
		require.NoError(t, f.Pass(ctx))
		require.NoError(t, f.Pass(ctx))
		audit, err = s.Audit(ctx, "1001")
		require.NoError(t, err)
		require.False(t, audit.Known)
		require.Zero(t, audit.Drift)
		require.Equal(t, int64(1), audit.Orders[order.Paid])
	})
}

// One that was closed early, with an order on its way, is archived when it is done.
func TestArchiveAfterAnEarlyClose(t *testing.T) {
	onEach(t, func(t *testing.T, s *Service) {
		a := create(t, s, planned(-time.Minute, time.Hour))
		pass(t, s)
		id := buy(t, s, 2, "alice")
		_, err := s.Close(t.Context(), "1001")
		require.NoError(t, err)
		pass(t, s)
		require.False(t, archived(t, s, a.ID))
		stored(t, s, a, id, "alice", lua.MarkSettled)
		pass(t, s)
		require.True(t, archived(t, s, a.ID))
		require.InDelta(t, DefaultKeepKeys.Seconds(), keysLeft(t, s), 60)
	})
}

// One that nobody has opened in its time is closed, whoever was to open it.
func TestTheEndOfWhatWasNeverOpened(t *testing.T) {
	for name, manual := range map[string]bool{"automatic": false, "manual": true} {
		t.Run(name, func(t *testing.T) {
			onEach(t, func(t *testing.T, s *Service) {
				d := planned(-time.Minute, 100*time.Millisecond)
				d.Manual = manual
				a := create(t, s, d)
				servicetest.Eventually(t, func() bool { return !time.Now().Before(a.End) })
				pass(t, s)
				require.Equal(t, store.Closed, shown(t, s).State)
				pass(t, s)
				require.True(t, archived(t, s, a.ID))
			})
		})
	}
}

// A backend whose clock is ahead closes nothing that has still to sell: closing is
// final.
func TestAFastClockClosesNothing(t *testing.T) {
	onEach(t, func(t *testing.T, s *Service) {
		create(t, s, planned(time.Hour, 2*time.Hour))
		d := s.Deps
		d.Now = func() time.Time { return time.Now().Add(3 * time.Hour) }
		require.NoError(t, NewKeeper(New(d)).Pass(t.Context()))
		require.Equal(t, store.Scheduled, shown(t, s).State)
	})
}

// Redis has lost a closed activity, or has been restarted since and may have
// forgotten some of it: SQL is right, and it is archived all the same.
func TestArchiveWhatRedisHasForgotten(t *testing.T) {
	for name, forget := range map[string]func(t *testing.T, s *Service){
		"all": func(t *testing.T, s *Service) { require.NoError(t, s.Redis.FlushDB(t.Context()).Err()) },
		"what was last": func(t *testing.T, s *Service) {
			k := lua.KeysOf("1001")
			require.NoError(t, s.Redis.HSet(t.Context(), k.Activity, "run", "another").Err())
			require.NoError(t, s.Redis.MSet(t.Context(), k.Stock, "10", k.Sold, "0").Err())
			require.NoError(t, s.Redis.Del(t.Context(), k.Users).Err())
		},
		"a counter": func(t *testing.T, s *Service) {
			require.NoError(t, s.Redis.Del(t.Context(), lua.KeysOf("1001").Stock).Err())
		},
	} {
		t.Run(name, func(t *testing.T) {
			onEach(t, func(t *testing.T, s *Service) {
				a := create(t, s, planned(-time.Minute, time.Hour))
				pass(t, s)
				id := buy(t, s, 2, "alice")
				stored(t, s, a, id, "alice", lua.MarkSettled)
				_, err := s.Close(t.Context(), "1001")
				require.NoError(t, err)
				forget(t, s)
				pass(t, s)
				require.True(t, archived(t, s, a.ID))
			})
		})
	}
}

// A crash after SQL knows that all is settled: the Follower lets the keys expire.
func TestFollowerLetsArchivedKeysExpire(t *testing.T) {
	onEach(t, func(t *testing.T, s *Service) {
		a := create(t, s, planned(-time.Minute, time.Hour))
		pass(t, s)
		stored(t, s, a, buy(t, s, 2, "alice"), "alice", lua.MarkSettled)
		_, err := s.Close(t.Context(), "1001")
		require.NoError(t, err)
		_, err = s.Store.Archive(t.Context(), a.ID)
		require.NoError(t, err)
		require.Negative(t, keysLeft(t, s))
		require.NoError(t, NewFollower(s).Pass(t.Context()))
		require.Positive(t, keysLeft(t, s))
	})
}
