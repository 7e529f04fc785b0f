package activities

import (
	"crypto/rand"
	"fmt"
	"log/slog"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	mysqldriver "github.com/go-sql-driver/mysql"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/seckill-edge/seckill/backend/store"
	"github.com/seckill-edge/seckill/internal/order"
	"github.com/seckill-edge/seckill/internal/queue"
	"github.com/seckill-edge/seckill/internal/servicetest"
	"github.com/seckill-edge/seckill/lua"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(servicetest.Main(m)) }

// kinds are what tests run on: the addresses of a Redis and a database.
type kinds map[string]func(t *testing.T) (redis, database string)

// onReal runs test on real servers, and on none with -short.
func onReal(t *testing.T, test func(t *testing.T, s *Service)) {
	all := kinds{}
	if !testing.Short() {
		all["real"] = func(t *testing.T) (string, string) {
			c, err := mysqldriver.ParseDSN(servicetest.SharedMariaDB(t).Database(t))
			require.NoError(t, err)
			return servicetest.RedisForTest(t).Addr(), fmt.Sprintf("mysql://%s:%s@%s/%s", c.User, c.Passwd, c.Addr, c.DBName)
		}
	}
	all.run(t, test)
}

// onEach runs test on the embedded stores, too.
func onEach(t *testing.T, test func(t *testing.T, s *Service)) {
	kinds{"embedded": func(t *testing.T) (string, string) {
		return miniredis.RunT(t).Addr(), "sqlite:" + filepath.Join(t.TempDir(), "x.db")
	}}.run(t, test)
	onReal(t, test)
}

func (all kinds) run(t *testing.T, test func(t *testing.T, s *Service)) {
	for name, start := range all {
		t.Run(name, func(t *testing.T) {
			addr, database := start(t)
			client, err := lua.NewClient("redis://"+addr+"/0"+servicetest.PatientRedis(), "test") // embedded, under the race detector, it is slow
			require.NoError(t, err)
			db, err := store.New(t.Context(), database, nil)
			require.NoError(t, err)
			broker, err := queue.Open("memory:" + t.Name())
			require.NoError(t, err)
			t.Cleanup(func() {
				require.NoError(t, db.Close())
				require.NoError(t, client.Close())
			})
			_, err = db.Migrate(t.Context())
			require.NoError(t, err)
			test(t, New(Deps{
				Store: db, Redis: client, Queue: broker, Now: time.Now, Random: rand.Reader, Log: slog.New(slog.DiscardHandler),
			}))
		})
	}
}

func draft() Draft {
	return Draft{
		ProductID: "1001", Title: "Phone", Total: 10, Limit: 2, Manual: true,
		Start: time.Now().Add(-time.Minute).Format(time.RFC3339), End: time.Now().Add(time.Hour).Format(time.RFC3339),
	}
}

func TestDraft(t *testing.T) {
	now := time.Date(2026, 11, 11, 0, 0, 0, 0, time.UTC)
	good := Draft{ProductID: "1001", Start: "2026-11-11T20:00:00+08:00", End: "2026-11-11T22:00:00+08:00", Total: 1, Limit: 1}
	for _, tc := range []struct {
		name   string
		change func(*Draft)
		field  string
	}{
		{"good", func(*Draft) {}, ""},
		{"largest", func(d *Draft) { d.Total, d.Limit, d.PayWindow = 1e9, 999, 168*time.Hour }, ""},
		{"no product", func(d *Draft) { d.ProductID = "" }, "product_id"},
		{"braces", func(d *Draft) { d.ProductID = "{1}" }, "product_id"},
		{"bad id", func(d *Draft) { d.ID = strings.Repeat("x", 65) }, "id"},
		{"no zone", func(d *Draft) { d.Start = "2026-11-11T20:00:00" }, "start"},
		{"words", func(d *Draft) { d.End = "tomorrow" }, "end"},
		{"first and last", func(d *Draft) { d.Start, d.End = "1970-01-01T00:00:00Z", "9999-12-31T23:59:59.999Z" }, ""},
		{"before 1970", func(d *Draft) { d.Start = "1969-12-31T23:59:59Z" }, "start"},
		{"before 1970 in UTC", func(d *Draft) { d.Start = "1970-01-01T00:00:00+08:00" }, "start"},
		{"after 9999 in UTC", func(d *Draft) { d.End = "9999-12-31T23:59:59-12:00" }, "end"},
		{"end first", func(d *Draft) { d.End = d.Start }, "end"},
		{"over already", func(d *Draft) { d.Start, d.End = "2025-01-01T00:00:00Z", "2025-01-02T00:00:00Z" }, "end"},
		{"no units", func(d *Draft) { d.Total = 0 }, "total"},
		{"too many", func(d *Draft) { d.Total = 1e9 + 1 }, "total"},
		{"limit 0", func(d *Draft) { d.Limit = 0 }, "limit"},
		{"limit 1000", func(d *Draft) { d.Limit = 1000 }, "limit"},
		{"negative window", func(d *Draft) { d.PayWindow = -time.Second }, "pay_window_seconds"},
		{"odd window", func(d *Draft) { d.PayWindow = time.Millisecond }, "pay_window_seconds"},
		{"title of controls", func(d *Draft) { d.Title = "a\nb" }, "title"},
		{"title that turns the page's text around", func(d *Draft) { d.Title = "a\u202eb" }, "title"},
		{"title of 255 characters", func(d *Draft) { d.Title = strings.Repeat("秒", order.MaxTitle) }, ""},
		{"title of 256 characters", func(d *Draft) { d.Title = strings.Repeat("秒", order.MaxTitle+1) }, "title"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			d := good
			tc.change(&d)
			a, err := d.activity(now)
			if tc.field == "" {
				require.NoError(t, err)
				require.Equal(t, time.UTC, a.Start.Location())
				return
			}
			var invalid *Invalid
			require.ErrorAs(t, err, &invalid)
			require.Len(t, invalid.Fields, 1)
			require.Equal(t, tc.field, invalid.Fields[0].Name)
			require.NotEmpty(t, invalid.Fields[0].Allowed)
		})
	}
}

func TestLifeOfASale(t *testing.T) {
	onEach(t, func(t *testing.T, s *Service) {
		ctx := t.Context()
		_, err := s.Open(ctx, "1001")
		require.ErrorIs(t, err, store.ErrNotFound)
		_, err = s.Create(ctx, draft())
		require.NoError(t, err)
		_, err = s.Create(ctx, draft())
		require.ErrorIs(t, err, store.ErrExists)
		_, err = s.Open(ctx, "1001")
		require.ErrorIs(t, err, ErrRefused)
		require.ErrorContains(t, err, "preheat it first")
		_, err = s.Hold(ctx, "1001")
		require.ErrorIs(t, err, ErrRefused)

		steps := []struct {
			do    func(*Service) (View, error)
			sql   store.ActivityState
			redis lua.ActivityState
			why   string
		}{
			{func(s *Service) (View, error) { return s.Show(ctx, "1001") }, store.Scheduled, "", "preheat it"},
			{func(s *Service) (View, error) { return s.Preheat(ctx, "1001") }, store.Held, lua.OnHold, "held"},
			{func(s *Service) (View, error) { return s.Open(ctx, "1001") }, store.Open, lua.Open, "selling"},
			{func(s *Service) (View, error) { return s.Hold(ctx, "1001") }, store.Held, lua.OnHold, "held"},
			{func(s *Service) (View, error) { return s.Open(ctx, "1001") }, store.Open, lua.Open, "selling"},
			{func(s *Service) (View, error) { return s.Preheat(ctx, "1001") }, store.Open, lua.Open, "selling"},
			{func(s *Service) (View, error) { return s.Close(ctx, "1001") }, store.Closed, lua.Closed, "over for good"},
		}
		for i, step := range steps {
			for range 2 { // every step may be repeated
				view, err := step.do(s)
				require.NoError(t, err, "step %d", i)
				require.Equal(t, step.sql, view.State, "step %d", i)
				require.Contains(t, view.Why, step.why, "step %d", i)
				if step.redis != "" {
					require.Equal(t, step.redis, view.Snapshot.State, "step %d", i)
				}
			}
		}
		_, err = s.Open(ctx, "1001")
		require.ErrorIs(t, err, ErrRefused)
		views, err := s.List(ctx)
		require.NoError(t, err)
		require.Len(t, views, 1)
	})
}

// Whatever is in Redis and not settled is never overwritten.
func TestPreheatNeverOverALiveSale(t *testing.T) {
	onEach(t, func(t *testing.T, s *Service) {
		ctx := t.Context()
		first, err := s.Create(ctx, draft())
		require.NoError(t, err)
		_, err = s.Preheat(ctx, "1001")
		require.NoError(t, err)
		view, err := s.Open(ctx, "1001")
		require.NoError(t, err)
		bought := buy(t, s, view.Snapshot.Epoch, "alice")

		_, err = s.Preheat(ctx, "1001")
		require.NoError(t, err)
		require.Equal(t, int64(9), snapshotOf(t, s).Available, "a repeat does not fill the stock up")

		_, err = s.Close(ctx, "1001")
		require.NoError(t, err)
		_, err = s.Create(ctx, draft())
		require.NoError(t, err)
		_, err = s.Preheat(ctx, "1001")
		require.ErrorIs(t, err, ErrRefused)
		require.ErrorContains(t, err, "not settled yet: 1 units frozen, 1 orders in the outbox")

		_, err = lua.Settle(ctx, s.Redis, "1001", lua.MarkSettled, []lua.Move{{UserID: "alice", OrderID: bought}})
		require.NoError(t, err)
		view, err = s.Preheat(ctx, "1001")
		require.NoError(t, err)
		require.NotEqual(t, first.ID, view.Snapshot.ID)
		require.Equal(t, int64(10), view.Snapshot.Available)
	})
}

// Redis has lost a sale that has orders: its stock is not its total any more.
func TestPreheatRefusesASaleWithOrders(t *testing.T) {
	onEach(t, func(t *testing.T, s *Service) {
		ctx := t.Context()
		a, err := s.Create(ctx, draft())
		require.NoError(t, err)
		id, err := order.NewID(time.Now(), rand.Reader)
		require.NoError(t, err)
		_, err = s.Store.SaveOrders(ctx, []order.Order{{
			ID: id, ActivityID: a.ID, ProductID: "1001", UserID: "bob", Quantity: 2, Claim: 1, ReservedAt: time.Now(),
		}})
		require.NoError(t, err)
		_, err = s.Preheat(ctx, "1001")
		require.ErrorIs(t, err, ErrRefused)
		require.ErrorContains(t, err, "rebuilt from SQL")
		audit, err := s.Audit(ctx, "1001")
		require.NoError(t, err)
		require.False(t, audit.Known)
		require.Equal(t, int64(2), audit.Drift)

		// The same stock, loaded by hand, is not opened either.
		_, err = lua.Preheat(ctx, s.Redis, lua.Activity{ID: a.ID, ProductID: "1001", Start: a.Start, End: a.End, Total: 10, Limit: 2, State: lua.OnHold})
		require.NoError(t, err)
		_, err = s.Open(ctx, "1001")
		require.ErrorIs(t, err, ErrRefused)
		require.ErrorContains(t, err, "SQL holds 2 units that Redis would sell again")
	})
}

func TestFollowerFinishesWhatACrashLeft(t *testing.T) {
	for _, tc := range []struct {
		name      string
		sql       store.ActivityState
		redis     lua.ActivityState
		wantSQL   store.ActivityState
		wantRedis lua.ActivityState
	}{
		{"preheat", store.Scheduled, lua.OnHold, store.Held, lua.OnHold},
		{"close", store.Open, lua.Closed, store.Closed, lua.Closed},
		{"closed in SQL", store.Closed, lua.Open, store.Closed, lua.Closed},
		{"held in SQL", store.Held, lua.Open, store.Held, lua.OnHold},
		{"never opens", store.Open, lua.OnHold, store.Open, lua.OnHold},
	} {
		t.Run(tc.name, func(t *testing.T) {
			onEach(t, func(t *testing.T, s *Service) {
				ctx := t.Context()
				a, err := s.Create(ctx, draft())
				require.NoError(t, err)
				_, err = lua.Preheat(ctx, s.Redis, lua.Activity{
					ID: a.ID, ProductID: "1001", Start: a.Start, End: a.End, Total: 10, Limit: 2, State: tc.redis,
				})
				require.NoError(t, err)
				require.NoError(t, s.Store.SetActivityState(ctx, a.ID, []store.ActivityState{store.Scheduled}, tc.sql))
				f := NewFollower(s)
				require.NoError(t, f.Pass(ctx))
				require.Equal(t, tc.redis, snapshotOf(t, s).State, "one pass may see somebody's step in progress")
				require.NoError(t, f.Pass(ctx))
				require.Equal(t, tc.wantRedis, snapshotOf(t, s).State)
				got, err := s.Store.Activity(ctx, a.ID)
				require.NoError(t, err)
				require.Equal(t, tc.wantSQL, got.State)
			})
		})
	}
}

func buy(t *testing.T, s *Service, epoch int64, user string) (orderID string) {
	id, err := order.NewID(time.Now(), rand.Reader)
	require.NoError(t, err)
	batch, err := lua.Reserve(t.Context(), s.Redis, "1001", epoch, []lua.Request{{OrderID: id, UserID: user, Quantity: 1}})
	require.NoError(t, err)
	require.Equal(t, lua.Reserved, batch.Results[0].Outcome)
	return id
}

func snapshotOf(t *testing.T, s *Service) lua.Snapshot {
	snapshot, there, err := lua.Audit(t.Context(), s.Redis, "1001")
	require.NoError(t, err)
	require.True(t, there)
	return snapshot
}
