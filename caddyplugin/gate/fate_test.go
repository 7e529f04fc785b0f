package gate

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/seckill-edge/seckill/internal/order"
	"github.com/seckill-edge/seckill/internal/servicetest"
	"github.com/seckill-edge/seckill/lua"
)

// TestFates: every mark of a record is told for what it is.
func TestFates(t *testing.T) {
	eachRedis(t, func(t *testing.T, url string) {
		b := setup(t, url)
		b.preheat(t, 100, func(a *lua.Activity) { a.PayWindow = 15 * time.Minute })
		for mark, want := range standings {
			user := "user " + string(mark)
			d := b.click(t, user)
			require.Equal(t, lua.Reserved, d.Outcome)
			moves := []lua.Move{{UserID: user, OrderID: d.OrderID}}
			var reason order.Reason
			switch mark {
			case lua.MarkQueued:
			case lua.MarkCreated, lua.MarkSettled, lua.MarkPaid:
				_, err := lua.Settle(t.Context(), b.redis, product, mark, moves)
				require.NoError(t, err)
			default:
				if mark == lua.MarkRejected {
					reason = order.ReasonOversold
				}
				moves[0].Reason = reason
				_, err := lua.Release(t.Context(), b.redis, product, mark, moves)
				require.NoError(t, err)
			}
			f, err := b.Fate(t.Context(), product, user, d.OrderID)
			require.NoError(t, err)
			require.Equal(t, d.OrderID, f.OrderID)
			require.Equal(t, want, standing{f.State, f.Final})
			require.Equal(t, reason, f.Reason)
			require.Equal(t, 1, f.Quantity)
			require.Equal(t, want.final, f.RetryAfter == 0)
			if mark == lua.MarkCreated {
				require.WithinDuration(t, time.Now().Add(15*time.Minute), f.PayBy, time.Minute)
			} else {
				require.Zero(t, f.PayBy)
			}
			_, err = b.Fate(t.Context(), product, "mallory", d.OrderID)
			require.ErrorIs(t, err, ErrNoOrder)
		}
	})
}

// TestFatesAreReadTogether: who asks at once is answered by few reads.
func TestFatesAreReadTogether(t *testing.T) {
	eachRedis(t, func(t *testing.T, url string) {
		h := &hanging{}
		b := setup(t, url, func(_ *Config, d *Deps) { d.Redis.AddHook(h) })
		b.preheat(t, 1000)
		decisions := b.crowd(t, 600)
		before := b.Stats().Reads
		release := h.hang("hmget")
		var wg sync.WaitGroup
		errs := make([]error, len(decisions))
		for i, d := range decisions {
			wg.Go(func() {
				f, err := b.Fate(context.Background(), product, fmt.Sprintf("buyer-%d", i), d.OrderID)
				if err == nil && (f.OrderID != d.OrderID || f.State != order.Queued) {
					err = fmt.Errorf("%v is not the fate of %s", f, d.OrderID)
				}
				errs[i] = err
			})
		}
		servicetest.Eventually(t, func() bool {
			b.records.mu.Lock()
			defer b.records.mu.Unlock()
			line := b.records.lines[product]
			return line != nil && len(line.waiting)+len(line.flight) == len(decisions)
		})
		release()
		wg.Wait()
		require.NoError(t, errors.Join(errs...))
		require.LessOrEqual(t, b.Stats().Reads-before, uint64(4), "one on its way, and the rest by 256")
		servicetest.Eventually(t, func() bool {
			b.records.mu.Lock()
			defer b.records.mu.Unlock()
			return len(b.records.lines) == 0
		}, "nobody waits, so nobody works")
	})
}

// TestFateWithoutRedis: nobody waits longer than he is to, too many are turned
// away, and nobody is told that his order does not exist.
func TestFateWithoutRedis(t *testing.T) {
	eachRedis(t, func(t *testing.T, url string) {
		h := &hanging{}
		b := setup(t, url, func(c *Config, d *Deps) {
			c.ReserveTimeout, c.Waiting = servicetest.Scaled(50*time.Millisecond), 8
			d.Redis.AddHook(h)
		})
		b.preheat(t, 10)
		var d Decision
		servicetest.Eventually(t, func() bool { d = b.click(t, "a"); return d.Outcome == lua.Reserved })
		release := h.hang("hmget")
		defer release()
		var wg sync.WaitGroup
		errs := make([]error, 40)
		for i := range errs {
			wg.Go(func() { _, errs[i] = b.Fate(context.Background(), product, "a", d.OrderID) })
		}
		wg.Wait() // before Redis answers
		busy, slow := 0, 0
		for _, err := range errs {
			require.ErrorIs(t, err, ErrUnavailable)
			if errors.Is(err, errReadBusy) {
				busy++
			}
			if errors.Is(err, errReadSlow) {
				slow++
			}
		}
		require.Equal(t, len(errs), busy+slow)
		require.GreaterOrEqual(t, slow, 8)
		release()
		servicetest.Eventually(t, func() bool {
			f, err := b.Fate(t.Context(), product, "a", d.OrderID)
			return err == nil && f.State == order.Queued
		})
	})
}

// shelf is an archive of one order.
type shelf struct {
	mu    sync.Mutex
	id    string
	order Archived
	err   error
	hold  chan struct{} // if set, answers wait for it
	asked int
}

func (s *shelf) Order(ctx context.Context, id string) (Archived, bool, error) {
	s.mu.Lock()
	s.asked++
	hold := s.hold
	s.mu.Unlock()
	if hold != nil {
		select {
		case <-hold:
		case <-ctx.Done():
			return Archived{}, false, ctx.Err()
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.order, s.err == nil && id == s.id, s.err
}

// TestArchivedFate: what Redis no longer has is told by who stored it, to its
// buyer only; while it cannot be asked, nobody is told "no such order".
func TestArchivedFate(t *testing.T) {
	eachRedis(t, func(t *testing.T, url string) {
		old, err := order.NewID(time.Now().Add(-time.Hour), new(noise))
		require.NoError(t, err)
		s := &shelf{id: old, order: Archived{ProductID: product, UserID: "a", Quantity: 3, State: order.Rejected, Reason: order.ReasonLost}}
		b := setup(t, url, func(_ *Config, d *Deps) { d.Archive = s })
		fate := func(user, product, id string) (Fate, error) { return b.Fate(t.Context(), product, user, id) }
		want := Fate{OrderID: old, State: order.Rejected, Reason: order.ReasonLost, Quantity: 3, Final: true}

		check := func(when string) {
			t.Helper()
			f, err := fate("a", product, old)
			require.NoError(t, err, when)
			f.ResolveBy = time.Time{}
			require.Equal(t, want, f, when)
			for _, c := range [][3]string{{"b", product, old}, {"a", "2002", old}, {"a", product, "01kb7q3x5e8g9h0jkmnpqrstvw"}} {
				_, err := fate(c[0], c[1], c[2])
				require.ErrorIs(t, err, ErrNoOrder, when)
			}
		}
		check("no activity in Redis")
		servicetest.Eventually(t, func() bool { return len(b.sales.all()) == 0 })
		b.preheat(t, 1, func(a *lua.Activity) { a.State = lua.OnHold })
		servicetest.Eventually(t, func() bool { return b.click(t, "c").Outcome == lua.Held && len(b.sales.all()) == 1 })
		check("the next activity in Redis, not opened yet")
		_, _, err = lua.SetState(t.Context(), b.redis, product, "double-11", lua.Open)
		require.NoError(t, err)
		servicetest.Eventually(t, func() bool { return b.click(t, "c").Outcome == lua.Reserved })
		check("the next activity in Redis")

		future, err := order.NewID(time.Now().Add(time.Hour), new(noise))
		require.NoError(t, err)
		asked := s.asked
		_, err = fate("a", product, future)
		require.ErrorIs(t, err, ErrNoOrder)
		require.Equal(t, asked, s.asked, "an id that nobody can have made is asked of nobody")

		s.mu.Lock()
		s.order.State, s.order.PayBy = order.Created, time.Now().Add(time.Minute)
		s.mu.Unlock()
		f, err := fate("a", product, old)
		require.NoError(t, err)
		require.False(t, f.Final)
		require.Equal(t, s.order.PayBy, f.PayBy)
		require.GreaterOrEqual(t, f.RetryAfter, 4*time.Second)

		s.mu.Lock()
		s.err = errors.New("it burns")
		s.mu.Unlock()
		_, err = fate("a", product, old)
		require.ErrorIs(t, err, ErrUnavailable)

		// No more questions at once than it is to bear.
		hold := make(chan struct{})
		s.mu.Lock()
		s.err, s.hold, s.asked = nil, hold, 0
		s.mu.Unlock()
		var wg sync.WaitGroup
		defer wg.Wait()
		defer close(hold)
		for range archiveCalls {
			wg.Go(func() { _, _ = b.Fate(context.Background(), product, "a", old) })
		}
		servicetest.Eventually(t, func() bool { return len(b.archiveSlots) == archiveCalls })
		_, err = fate("a", product, old)
		require.ErrorIs(t, err, ErrUnavailable)
	})
}

// TestFateWhileUnproven: a Redis that may have forgotten an order says nothing of
// it.
func TestFateWhileUnproven(t *testing.T) {
	eachRedis(t, func(t *testing.T, url string) {
		b := setup(t, url)
		a := b.preheat(t, 10)
		d := b.click(t, "a")
		require.Equal(t, lua.Reserved, d.Outcome)
		require.NoError(t, b.redis.Del(t.Context(), lua.KeysOf(product).Users).Err())
		_, _, err := lua.Hold(t.Context(), b.redis, a, "")
		require.NoError(t, err)
		_, err = b.Fate(t.Context(), product, "a", d.OrderID)
		require.ErrorIs(t, err, ErrUnavailable)
	})
}

// noise is enough of it for one id.
type noise struct{}

func (*noise) Read(p []byte) (int, error) { return len(p), nil }

func TestPace(t *testing.T) {
	for age, want := range map[time.Duration][2]time.Duration{
		-time.Minute:     {time.Second, time.Second},
		0:                {time.Second, time.Second},
		10 * time.Second: {2 * time.Second, 2 * time.Second},
		15 * time.Second: {2 * time.Second, 3 * time.Second},
		time.Hour:        {4 * time.Second, 5 * time.Second},
	} {
		seen := map[time.Duration]bool{}
		for range 200 {
			f := Fate{}
			f.pace(age)
			seen[f.RetryAfter] = true
			require.GreaterOrEqual(t, f.RetryAfter, want[0], age)
			require.LessOrEqual(t, f.RetryAfter, want[1], age)
		}
		require.Equal(t, want[0] != want[1], len(seen) > 1, age)
		f := Fate{Final: true}
		f.pace(age)
		require.Zero(t, f.RetryAfter)
	}
}
