package gate

import (
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/seckill-edge/seckill/internal/order"
	"github.com/seckill-edge/seckill/internal/servicetest"
	"github.com/seckill-edge/seckill/lua"
)

// A Redis that stands still again and again, longer than a call may take, makes buyers wait and
// takes nothing from who was told "queued".
func TestWhoWasToldQueuedIsCarriedOn(t *testing.T) {
	if testing.Short() {
		return
	}
	server := servicetest.RedisForTest(t)
	b := setup(t, server.URL(), func(c *Config, _ *Deps) {
		c.ReserveTimeout, c.ResolveWithin = 100*time.Millisecond, 10*time.Minute // nobody's time is over, however slow the machine
	})
	b.preheat(t, 100_000)
	require.Equal(t, lua.Reserved, b.click(t, "first").Outcome)

	var mu sync.Mutex
	queued := map[string]string{} // order id → buyer
	click := func(user string) {
		if d := b.click(t, user); d.Outcome == lua.Reserved {
			mu.Lock()
			queued[d.OrderID] = user
			mu.Unlock()
		}
	}
	for pause := range 3 {
		before := b.Stats()
		require.NoError(t, server.Pause())
		// It stands still until some were told "queued" and a call has failed.
		for i := 0; b.Stats().Late < before.Late+5 || b.Stats().CallErrors == before.CallErrors; i++ {
			var clicks sync.WaitGroup
			for n := range 5 {
				clicks.Go(func() { click(fmt.Sprintf("buyer-%d-%d-%d", pause, i, n)) })
			}
			clicks.Wait() // each is answered, at the latest when its time is over
		}
		require.NoError(t, server.Resume())
		servicetest.Eventually(t, func() bool { return b.click(t, fmt.Sprintf("after-%d", pause)).Outcome == lua.Reserved })
	}
	require.NotEmpty(t, queued)
	for id, user := range queued {
		servicetest.Eventually(t, func() bool {
			entries, err := lua.RecordOf(t.Context(), b.redis, product, user)
			if err != nil || len(entries) == 0 {
				f, err := b.Fate(t.Context(), product, user, id)
				require.False(t, err == nil && f.State == order.Rejected, "told queued, then %s", f.Reason)
				return false
			}
			return entries[0].OrderID == id
		})
	}
	for outcome, n := range b.Stats().LateOutcomes {
		require.True(t, outcome == lua.Reserved || n == 0, "%d late ones were told %s", n, outcome)
	}
}

// lines is a log that can be read.
type lines struct {
	sync.Mutex
	strings.Builder
}

func (l *lines) Write(p []byte) (int, error) {
	l.Lock()
	defer l.Unlock()
	return l.Builder.Write(p)
}

func (l *lines) all() string {
	l.Lock()
	defer l.Unlock()
	return l.String()
}

// A Redis that reads and refuses writes is one outage: the circuit stays open, the
// log has one line when it begins and one when it ends, and readiness names the cause.
func TestARedisThatRefusesWritesIsOneOutage(t *testing.T) {
	if testing.Short() {
		return
	}
	for code, switches := range map[string]struct{ on, off []any }{
		"NOREPLICAS": {[]any{"min-replicas-to-write", "1"}, []any{"min-replicas-to-write", "0"}},
		"OOM":        {[]any{"maxmemory", "1"}, []any{"maxmemory", "0"}},
	} {
		t.Run(code, func(t *testing.T) {
			var log lines
			server := servicetest.RedisForTest(t)
			b := setup(t, server.URL(), func(_ *Config, d *Deps) { d.Log = slog.New(slog.NewTextHandler(&log, nil)) })
			b.preheat(t, 1000)
			require.Equal(t, lua.Reserved, b.click(t, "first").Outcome)
			config := func(args []any) {
				require.NoError(t, b.redis.Do(t.Context(), append([]any{"CONFIG", "SET"}, args...)...).Err())
			}
			config(switches.on)
			servicetest.Eventually(t, func() bool { return b.Ready(t.Context()) != nil })
			require.ErrorContains(t, b.Ready(t.Context()), "redis: it refuses purchases for now")
			require.ErrorContains(t, b.Ready(t.Context()), code)
			s := b.sales.all()[0]
			for looks := range 10 { // each tries a purchase, in vain
				s.look()
				require.Equal(t, lua.Unavailable, b.click(t, fmt.Sprintf("in-vain-%d", looks)).Outcome)
				view, _ := b.View(t.Context(), product)
				require.False(t, view.Fresh)
			}
			config(switches.off)
			servicetest.Eventually(t, func() bool { return b.click(t, "after").Outcome == lua.Reserved })
			require.NoError(t, b.Ready(t.Context()))
			require.NotContains(t, log.all(), "Redis works again") // it may be only for a moment
			config(switches.on)
			servicetest.Eventually(t, func() bool { return b.Ready(t.Context()) != nil })
			config(switches.off)
			servicetest.Eventually(t, func() bool { return strings.Contains(log.all(), "Redis works again") })
			require.Equal(t, 1, strings.Count(log.all(), "nothing can be sold"), log.all())
			require.Contains(t, log.all(), code)
			require.Equal(t, 1, strings.Count(log.all(), "Redis works again"), log.all())
		})
	}
}

// A right that purchases need and looks do not keeps the circuit open, and is named.
func TestAMissingRightKeepsTheCircuitOpen(t *testing.T) {
	if testing.Short() {
		return
	}
	server := servicetest.RedisForTest(t)
	b := setup(t, server.URL())
	b.preheat(t, 1000)
	require.Equal(t, lua.Reserved, b.click(t, "first").Outcome)
	acl := func(rule string) {
		require.NoError(t, b.redis.Do(t.Context(), "ACL", "SETUSER", "default", rule).Err())
	}
	acl("-decrby")
	require.Equal(t, lua.Unavailable, b.click(t, "a").Outcome)
	s := b.sales.all()[0]
	for range 5 {
		s.look()
		require.Equal(t, lua.Unavailable, b.click(t, "a").Outcome)
	}
	require.ErrorContains(t, b.Ready(t.Context()), "refuses a right")
	acl("+decrby")
	servicetest.Eventually(t, func() bool { return b.click(t, "z").Outcome == lua.Reserved })
}

// Bounds of freshness follow how fast looks come round, within bounds; and a reply to
// a reservation renews the view.
func TestFreshnessFollowsThePace(t *testing.T) {
	eachRedis(t, func(t *testing.T, url string) {
		b := setup(t, url)
		b.preheat(t, 10)
		require.Equal(t, lua.Reserved, b.click(t, "a").Outcome)
		s := b.sales.all()[0]
		for _, tc := range []struct{ took, want time.Duration }{
			{time.Second, freshMin},
			{4 * time.Second, 12 * time.Second},
			{time.Second, 12 * time.Second * 9 / 10},
			{time.Minute, freshMax},
			{0, freshMax * 9 / 10},
		} {
			before := s.fresh.Load()
			s.learnPace(tc.took, false)
			require.EqualValues(t, tc.want, s.fresh.Load(), "%v after %v", tc.took, time.Duration(before))
		}
		v := s.view.Load()
		old := time.Now().Add(freshMax + time.Minute)
		require.True(t, s.stale(old))
		s.heard.Store(int64(-time.Hour))
		require.True(t, s.stale(time.Now()))
		s.confirm(lua.Batch{ActivityID: v.ID, Epoch: v.Epoch + 1, State: lua.Open})
		require.True(t, s.stale(time.Now()), "another epoch confirms nothing")
		s.confirm(lua.Batch{ActivityID: v.ID, Epoch: v.Epoch, State: lua.Open})
		require.False(t, s.stale(time.Now()))
	})
}
