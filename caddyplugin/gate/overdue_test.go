package gate

import (
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/seckill-edge/seckill/internal/order"
	"github.com/seckill-edge/seckill/internal/servicetest"
	"github.com/seckill-edge/seckill/lua"
)

// slow is a gate whose Redis answers only after resume; its buyers are told "queued"
// soon.
func slow(t *testing.T, change func(*Config, *Deps)) (b *bench, server *servicetest.Redis) {
	server = servicetest.RedisForTest(t)
	b = setup(t, server.URL(), func(c *Config, _ *Deps) { c.ReserveTimeout = servicetest.Scaled(50 * time.Millisecond) }, change)
	b.preheat(t, 10)
	servicetest.Eventually(t, func() bool { return b.click(t, "first").Outcome == lua.Reserved })
	require.NoError(t, server.Pause())
	t.Cleanup(func() { _ = server.Resume() })
	return b, server
}

func (b *bench) rejected(t *testing.T, user, id string) order.Reason {
	t.Helper()
	var f Fate
	servicetest.Eventually(t, func() (ok bool) {
		var err error
		f, err = b.Fate(t.Context(), product, user, id)
		require.True(t, err == nil || errors.Is(err, ErrUnavailable), "%v", err)
		return err == nil && f.State == order.Rejected
	})
	return f.Reason
}

// A call that stood in a Redis that stood still reserves nothing when its buyer may
// have been told by another edge that his order is lost.
func TestACallWhosePromiseIsOverReservesNothing(t *testing.T) {
	if testing.Short() {
		return
	}
	b, server := slow(t, func(c *Config, _ *Deps) { c.ResolveWithin = 5 * time.Second })
	d := b.click(t, "late")
	require.Equal(t, lua.Reserved, d.Outcome, "told queued")
	servicetest.Eventually(t, func() bool { return time.Now().After(d.ResolveBy) })
	require.NoError(t, server.Resume())
	b.rejected(t, "late", d.OrderID)
	servicetest.Eventually(t, func() bool { return b.click(t, "next").Outcome == lua.Reserved })
	require.EqualValues(t, 2, b.snapshot(t).Frozen, "of the first and the next")
	entries, err := lua.RecordOf(t.Context(), b.redis, product, "late")
	require.NoError(t, err)
	require.Empty(t, entries)
}

// An edge that stood still does not send what has waited in it meanwhile.
func TestWhatHasWaitedTooLongIsNotSent(t *testing.T) {
	if testing.Short() {
		return
	}
	var ahead atomic.Int64
	b, server := slow(t, func(_ *Config, d *Deps) {
		d.Now = func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) }
	})
	g := b.sales.all()[0].group
	state := func() [2]int {
		g.mu.Lock()
		defer g.mu.Unlock()
		return [2]int{len(g.flight[0]) + len(g.flight[1]), len(g.waiting)}
	}
	var sent, waiting Decision
	var clicks sync.WaitGroup
	clicks.Go(func() { sent = b.click(t, "sent") })
	servicetest.Eventually(t, func() bool { return state() == [2]int{1, 0} })
	clicks.Go(func() { waiting = b.click(t, "waiting") })
	servicetest.Eventually(t, func() bool { return state() == [2]int{1, 1} })
	ahead.Store(int64(b.reserveWithin() + time.Second)) // and nobody is told "lost" yet
	clicks.Wait()
	require.Equal(t, [2]lua.Outcome{lua.Reserved, lua.Reserved}, [2]lua.Outcome{sent.Outcome, waiting.Outcome}, "told queued")
	require.NoError(t, server.Resume())
	require.Equal(t, order.Reason("unavailable"), b.rejected(t, "waiting", waiting.OrderID))
	servicetest.Eventually(t, func() bool {
		_, err := b.Fate(t.Context(), product, "sent", sent.OrderID)
		return err == nil && b.snapshot(t).Frozen == 2
	})
	require.Zero(t, b.sales.all()[0].crowd.coming.Load())
}
