package lua

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/seckill-edge/seckill/internal/order"
)

func TestPreheat(t *testing.T) {
	onEach(t, func(t *testing.T, c redis.UniversalClient) {
		ctx := t.Context()
		a := sale(10, 2)
		load(t, c, a)
		s := audit(t, c)
		require.NotZero(t, s.Now)
		a.State, a.Epoch, a.RunID = Open, 1, s.RunID
		require.Equal(t, Snapshot{Activity: a, Now: s.Now, Available: 10, ServerRun: s.RunID}, s)
		server := s.ServerRun

		var id ids
		one := id.next()
		reserve(t, c, Request{OrderID: one, UserID: "u", Quantity: 2})
		before := dump(t, c)
		again := sale(99, 9)
		p, err := Preheat(ctx, c, again)
		require.NoError(t, err)
		require.Equal(t, AlreadyThere, p)
		next := sale(7, 1)
		next.ID, next.State = "a-2", OnHold
		refused := func(why string) {
			t.Helper()
			before := dump(t, c)
			p, err := Preheat(ctx, c, next)
			require.NoError(t, err)
			require.Equal(t, Refused, p, why)
			require.Equal(t, before, dump(t, c), why)
		}
		refused("the predecessor is open")
		require.Equal(t, before, dump(t, c))
		_, _, err = SetState(ctx, c, product, "a-1", OnHold)
		require.NoError(t, err)
		refused("the predecessor is on hold")
		_, _, err = SetState(ctx, c, product, "a-1", Closed)
		require.NoError(t, err)
		refused("units are frozen and the outbox is not empty")
		require.NoError(t, Confirm(ctx, c, product, []string{one}))
		refused("units are frozen")
		change(t, c, MarkPaid, Move{UserID: "u", OrderID: one})
		require.NoError(t, c.HSet(ctx, KeysOf(product).Outbox, one, "u").Err())
		refused("the outbox is not empty")
		require.NoError(t, Confirm(ctx, c, product, []string{one}))

		load(t, c, next)
		s = audit(t, c)
		next.Epoch = 4
		require.Equal(t, Snapshot{Activity: next, Now: s.Now, Available: 7, ServerRun: server}, s, "held: no run id yet")
	})
}

// TestPreheatLeftovers: keys without an activity may be what a sale left.
func TestPreheatLeftovers(t *testing.T) {
	onEach(t, func(t *testing.T, c redis.UniversalClient) {
		k := KeysOf(product)
		for _, key := range k.list() {
			require.NoError(t, c.FlushDB(t.Context()).Err())
			switch key {
			case k.Activity, k.Users, k.Outbox:
				require.NoError(t, c.HSet(t.Context(), key, "f", "v").Err())
			default:
				require.NoError(t, c.Set(t.Context(), key, "0", 0).Err())
			}
			before := dump(t, c)
			p, err := Preheat(t.Context(), c, sale(1, 1))
			require.NoError(t, err)
			require.Equal(t, Refused, p, key)
			require.Equal(t, before, dump(t, c))
		}
	})
}

func TestPreheatArguments(t *testing.T) {
	c := connect(t, "redis://127.0.0.1:1")
	for want, spoil := range map[string]func(*Activity){
		"product id":          func(a *Activity) { a.ProductID = "a b" },
		"activity id":         func(a *Activity) { a.ID = strings.Repeat("a", 65) },
		"start":               func(a *Activity) { a.End = a.Start },
		"years 1970 to 9999":  func(a *Activity) { a.Start = time.UnixMilli(-1) },
		"end":                 func(a *Activity) { a.End = order.LastTime.Add(time.Millisecond) },
		"total 0":             func(a *Activity) { a.Total = 0 },
		"total 1000000001":    func(a *Activity) { a.Total = 1_000_000_001 },
		"limit per user 0":    func(a *Activity) { a.Limit = 0 },
		"limit per user 1000": func(a *Activity) { a.Limit = 1000 },
		"pay window -1s":      func(a *Activity) { a.PayWindow = -time.Second },
		`state "shut"`:        func(a *Activity) { a.State = "shut" },
	} {
		a := sale(10, 1)
		spoil(&a)
		_, err := Preheat(t.Context(), c, a)
		require.ErrorContains(t, err, want)
	}
}

func TestSetState(t *testing.T) {
	onEach(t, func(t *testing.T, c redis.UniversalClient) {
		ctx := t.Context()
		load(t, c, sale(10, 1))
		for _, step := range []struct {
			id      string
			to      ActivityState
			epoch   int64
			changed bool
			err     error
		}{
			{"a-2", OnHold, 0, false, ErrOtherActivity},
			{"a-1", Open, 1, false, nil},
			{"a-1", OnHold, 2, true, nil},
			{"a-1", OnHold, 3, false, nil},
			{"a-1", Open, 4, true, nil},
			{"a-1", Closed, 5, true, nil},
			{"a-1", Closed, 5, false, nil},
			{"a-1", Open, 0, false, ErrClosed},
			{"a-1", OnHold, 0, false, ErrClosed},
		} {
			epoch, changed, err := SetState(ctx, c, product, step.id, step.to)
			require.ErrorIs(t, err, step.err)
			require.Equal(t, step.epoch, epoch)
			require.Equal(t, step.changed, changed)
		}
		require.EqualValues(t, 5, audit(t, c).Epoch)
		_, _, err := SetState(ctx, c, product, "a-1", "shut")
		require.ErrorContains(t, err, `want "open", "held" or "closed"`)
	})
}

// An opening that began before a hold, even one of a held activity, is refused.
func TestOpenAt(t *testing.T) {
	onEach(t, func(t *testing.T, c redis.UniversalClient) {
		ctx := t.Context()
		load(t, c, sale(10, 1))
		before, _, err := SetState(ctx, c, product, "a-1", OnHold)
		require.NoError(t, err)
		now, changed, err := SetState(ctx, c, product, "a-1", OnHold)
		require.NoError(t, err)
		require.False(t, changed)
		require.Equal(t, before+1, now)

		_, _, err = OpenAt(ctx, c, product, "a-1", before)
		require.ErrorIs(t, err, ErrOvertaken)
		require.Equal(t, OnHold, audit(t, c).State)
		_, _, err = OpenAt(ctx, c, product, "a-2", now)
		require.ErrorIs(t, err, ErrOtherActivity)
		epoch, changed, err := OpenAt(ctx, c, product, "a-1", now)
		require.NoError(t, err)
		require.True(t, changed)
		require.Equal(t, now+1, epoch)
		epoch, changed, err = OpenAt(ctx, c, product, "a-1", before)
		require.NoError(t, err, "it is open, whoever has done it")
		require.False(t, changed)
		require.Equal(t, now+1, epoch)

		// While the stock is proven the epoch is the prover's.
		proving, _, err := Hold(ctx, c, sale(10, 1), "")
		require.NoError(t, err)
		epoch, _, err = SetState(ctx, c, product, "a-1", OnHold)
		require.NoError(t, err)
		require.Equal(t, proving, epoch)
		_, _, err = OpenAt(ctx, c, product, "a-1", proving)
		require.ErrorIs(t, err, ErrUnproven)
	})
}

// TestEpochIsExact: numbers are written in digits, however large.
func TestEpochIsExact(t *testing.T) {
	onEach(t, func(t *testing.T, c redis.UniversalClient) {
		ctx := context.Background()
		load(t, c, sale(10, 1))
		require.NoError(t, c.HSet(ctx, KeysOf(product).Activity, "epoch", "123456789012344").Err())
		epoch, _, err := SetState(ctx, c, product, "a-1", OnHold)
		require.NoError(t, err)
		require.EqualValues(t, 123456789012345, epoch)
		require.EqualValues(t, 123456789012345, audit(t, c).Epoch)
	})
}
