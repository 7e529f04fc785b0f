package activities

import (
	"bytes"
	"context"
	"crypto/rand"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/seckill-edge/seckill/backend/store"
	"github.com/seckill-edge/seckill/internal/order"
	"github.com/seckill-edge/seckill/internal/servicetest"
	"github.com/seckill-edge/seckill/lua"
)

// planned is a draft of a sale that backends begin by themselves.
func planned(start, end time.Duration) Draft {
	d := draft()
	d.Manual = false
	d.Start, d.End = time.Now().Add(start).Format(time.RFC3339Nano), time.Now().Add(end).Format(time.RFC3339Nano)
	return d
}

func create(t *testing.T, s *Service, d Draft) store.Activity {
	t.Helper()
	a, err := s.Create(t.Context(), d)
	require.NoError(t, err)
	return a
}

// pass lets a keeper pass, whose rests are over.
func pass(t *testing.T, s *Service) {
	t.Helper()
	require.NoError(t, NewKeeper(s).Pass(t.Context()))
}

func shown(t *testing.T, s *Service) View {
	t.Helper()
	v, err := s.Show(t.Context(), "1001")
	require.NoError(t, err)
	return v
}

// store does what a backend does with an order: one unit, paid for or sold.
func stored(t *testing.T, s *Service, a store.Activity, id, user string, to lua.Mark) {
	t.Helper()
	_, err := s.Store.SaveOrders(t.Context(), []order.Order{{
		ID: id, ActivityID: a.ID, ProductID: "1001", UserID: user, Quantity: 1, Claim: 1, ReservedAt: time.Now(),
	}})
	require.NoError(t, err)
	_, err = lua.Settle(t.Context(), s.Redis, "1001", to, []lua.Move{{UserID: user, OrderID: id}})
	require.NoError(t, err)
}

func TestKeeperBegins(t *testing.T) {
	for _, tc := range []struct {
		name       string
		start, end time.Duration
		manual     bool
		want       store.ActivityState
		why        string
	}{
		{"not due yet", 11 * time.Minute, time.Hour, false, store.Scheduled, "opens it at "},
		{"ahead", 9 * time.Minute, time.Hour, false, store.Open, "open, starts at"},
		{"late", -time.Minute, time.Hour, false, store.Open, "selling"},
		{"manual", -time.Minute, time.Hour, true, store.Scheduled, "preheat it"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			onEach(t, func(t *testing.T, s *Service) {
				d := planned(tc.start, tc.end)
				d.Manual = tc.manual
				create(t, s, d)
				for range 2 {
					pass(t, s)
					v := shown(t, s)
					require.Equal(t, tc.want, v.State)
					require.Contains(t, v.Why, tc.why)
				}
				if tc.want == store.Open {
					require.Equal(t, store.Open, agree(t, s))
				}
			})
		})
	}
}

// What an operator holds stays held: before its opening, which he does then, and
// after it.
func TestKeeperLeavesHolds(t *testing.T) {
	onEach(t, func(t *testing.T, s *Service) {
		ctx := t.Context()
		create(t, s, planned(time.Minute, time.Hour))
		_, err := s.Resume(ctx, "1001")
		require.ErrorIs(t, err, ErrRefused)
		_, err = s.Preheat(ctx, "1001")
		require.NoError(t, err)
		pass(t, s)
		require.Equal(t, store.Held, agree(t, s))
		_, err = s.Resume(ctx, "1001")
		require.NoError(t, err)
		_, err = s.Hold(ctx, "1001")
		require.NoError(t, err)
		pass(t, s)
		require.Equal(t, store.Held, agree(t, s))
	})
}

// A hold comes in between any two steps of a keeper: it is an operator's.
func TestHoldWhileAKeeperBegins(t *testing.T) {
	onEach(t, func(t *testing.T, s *Service) {
		a := create(t, s, planned(-time.Minute, time.Hour))
		holds := 0
		beginning := hooked(t, s, &between{last: []any{a.ID, "open", "1"}, n: 1, do: func() {
			_, err := s.Hold(t.Context(), "1001")
			require.NoError(t, err)
			holds++
		}})
		pass(t, beginning)
		require.Equal(t, 1, holds)
		require.Equal(t, store.Held, agree(t, s))
		pass(t, s)
		require.Equal(t, store.Held, agree(t, s))
	})
}

// A keeper may die between any two steps; the next pass goes on.
func TestKeeperGoesOnAfterACrash(t *testing.T) {
	for name, crash := range map[string]func(t *testing.T, s *Service, a store.Activity){
		"in Redis only": func(t *testing.T, s *Service, a store.Activity) {
			_, err := s.preheat(t.Context(), a, nil)
			require.NoError(t, err)
			f := NewFollower(s)
			require.NoError(t, f.Pass(t.Context()))
			require.NoError(t, f.Pass(t.Context()))
			require.Equal(t, store.Scheduled, shown(t, s).State, "nobody takes it for an operator's hold")
		},
		"open in SQL only": func(t *testing.T, s *Service, a store.Activity) {
			_, err := s.preheat(t.Context(), a, nil)
			require.NoError(t, err)
			require.NoError(t, s.Store.SetActivityState(t.Context(), a.ID, []store.ActivityState{store.Scheduled}, store.Open))
		},
	} {
		t.Run(name, func(t *testing.T) {
			onEach(t, func(t *testing.T, s *Service) {
				crash(t, s, create(t, s, planned(-time.Minute, time.Hour)))
				pass(t, s)
				require.Equal(t, store.Open, agree(t, s))
			})
		})
	}
}

// The next sale of a product waits until the one before is settled, says so, and
// has the same buyers.
func TestKeeperWaitsForThePredecessor(t *testing.T) {
	onEach(t, func(t *testing.T, s *Service) {
		ctx := t.Context()
		var log bytes.Buffer
		s.Log = slog.New(slog.NewTextHandler(&log, nil))
		first := create(t, s, planned(-time.Minute, time.Hour))
		pass(t, s)
		bought := buy(t, s, snapshotOf(t, s).Epoch, "alice")
		_, err := s.Close(ctx, "1001")
		require.NoError(t, err)
		next := create(t, s, planned(-time.Minute, time.Hour))
		k := NewKeeper(s)
		for range 5 {
			require.NoError(t, k.Pass(ctx))
		}
		v := shown(t, s)
		require.Equal(t, store.Scheduled, v.State)
		require.Contains(t, v.Why, "due and not ready")
		require.Contains(t, v.Why, "1 units frozen")
		require.Equal(t, 1, strings.Count(log.String(), "cannot go on yet"), "once, not each time")
		unready, err := s.Unready(ctx)
		require.NoError(t, err)
		require.Equal(t, map[Obstacle]int{Predecessor: 1}, unready)

		stored(t, s, first, bought, "alice", lua.MarkSettled)
		require.NoError(t, k.Pass(ctx))
		require.Equal(t, store.Open, agree(t, s))
		unready, err = s.Unready(ctx)
		require.NoError(t, err)
		require.Empty(t, unready)
		require.Equal(t, next.ID, snapshotOf(t, s).ID)
		buy(t, s, snapshotOf(t, s).Epoch, "alice")

		pass(t, s) // the first one has nothing in Redis any more
		got, err := s.Store.Activity(ctx, first.ID)
		require.NoError(t, err)
		require.NotZero(t, got.ArchivedAt)
		old, err := s.Store.Order(ctx, bought)
		require.NoError(t, err)
		require.Equal(t, order.Created, old.State)
	})
}

// What an older Redis has of an archived activity makes room.
func TestKeeperClearsAnArchivedPredecessorAway(t *testing.T) {
	onEach(t, func(t *testing.T, s *Service) {
		ctx := t.Context()
		first := create(t, s, planned(-time.Minute, time.Hour))
		pass(t, s)
		_, err := s.Close(ctx, "1001")
		require.NoError(t, err)
		pass(t, s)
		require.NoError(t, s.Redis.Set(ctx, lua.KeysOf("1001").Frozen, "lost", 0).Err())
		next := create(t, s, planned(-time.Minute, time.Hour))
		pass(t, s)
		require.Equal(t, store.Open, agree(t, s))
		require.Equal(t, next.ID, snapshotOf(t, s).ID)
		require.NotEqual(t, first.ID, next.ID)
	})
}

func TestKeeperOnAnUnfitRedis(t *testing.T) {
	onReal(t, func(t *testing.T, s *Service) {
		ctx := t.Context()
		set := func(policy string) {
			require.NoError(t, s.Redis.ConfigSet(ctx, "maxmemory-policy", policy).Err())
		}
		set("allkeys-lru")
		create(t, s, planned(-time.Minute, time.Hour))
		pass(t, s)
		v := shown(t, s)
		require.Equal(t, store.Scheduled, v.State)
		require.Contains(t, v.Why, "maxmemory-policy")
		unready, err := s.Unready(ctx)
		require.NoError(t, err)
		require.Equal(t, map[Obstacle]int{Unfit: 1}, unready)
		accepting := New(s.Deps)
		accepting.AcceptRedisRisk = true
		unready, err = accepting.Unready(ctx)
		require.NoError(t, err)
		require.Equal(t, map[Obstacle]int{Nothing: 1}, unready)
		set("noeviction")
		pass(t, s)
		require.Equal(t, store.Open, agree(t, s))
	})
}

func TestKeeperWithRedisAway(t *testing.T) {
	onEach(t, func(t *testing.T, s *Service) {
		create(t, s, planned(-time.Minute, time.Hour))
		away := s.Deps
		client, err := lua.NewClient("redis://127.0.0.1:1", "test")
		require.NoError(t, err)
		defer func() { require.NoError(t, client.Close()) }()
		away.Redis = client
		require.Error(t, NewKeeper(New(away)).Pass(t.Context()))
		unready, err := New(away).Unready(t.Context())
		require.NoError(t, err)
		require.Equal(t, map[Obstacle]int{Away: 1}, unready)
		pass(t, s)
		require.Equal(t, store.Open, agree(t, s))
	})
}

// Two keepers begin a hundred activities at once, while buyers buy: each is loaded
// once.
func TestTwoKeepersBeginEachActivityOnce(t *testing.T) {
	onEach(t, func(t *testing.T, s *Service) {
		const activities, bought = 100, 3
		ctx := t.Context()
		for i := range activities {
			d := planned(-time.Minute, time.Hour)
			d.ProductID = fmt.Sprint("p", i)
			create(t, s, d)
		}
		var log syncBuffer
		var keepers sync.WaitGroup
		begin, done := make(chan struct{}), make(chan struct{})
		end := sync.OnceFunc(func() { close(done); keepers.Wait() })
		defer end()
		for range 2 {
			d := hooked(t, s, &between{}).Deps
			d.Log = slog.New(slog.NewTextHandler(&log, nil))
			k := NewKeeper(New(d))
			keepers.Go(func() {
				<-begin
				for {
					if err := k.Pass(ctx); err != nil && !servicetest.Late(err) {
						t.Error(err)
					}
					select {
					case <-done:
						return
					default:
					}
				}
			})
		}
		close(begin)
		for i := range activities {
			product := fmt.Sprint("p", i)
			var snapshot lua.Snapshot
			servicetest.Eventually(t, func() bool {
				var err error
				snapshot, _, err = lua.Audit(ctx, s.Redis, product)
				return err == nil && snapshot.State == lua.Open
			})
			reqs := make([]lua.Request, bought)
			for n := range reqs {
				id, err := order.NewID(time.Now(), rand.Reader)
				require.NoError(t, err)
				reqs[n] = lua.Request{OrderID: id, UserID: fmt.Sprint("u", n), Quantity: 1}
			}
			batch, err := lua.Reserve(ctx, s.Redis, product, snapshot.Epoch, reqs)
			require.NoError(t, err)
			require.Equal(t, lua.Reserved, batch.Results[0].Outcome)
		}
		end()
		for i := range activities {
			product := fmt.Sprint("p", i)
			snapshot, _, err := lua.Audit(ctx, s.Redis, product)
			require.NoError(t, err)
			require.EqualValues(t, 2, snapshot.Epoch, "preheated once, opened once")
			require.EqualValues(t, bought, snapshot.Frozen)
			require.EqualValues(t, 10-bought, snapshot.Available)
		}
		require.Equal(t, activities, strings.Count(log.String(), "activity preheated"))
	})
}

// syncBuffer is a buffer for several writers.
type syncBuffer struct {
	mu sync.Mutex
	bytes.Buffer
}

func (b *syncBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.Buffer.Write(p)
}

func TestKeeperEndsWithItsContext(t *testing.T) {
	onEach(t, func(t *testing.T, s *Service) {
		create(t, s, planned(-time.Minute, time.Hour))
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		require.ErrorIs(t, NewKeeper(s).Pass(ctx), context.Canceled)
	})
}
