package gate

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/seckill-edge/seckill/internal/order"
	"github.com/seckill-edge/seckill/internal/servicetest"
	"github.com/seckill-edge/seckill/lua"
)

func (b *bench) keyed(t *testing.T, user, key string, quantity int) Decision {
	t.Helper()
	return b.Reserve(t.Context(), Click{ProductID: product, UserID: user, Quantity: quantity, Key: key})
}

// TestKey: the first order again, in whatever state the sale is; nothing is
// forwarded or counted twice.
func TestKey(t *testing.T) {
	eachRedis(t, func(t *testing.T, url string) {
		b := setup(t, url)
		other := setup(t, url) // another edge on the same Redis
		a := b.preheat(t, 2, func(a *lua.Activity) { a.Limit = 2 })
		first := b.keyed(t, "a", "k", 1)
		require.Equal(t, lua.Reserved, first.Outcome)
		require.False(t, first.Repeat)
		again := func(when string) {
			t.Helper()
			for _, e := range []*bench{b, other} {
				d := e.keyed(t, "a", "k", 1)
				require.Equal(t, lua.Reserved, d.Outcome, when)
				require.Equal(t, first.OrderID, d.OrderID, when)
				require.True(t, d.Repeat, when)
				require.WithinDuration(t, first.ResolveBy, d.ResolveBy, time.Millisecond, when)
				require.Equal(t, lua.KeyReused, e.keyed(t, "a", "k", 2).Outcome, when)
			}
		}
		again("open")
		require.Equal(t, lua.Reserved, b.click(t, "b").Outcome)
		require.Equal(t, lua.SoldOut, b.click(t, "c").Outcome)
		again("sold out")
		require.Equal(t, lua.SoldOut, b.keyed(t, "c", "k", 1).Outcome)
		require.Equal(t, lua.BadArguments, b.keyed(t, "a", "k", 3).Outcome)
		_, _, err := lua.SetState(t.Context(), b.redis, product, a.ID, lua.OnHold)
		require.NoError(t, err)
		for _, e := range []*bench{b, other} {
			servicetest.Eventually(t, func() bool { return e.click(t, "c").Outcome == lua.Held })
		}
		again("on hold")
		_, _, err = lua.SetState(t.Context(), b.redis, product, a.ID, lua.Closed)
		require.NoError(t, err)
		for _, e := range []*bench{b, other} {
			servicetest.Eventually(t, func() bool { return e.click(t, "c").Outcome == lua.Ended })
		}
		again("closed")
		require.Len(t, b.published(t, 2), 2)
		stats := b.Stats()
		require.EqualValues(t, 2, stats.Outcomes[lua.Reserved])
		require.EqualValues(t, 4, stats.Repeats)
		require.EqualValues(t, 4, stats.Outcomes[lua.KeyReused])
		require.Zero(t, other.Stats().Outcomes[lua.Reserved])
	})
}

// TestKeyAtOnce: one key many times at once is one order.
func TestKeyAtOnce(t *testing.T) {
	eachRedis(t, func(t *testing.T, url string) {
		b := setup(t, url)
		b.preheat(t, 100, func(a *lua.Activity) { a.Limit = 50 })
		var mu sync.Mutex
		ids, fresh := map[string]bool{}, 0
		var wg sync.WaitGroup
		for range 200 {
			wg.Go(func() {
				d := b.Reserve(context.Background(), Click{ProductID: product, UserID: "a", Quantity: 1, Key: "k"})
				mu.Lock()
				defer mu.Unlock()
				ids[d.OrderID] = d.Outcome == lua.Reserved
				if !d.Repeat {
					fresh++
				}
			})
		}
		wg.Wait()
		require.Len(t, ids, 1)
		require.Equal(t, 1, fresh)
		require.EqualValues(t, 99, b.snapshot(t).Available)
		require.Len(t, b.published(t, 1), 1)
	})
}

// hanging keeps commands from their server until it is let go.
type hanging struct {
	redis.Hook
	mu   sync.Mutex
	gate chan struct{} // nil: all pass
	only string        // name of the command that hangs; empty for all
}

func (h *hanging) hang(only string) (release func()) {
	gate := make(chan struct{})
	h.mu.Lock()
	h.gate, h.only = gate, only
	h.mu.Unlock()
	return sync.OnceFunc(func() {
		h.mu.Lock()
		h.gate = nil
		h.mu.Unlock()
		close(gate)
	})
}

func (h *hanging) DialHook(next redis.DialHook) redis.DialHook { return next }

func (h *hanging) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

func (h *hanging) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		h.mu.Lock()
		gate := h.gate
		if h.only != "" && cmd.Name() != h.only {
			gate = nil
		}
		h.mu.Unlock()
		if gate != nil {
			<-gate
		}
		return next(ctx, cmd)
	}
}

// TestKeyOfLateOrder: who was told "queued" before Redis answered is told the same
// order again, even if meanwhile his repeat got one at another edge.
func TestKeyOfLateOrder(t *testing.T) {
	eachRedis(t, func(t *testing.T, url string) {
		h := &hanging{}
		b := setup(t, url, func(c *Config, d *Deps) {
			c.ReserveTimeout = servicetest.Scaled(30 * time.Millisecond)
			d.Redis.AddHook(h)
		})
		other := setup(t, url)
		other.preheat(t, 10, func(a *lua.Activity) { a.Limit = 5 })
		servicetest.Eventually(t, func() bool { return b.click(t, "warm").Outcome == lua.Reserved })

		before := b.Stats().Late // on a slow machine the first click was late, too
		release := h.hang("evalsha")
		defer release()
		late := b.keyed(t, "a", "k", 1)
		require.Equal(t, lua.Reserved, late.Outcome)
		require.Equal(t, before+1, b.Stats().Late)
		d := b.keyed(t, "a", "k", 1)
		require.Equal(t, late.OrderID, d.OrderID, "the edge remembers the key while Redis is silent")
		require.True(t, d.Repeat)
		require.Equal(t, lua.KeyReused, b.keyed(t, "a", "k", 2).Outcome)
		// The buyer's other attempt reaches another edge, and is first.
		elsewhere := other.keyed(t, "a", "k", 1)
		require.Equal(t, lua.Reserved, elsewhere.Outcome)
		require.False(t, elsewhere.Repeat)
		release()

		servicetest.Eventually(t, func() bool {
			f, err := b.Fate(t.Context(), product, "a", late.OrderID)
			return err == nil && f.OrderID == elsewhere.OrderID && f.State == order.Queued
		}, "the late order turns out to be the other one")
		d = b.keyed(t, "a", "k", 1)
		require.Equal(t, elsewhere.OrderID, d.OrderID)
		entries, err := lua.RecordOf(t.Context(), other.redis, product, "a")
		require.NoError(t, err)
		require.Len(t, entries, 1)
		require.Len(t, other.published(t, 1), 1)
	})
}

// TestKeyOfRefusedLateOrder: what Redis refused after all may be tried again.
func TestKeyOfRefusedLateOrder(t *testing.T) {
	l := newLateOrders(time.Minute)
	now := time.Unix(1_794_000_000, 0)
	l.add(product, newTicket(lua.Request{OrderID: "one", UserID: "a", Quantity: 1, Key: "key"}, now))
	id, o, ok := l.keyed("key")
	require.True(t, ok)
	require.Equal(t, "one", id)
	require.Equal(t, 1, o.quantity)
	l.learn("one", lua.Result{Outcome: lua.SoldOut})
	_, _, ok = l.keyed("key")
	require.False(t, ok)
	l.add(product, newTicket(lua.Request{OrderID: "two", UserID: "a", Quantity: 1, Key: "key"}, now))
	id, _, ok = l.keyed("key")
	require.True(t, ok)
	require.Equal(t, "two", id)
	// Both are forgotten with time, and their keys with them.
	l.add(product, newTicket(lua.Request{OrderID: "three", UserID: "a", Quantity: 1}, now.Add(time.Hour)))
	_, _, ok = l.keyed("key")
	require.False(t, ok)
	require.Len(t, l.orders, 1)
	require.Empty(t, l.keys)
}
