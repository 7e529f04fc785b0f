package gate

import (
	"crypto/rand"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/seckill-edge/seckill/internal/order"
	"github.com/seckill-edge/seckill/internal/servicetest"
	"github.com/seckill-edge/seckill/lua"
)

var wait = servicetest.Patience()

// admitted is a click with an order id of its own.
func (b *bench) admitted(t *testing.T, user string, quantity int) Click {
	t.Helper()
	id, err := b.Admit(product, user)
	require.NoError(t, err)
	require.True(t, order.OwnedBy(id, product, user))
	return Click{ProductID: product, UserID: user, Quantity: quantity, OrderID: id, ActivityID: "double-11"}
}

func TestOffer(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*lua.Activity)
		want   lua.Outcome
		retry  bool
	}{
		"open":        {func(*lua.Activity) {}, lua.Reserved, false},
		"long before": {func(a *lua.Activity) { a.Start = time.Now().Add(time.Minute).Truncate(time.Second) }, lua.NotStarted, true},
		"ended":       {func(a *lua.Activity) { a.End = time.Now().Add(-time.Second).Truncate(time.Second) }, lua.Ended, false},
		"closed":      {func(a *lua.Activity) { a.State = lua.Closed }, lua.Ended, false},
		"on hold":     {func(a *lua.Activity) { a.State = lua.OnHold }, lua.Held, true},
	} {
		t.Run(name, func(t *testing.T) {
			eachRedis(t, func(t *testing.T, url string) {
				b := setup(t, url)
				a := b.preheat(t, 1, tc.change)
				o := b.Offer(t.Context(), product)
				require.Equal(t, tc.want, o.Outcome)
				require.Equal(t, tc.retry, o.RetryAfter > 0)
				require.Equal(t, a.ID, o.ActivityID)
				require.WithinDuration(t, time.Now(), o.Now, wait)
				require.Zero(t, b.Stats().Calls, "nobody has reserved anything")
				none := b.Offer(t.Context(), "2002")
				require.Equal(t, Offer{Outcome: lua.NoProduct}, none)
			})
		})
	}
}

// An offer follows the edge's view: to the millisecond before the start, which a
// purchase may precede by the clocks' slack, and to the last unit.
func TestOfferFollowsTheSale(t *testing.T) {
	eachRedis(t, func(t *testing.T, url string) {
		b := setup(t, url)
		start := time.Now().Add(300 * time.Millisecond).Truncate(time.Millisecond)
		b.preheat(t, 1, func(a *lua.Activity) { a.Start = start })
		servicetest.Eventually(t, func() bool {
			o := b.Offer(t.Context(), product)
			require.Equal(t, o.Now.Before(start), o.Outcome == lua.NotStarted)
			return o.Outcome == lua.Reserved
		})
		require.Equal(t, lua.Reserved, b.click(t, "a").Outcome)
		require.Equal(t, lua.SoldOut, b.Offer(t.Context(), product).Outcome)
	})
}

// Many clicks with one order id, in one batch and in several, are one order with
// the quantity that came first.
func TestOneOrderID(t *testing.T) {
	eachRedis(t, func(t *testing.T, url string) {
		b := setup(t, url, func(c *Config, _ *Deps) { c.TicketLife = time.Minute })
		b.preheat(t, 100, func(a *lua.Activity) { a.Limit = 50 })
		c := b.admitted(t, "a", 1)
		decisions := make([]Decision, 200)
		var wg sync.WaitGroup
		for i := range decisions {
			wg.Go(func() {
				c := c
				c.Quantity = 1 + i%4
				decisions[i] = b.Reserve(t.Context(), c)
			})
		}
		wg.Wait()
		fresh := 0
		for _, d := range decisions {
			require.Equal(t, lua.Reserved, d.Outcome)
			require.Equal(t, c.OrderID, d.OrderID)
			require.Equal(t, decisions[0].Quantity, d.Quantity)
			require.False(t, d.ResolveBy.Before(time.Now()))
			if !d.Repeat {
				fresh++
			}
		}
		require.Equal(t, 1, fresh)
		require.EqualValues(t, 100-decisions[0].Quantity, b.snapshot(t).Available)
		require.Equal(t, decisions[0].Quantity, b.published(t, 1)[c.OrderID].Quantity)
		require.EqualValues(t, 199, b.Stats().Repeats)
	})
}

// Clicks on an activity that is no longer the product's buy nothing of the next.
func TestClickOnAnotherActivity(t *testing.T) {
	eachRedis(t, func(t *testing.T, url string) {
		b := setup(t, url)
		b.preheat(t, 5)
		c := b.admitted(t, "a", 1)
		c.ActivityID = "double-10"
		d := b.Reserve(t.Context(), c)
		require.Equal(t, lua.Unavailable, d.Outcome)
		require.EqualValues(t, 5, b.snapshot(t).Available)
		require.Zero(t, b.Stats().Calls)
		require.Equal(t, lua.Reserved, b.click(t, "b").Outcome, "others are served")
	})
}

// Told "queued" twice under one id while Redis was silent, it is one order.
func TestOneOrderIDLate(t *testing.T) {
	eachRedis(t, func(t *testing.T, url string) {
		h := &hanging{}
		b := setup(t, url, func(c *Config, d *Deps) {
			c.ReserveTimeout, c.TicketLife = servicetest.Scaled(30*time.Millisecond), time.Minute
			d.Redis.AddHook(h)
		})
		b.preheat(t, 10, func(a *lua.Activity) { a.Limit = 5 })
		servicetest.Eventually(t, func() bool { return b.click(t, "warm").Outcome == lua.Reserved })
		c := b.admitted(t, "a", 2)
		release := h.hang("evalsha")
		late := b.Reserve(t.Context(), c)
		require.Equal(t, lua.Reserved, late.Outcome)
		c.Quantity = 3
		again := b.Reserve(t.Context(), c)
		require.True(t, again.Repeat)
		require.Equal(t, late.OrderID, again.OrderID)
		require.Equal(t, 2, again.Quantity)
		require.Equal(t, late.ResolveBy, again.ResolveBy)
		release()
		servicetest.Eventually(t, func() bool {
			entries, err := lua.RecordOf(t.Context(), b.redis, product, "a")
			return err == nil && len(entries) == 1 && entries[0].Quantity == 2
		})
		require.Equal(t, 2, b.published(t, 2)[c.OrderID].Quantity)
	})
}

// An order may be as much younger than its id as a ticket lives: it is not called
// lost before its buyer's time is over.
func TestFateOfAnOldID(t *testing.T) {
	eachRedis(t, func(t *testing.T, url string) {
		tickets := setup(t, url, func(c *Config, _ *Deps) { c.TicketLife = time.Minute })
		plain := setup(t, url)
		tickets.preheat(t, 5)
		idOf := func(age time.Duration) (string, time.Time) {
			made := time.Now().Add(-age).Truncate(time.Millisecond)
			id, err := order.NewID(made, rand.Reader)
			require.NoError(t, err)
			return order.OwnID(id, product, "a"), made
		}
		for _, tc := range []struct {
			edge *bench
			age  time.Duration
			want order.State
		}{
			{tickets, 85 * time.Second, order.Queued},
			{tickets, 91 * time.Second, order.Rejected},
			{plain, 25 * time.Second, order.Queued},
			{plain, 31 * time.Second, order.Rejected},
		} {
			id, made := idOf(tc.age)
			f, err := tc.edge.Fate(t.Context(), product, "a", id)
			require.NoError(t, err)
			require.Equal(t, tc.want, f.State, tc.age)
			require.Equal(t, made.Add(30*time.Second+tc.edge.cfg.TicketLife), f.ResolveBy)
		}
		// Bought at the end of the ticket's life, it has all the time that was promised.
		id, _ := idOf(59 * time.Second)
		c := Click{ProductID: product, UserID: "a", Quantity: 1, OrderID: id, ActivityID: "double-11"}
		d := tickets.Reserve(t.Context(), c)
		require.Equal(t, lua.Reserved, d.Outcome)
		require.WithinDuration(t, time.Now().Add(30*time.Second), d.ResolveBy, wait)
		f, err := tickets.Fate(t.Context(), product, "a", id)
		require.NoError(t, err)
		require.WithinDuration(t, d.ResolveBy, f.ResolveBy, wait)
	})
}
