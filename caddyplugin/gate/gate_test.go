package gate

import (
	"context"
	"fmt"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/seckill-edge/seckill/internal/order"
	"github.com/seckill-edge/seckill/internal/servicetest"
	"github.com/seckill-edge/seckill/lua"
)

func TestSellsExactlyWhatThereIs(t *testing.T) {
	eachRedis(t, func(t *testing.T, url string) {
		b := setup(t, url, func(c *Config, _ *Deps) { c.Surplus = -1 }) // everybody is to hear from Redis
		a := b.preheat(t, 100)
		decisions := b.crowd(t, 1000)
		require.Equal(t, map[lua.Outcome]int{lua.Reserved: 100, lua.SoldOut: 900}, count(decisions))

		orders := b.published(t, 100)
		for i, d := range decisions {
			if d.Outcome == lua.Reserved {
				o := orders[d.OrderID]
				require.Equal(t, a.ID, o.ActivityID)
				require.Equal(t, product, o.ProductID)
				require.Equal(t, "buyer-"+strconv.Itoa(i), o.UserID)
				require.Equal(t, 1, o.Quantity)
				require.Equal(t, 1, o.Claim)
				require.True(t, d.ResolveBy.After(time.Now()))
			}
		}
		servicetest.Eventually(t, func() bool { return b.snapshot(t).Outbox == 0 },
			"confirmed orders must leave the outbox")
		s := b.snapshot(t)
		require.EqualValues(t, 0, s.Available)
		require.EqualValues(t, 100, s.Frozen)

		stats := b.Stats()
		require.EqualValues(t, 100, stats.Outcomes[lua.Reserved])
		require.EqualValues(t, 900, stats.Outcomes[lua.SoldOut])
		require.EqualValues(t, 100, stats.Forwarded)
		require.Zero(t, stats.Carried)
		require.Less(t, stats.Calls, uint64(1000), "clicks that wait together share a call")
	})
}

func TestSoldOutIsAnsweredWithoutRedis(t *testing.T) {
	eachRedis(t, func(t *testing.T, url string) {
		b := setup(t, url)
		b.preheat(t, 1)
		require.Equal(t, lua.Reserved, b.click(t, "a").Outcome)
		calls := b.Stats().Calls
		for range 100 {
			require.Equal(t, lua.SoldOut, b.click(t, "b").Outcome)
		}
		require.Equal(t, calls, b.Stats().Calls)
		require.EqualValues(t, 100, b.Stats().Local)
	})
}

func TestReturnedUnitsSellAgain(t *testing.T) {
	eachRedis(t, func(t *testing.T, url string) {
		b := setup(t, url)
		b.preheat(t, 1)
		d := b.click(t, "a")
		require.Equal(t, lua.Reserved, d.Outcome)
		require.Equal(t, lua.SoldOut, b.click(t, "b").Outcome)
		_, err := lua.Release(t.Context(), b.redis, product, lua.MarkRejected, []lua.Move{{UserID: "a", OrderID: d.OrderID}})
		require.NoError(t, err)
		servicetest.Eventually(t, func() bool { return b.click(t, "b").Outcome == lua.Reserved })
	})
}

func TestOneBuyerClicksManyTimesAtOnce(t *testing.T) {
	eachRedis(t, func(t *testing.T, url string) {
		b := setup(t, url)
		b.preheat(t, 100)
		var mu sync.Mutex
		var decisions []Decision
		var wg sync.WaitGroup
		for range 200 {
			wg.Go(func() {
				d := b.click(t, "greedy")
				mu.Lock()
				decisions = append(decisions, d)
				mu.Unlock()
			})
		}
		wg.Wait()
		require.Equal(t, map[lua.Outcome]int{lua.Reserved: 1, lua.AlreadyBought: 199}, count(decisions))
		id := decisions[0].OrderID
		for _, d := range decisions {
			require.Equal(t, id, d.OrderID, "who has bought is told his order")
		}
		require.EqualValues(t, 99, b.snapshot(t).Available)
	})
}

func TestRefusals(t *testing.T) {
	day := 24 * time.Hour
	for _, tc := range []struct {
		name     string
		change   func(*lua.Activity)
		quantity int
		want     lua.Outcome
		retry    time.Duration
	}{
		{"not started", func(a *lua.Activity) { a.Start, a.End = a.Start.Add(day), a.End.Add(day) }, 1, lua.NotStarted, day - time.Minute},
		{"starts in a moment", func(a *lua.Activity) { a.Start = time.Now().Add(20 * time.Second) }, 1, lua.NotStarted, 20 * time.Second},
		{"ended", func(a *lua.Activity) { a.Start, a.End = a.Start.Add(-day), a.End.Add(-day) }, 1, lua.Ended, 0},
		{"held", func(a *lua.Activity) { a.State = lua.OnHold }, 1, lua.Held, time.Second},
		{"closed", func(a *lua.Activity) { a.State = lua.Closed }, 1, lua.Ended, 0},
		{"more than the limit", func(*lua.Activity) {}, 2, lua.BadArguments, 0},
		{"fewer left", func(a *lua.Activity) { a.Limit = 20 }, 11, lua.TooFew, 0},
	} {
		t.Run(tc.name, func(t *testing.T) {
			eachRedis(t, func(t *testing.T, url string) {
				b := setup(t, url)
				b.preheat(t, 10, tc.change)
				d := b.Reserve(t.Context(), Click{ProductID: product, UserID: "a", Quantity: tc.quantity})
				require.Equal(t, tc.want, d.Outcome)
				require.InDelta(t, tc.retry, d.RetryAfter, float64(2*time.Second))
				require.EqualValues(t, 10, b.snapshot(t).Available)
			})
		})
	}
}

// An operator's hold and a stock that is being proven are two outcomes, from memory and
// from the script.
func TestHeldIsAnOperatorsWord(t *testing.T) {
	eachRedis(t, func(t *testing.T, url string) {
		b := setup(t, url)
		a := b.preheat(t, 10)
		require.Equal(t, lua.Reserved, b.click(t, "a").Outcome)
		steps := []struct {
			does func() error
			want lua.Outcome
		}{
			{func() error { _, _, err := lua.Hold(t.Context(), b.redis, a, ""); return err }, lua.Unavailable},
			{func() error { b.prove(t, a); return nil }, lua.Reserved},
			{func() error {
				_, _, err := lua.SetState(t.Context(), b.redis, product, a.ID, lua.OnHold)
				return err
			}, lua.Held},
		}
		for i, step := range steps {
			require.NoError(t, step.does())
			if step.want != lua.Reserved {
				require.Equal(t, step.want, b.click(t, fmt.Sprintf("script-%d", i)).Outcome)
			}
			outcome := func() lua.Outcome { o, _ := b.sales.all()[0].refusal(time.Now(), 1); return o }
			servicetest.Eventually(t, func() bool { return outcome() == step.want })
			require.Equal(t, step.want, b.click(t, fmt.Sprintf("memory-%d", i)).Outcome)
		}
	})
}

func TestUnknownProductsAreRememberedBriefly(t *testing.T) {
	eachRedis(t, func(t *testing.T, url string) {
		b := setup(t, url)
		require.Equal(t, lua.NoProduct, b.click(t, "a").Outcome)
		require.Equal(t, lua.NoProduct, b.click(t, "a").Outcome)
		_, outcome := b.View(t.Context(), product)
		require.Equal(t, lua.NoProduct, outcome)
		b.preheat(t, 1)
		servicetest.Eventually(t, func() bool { return b.click(t, "a").Outcome == lua.Reserved })
	})
}

func TestMadeUpProductsDoNotGrowMemory(t *testing.T) {
	eachRedis(t, func(t *testing.T, url string) {
		b := setup(t, url)
		for i := range sightsMax + 100 {
			b.Reserve(t.Context(), Click{ProductID: "p" + strconv.Itoa(i), UserID: "a", Quantity: 1})
		}
		require.LessOrEqual(t, len(b.sales.sights), sightsMax)
		require.Empty(t, b.sales.all())
	})
}

// A night has many sales: those that are over leave nothing behind, and the next
// one of the same product sells as soon as it is open.
func TestSalesThatAreOverCostNothing(t *testing.T) {
	eachRedis(t, func(t *testing.T, url string) {
		b := setup(t, url)
		a := b.preheat(t, 10)
		require.Equal(t, lua.Reserved, b.click(t, "a").Outcome)
		id := b.published(t, 1)
		for orderID := range id {
			_, err := lua.Settle(t.Context(), b.redis, product, lua.MarkSettled, []lua.Move{{UserID: "a", OrderID: orderID}})
			require.NoError(t, err)
		}
		_, _, err := lua.SetState(t.Context(), b.redis, product, a.ID, lua.Closed)
		require.NoError(t, err)
		servicetest.Eventually(t, func() bool { return len(b.sales.all()) == 0 })
		servicetest.Eventually(t, func() bool { // the word is taken back behind
			edges, err := lua.Presence(t.Context(), b.redis, product)
			return err == nil && len(edges) == 0
		})
		require.Equal(t, lua.Ended, b.click(t, "b").Outcome)
		require.Empty(t, b.sales.all())
		view, outcome := b.View(t.Context(), product)
		require.Equal(t, lua.Reserved, outcome)
		require.Equal(t, lua.Closed, view.State)

		b.preheat(t, 10, func(a *lua.Activity) { a.ID = "next" })
		servicetest.Eventually(t, func() bool { return b.click(t, "a").Outcome == lua.Reserved },
			"the buyer of the last sale may buy in the next")
	})
}

// A crowd that asks for made-up products does not keep a real one out.
func TestMadeUpProductsDoNotHideARealOne(t *testing.T) {
	eachRedis(t, func(t *testing.T, url string) {
		b := setup(t, url)
		b.preheat(t, 1)
		outcomes := make([]lua.Outcome, 500)
		var wg sync.WaitGroup
		for i := range outcomes {
			wg.Go(func() {
				outcomes[i] = b.Reserve(t.Context(), Click{ProductID: "p" + strconv.Itoa(i), UserID: "a", Quantity: 1}).Outcome
			})
		}
		require.Equal(t, lua.Reserved, b.click(t, "a").Outcome)
		wg.Wait()
		for _, o := range outcomes {
			require.Equal(t, lua.NoProduct, o)
		}
	})
}

func TestStartIsDecidedByRedisClock(t *testing.T) {
	eachRedis(t, func(t *testing.T, url string) {
		// This edge's clock is an hour slow: its view must follow Redis's.
		b := setup(t, url, func(_ *Config, d *Deps) {
			d.Now = func() time.Time { return time.Now().Add(-time.Hour) }
		})
		b.preheat(t, 1, func(a *lua.Activity) { a.Start = time.Now().Add(-time.Second) })
		require.Equal(t, lua.Reserved, b.click(t, "a").Outcome)
	})
}

func TestHoldAndReopenChangeTheEpoch(t *testing.T) {
	eachRedis(t, func(t *testing.T, url string) {
		b := setup(t, url)
		a := b.preheat(t, 10)
		require.Equal(t, lua.Reserved, b.click(t, "a").Outcome)
		_, _, err := lua.SetState(t.Context(), b.redis, product, a.ID, lua.OnHold)
		require.NoError(t, err)
		require.Equal(t, lua.Held, b.click(t, "b").Outcome, "the script refuses before the edge has seen the hold")
		_, _, err = lua.SetState(t.Context(), b.redis, product, a.ID, lua.Open)
		require.NoError(t, err)
		servicetest.Eventually(t, func() bool { return b.click(t, "b").Outcome == lua.Reserved })
	})
}

func TestAnEdgeThatMissedAReopeningRefusesNobody(t *testing.T) {
	eachRedis(t, func(t *testing.T, url string) {
		b := setup(t, url)
		a := b.preheat(t, 1000)
		require.Equal(t, lua.Reserved, b.click(t, "a").Outcome)
		var epoch int64
		for _, state := range []lua.ActivityState{lua.OnHold, lua.Open} {
			var err error
			epoch, _, err = lua.SetState(t.Context(), b.redis, product, a.ID, state)
			require.NoError(t, err)
		}
		s := b.sales.all()[0]
		servicetest.Eventually(t, func() bool { return s.view.Load().Epoch == epoch })
		stale := *s.view.Load()
		stale.Epoch -= 2 // as if the edge had not heard of it
		for i := range 100 {
			again := stale
			again.seen = time.Now() // a busy machine takes longer than a view is fresh
			s.view.Store(&again)
			require.Equal(t, lua.Reserved, b.click(t, "b"+strconv.Itoa(i)).Outcome)
		}
	})
}

func TestFate(t *testing.T) {
	eachRedis(t, func(t *testing.T, url string) {
		b := setup(t, url)
		b.preheat(t, 10)
		d := b.click(t, "a")
		move := []lua.Move{{UserID: "a", OrderID: d.OrderID}}
		fate := func() order.State {
			f, err := b.Fate(t.Context(), product, "a", d.OrderID)
			require.NoError(t, err)
			require.Equal(t, d.OrderID, f.OrderID)
			require.Equal(t, 1, f.Quantity)
			require.WithinDuration(t, d.ResolveBy, f.ResolveBy, time.Millisecond)
			return f.State
		}
		require.Equal(t, order.Queued, fate())
		_, err := lua.Settle(t.Context(), b.redis, product, lua.MarkSettled, move)
		require.NoError(t, err)
		require.Equal(t, order.Created, fate())

		for _, tc := range []struct{ user, id string }{
			{"b", d.OrderID}, {"a", "01arz3ndektsv4rrffq69g5fav"}, {"a", "nonsense"}, {"a", ""},
		} {
			_, err := b.Fate(t.Context(), product, tc.user, tc.id)
			require.ErrorIs(t, err, ErrNoOrder, "%v", tc)
		}
	})
}

func TestConfigNamesWhatIsWrong(t *testing.T) {
	for _, tc := range []struct {
		change func(*Config)
		want   string
	}{
		{func(c *Config) { c.Surplus = -2 }, "surplus -2: must be 1 to 1000, or -1"},
		{func(c *Config) { c.ReserveTimeout = time.Minute }, "reserve_timeout 1m0s: must be 10ms to 10s"},
		{func(c *Config) { c.ResolveWithin = time.Second }, "resolve_within 1s"},
		{func(c *Config) { c.Linger = time.Minute }, "linger 1m0s"},
		{func(c *Config) { c.ReserveTimeout = 8 * time.Second }, "reserve_timeout 8s: must be at most a quarter of resolve_within, which is 30s"},
		{func(c *Config) { c.OrdersPerMessage = 257 }, "orders_per_message 257: must be 1 to 256"},
		{func(c *Config) { c.Waiting = -1 }, "waiting -1"},
		{func(c *Config) { c.Buffer = -1 }, "buffer -1"},
	} {
		var c Config
		tc.change(&c)
		_, err := New(c, Deps{})
		require.ErrorContains(t, err, tc.want)
	}
}

func TestAfterCloseClicksAreUnavailable(t *testing.T) {
	eachRedis(t, func(t *testing.T, url string) {
		b := setup(t, url, func(c *Config, _ *Deps) { c.Linger = time.Second })
		b.preheat(t, 10)
		d := b.click(t, "a")
		require.Equal(t, lua.Reserved, d.Outcome)
		ctx, cancel := context.WithTimeout(t.Context(), servicetest.Patience())
		defer cancel()
		b.Close(ctx) // does not wait for the linger, and delivers what waits
		require.Contains(t, b.published(t, 1), d.OrderID)
		require.Zero(t, b.snapshot(t).Outbox)
		require.Equal(t, lua.Unavailable, b.click(t, "b").Outcome)
	})
}
