package lua

import (
	"strings"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"
)

func TestReserve(t *testing.T) {
	var id ids
	a, b, c := id.next(), id.next(), id.next()
	for name, tc := range map[string]struct {
		total int64
		limit int
		reqs  []Request
		want  []Result
		left  int64
	}{
		"one unit": {10, 1, []Request{{a, "u", 1}}, []Result{{Reserved, "", 1}}, 9},
		"the same user twice in a batch": {10, 1, []Request{{a, "u", 1}, {b, "u", 1}},
			[]Result{{Reserved, "", 1}, {AlreadyBought, a, 0}}, 9},
		"the same order id twice in a batch": {10, 2, []Request{{a, "u", 1}, {a, "u", 1}},
			[]Result{{Reserved, "", 1}, {Reserved, "", 1}}, 9},
		"the last unit": {1, 1, []Request{{a, "u", 1}, {b, "v", 1}},
			[]Result{{Reserved, "", 1}, {SoldOut, "", 0}}, 0},
		"what does not fit does not keep a smaller one from fitting": {3, 5, []Request{{a, "u", 2}, {b, "v", 2}, {c, "w", 1}},
			[]Result{{Reserved, "", 1}, {TooFew, "", 0}, {Reserved, "", 1}}, 0},
		"the limit counts units, not orders": {10, 3, []Request{{a, "u", 2}, {b, "u", 2}, {c, "u", 1}},
			[]Result{{Reserved, "", 1}, {AlreadyBought, a, 0}, {Reserved, "", 2}}, 7},
		"the limit is named before the stock": {1, 1, []Request{{a, "u", 1}, {b, "u", 1}},
			[]Result{{Reserved, "", 1}, {AlreadyBought, a, 0}}, 0},
		"999 units": {1000, 999, []Request{{a, "u", 999}, {b, "v", 999}},
			[]Result{{Reserved, "", 1}, {TooFew, "", 0}}, 1},
		"bad quantities": {10, 5, []Request{{a, "u", 0}, {a, "u", -5}, {a, "u", 1000}, {a, "u", 6}},
			[]Result{{BadArguments, "", 0}, {BadArguments, "", 0}, {BadArguments, "", 0}, {BadArguments, "", 0}}, 10},
		"bad order ids": {10, 5, []Request{{"", "u", 1}, {"x", "u", 1}, {strings.ToUpper(a), "u", 1}, {a + "0", "u", 1}, {"8" + a[1:], "u", 1}, {a[:25] + ":", "u", 1}},
			[]Result{{BadArguments, "", 0}, {BadArguments, "", 0}, {BadArguments, "", 0}, {BadArguments, "", 0}, {BadArguments, "", 0}, {BadArguments, "", 0}}, 10},
		"bad user ids": {10, 5, []Request{{a, "", 1}, {a, strings.Repeat("u", 129), 1}, {a, "a\tb", 1}, {a, "a\x00", 1}},
			[]Result{{BadArguments, "", 0}, {BadArguments, "", 0}, {BadArguments, "", 0}, {BadArguments, "", 0}}, 10},
		"odd user ids": {10, 5, []Request{{a, "q:,{}*%1", 1}, {b, strings.Repeat("u", 128), 1}, {c, "用户", 1}},
			[]Result{{Reserved, "", 1}, {Reserved, "", 1}, {Reserved, "", 1}}, 7},
	} {
		t.Run(name, func(t *testing.T) {
			onEach(t, func(t *testing.T, c redis.UniversalClient) {
				load(t, c, sale(tc.total, tc.limit))
				before := time.Now()
				b, err := Reserve(t.Context(), c, product, 1, tc.reqs)
				require.NoError(t, err)
				require.Equal(t, tc.want, b.Results)
				require.Equal(t, "a-1", b.ActivityID)
				require.EqualValues(t, 1, b.Epoch)
				require.Equal(t, Open, b.State)
				require.Equal(t, tc.left, b.Available)
				require.WithinDuration(t, before, b.At, 5*time.Second)
				s := audit(t, c)
				require.False(t, s.Damaged)
				require.Equal(t, tc.left, s.Available)
				require.Equal(t, tc.total-tc.left, s.Frozen)
			})
		})
	}
}

func TestReserveKeepsWhatItAnswered(t *testing.T) {
	onEach(t, func(t *testing.T, c redis.UniversalClient) {
		var id ids
		load(t, c, sale(10, 5))
		first, second := id.next(), id.next()
		b, err := Reserve(t.Context(), c, product, 1, []Request{{first, "u", 2}, {second, "u", 3}})
		require.NoError(t, err)
		entries, err := RecordOf(t.Context(), c, product, "u")
		require.NoError(t, err)
		require.Equal(t, []Entry{{MarkQueued, first, 2, 1, b.At}, {MarkQueued, second, 3, 2, b.At}}, entries)
		outbox, next, err := OutboxScan(t.Context(), c, product, 0, 100)
		require.NoError(t, err)
		require.Zero(t, next)
		require.Equal(t, map[string]string{first: "u", second: "u"}, outbox)
		s := audit(t, c)
		require.EqualValues(t, 2, s.Outbox)
		require.EqualValues(t, 1, s.Users)
	})
}

// TestReserveRepeat: the same order id has no second effect, in whatever state
// the order and the activity are.
func TestReserveRepeat(t *testing.T) {
	onEach(t, func(t *testing.T, c redis.UniversalClient) {
		var id ids
		load(t, c, sale(3, 3))
		req := Request{id.next(), "u", 1}
		other := Request{id.next(), "u", 1}
		require.Equal(t, []Result{{Reserved, "", 1}, {Reserved, "", 2}}, reserve(t, c, req, other))
		repeat := func(msg string, epoch int64) {
			t.Helper()
			before := dump(t, c)
			b, err := Reserve(t.Context(), c, product, epoch, []Request{other, req})
			require.NoError(t, err, msg)
			require.Equal(t, []Result{{Reserved, "", 2}, {Reserved, "", 1}}, b.Results, msg)
			require.Equal(t, before, dump(t, c), msg)
		}
		repeat("queued", 1)
		repeat("stale epoch", 0)
		_, err := Settle(t.Context(), c, product, MarkCreated, []Move{{"u", req.OrderID}})
		require.NoError(t, err)
		repeat("created", 1)
		_, err = Release(t.Context(), c, product, MarkExpired, []Move{{"u", req.OrderID}})
		require.NoError(t, err)
		repeat("given back", 1)
		_, _, err = SetState(t.Context(), c, product, "a-1", OnHold)
		require.NoError(t, err)
		repeat("held", 2)
		_, _, err = SetState(t.Context(), c, product, "a-1", Closed)
		require.NoError(t, err)
		repeat("closed", 3)
		require.NoError(t, c.Del(t.Context(), KeysOf(product).Activity).Err())
		repeat("activity gone", 3)
	})
}

func TestReserveRefusals(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*Activity)
		epoch  int64
		want   Outcome
	}{
		"not started": {func(a *Activity) { a.Start = time.Now().Add(time.Minute) }, 1, NotStarted},
		"ended":       {func(a *Activity) { a.End = time.Now().Add(-time.Minute) }, 1, Ended},
		"closed":      {func(a *Activity) { a.State = Closed }, 1, Ended},
		"held":        {func(a *Activity) { a.State = OnHold }, 1, Held},
		"stale epoch": {func(*Activity) {}, 0, Held},
		"next epoch":  {func(*Activity) {}, 2, Held},
		"held before not started": {func(a *Activity) {
			a.State, a.Start = OnHold, time.Now().Add(time.Minute)
		}, 1, Held},
	} {
		t.Run(name, func(t *testing.T) {
			onEach(t, func(t *testing.T, c redis.UniversalClient) {
				var id ids
				a := sale(10, 1)
				tc.change(&a)
				load(t, c, a)
				before := dump(t, c)
				b, err := Reserve(t.Context(), c, product, tc.epoch, []Request{{id.next(), "u", 1}, {id.next(), "u", 2}})
				require.NoError(t, err)
				require.Equal(t, []Outcome{tc.want, BadArguments}, outcomes(b.Results))
				require.EqualValues(t, 10, b.Available)
				require.Equal(t, before, dump(t, c))
			})
		})
	}
}

func TestReserveWithoutActivity(t *testing.T) {
	onEach(t, func(t *testing.T, c redis.UniversalClient) {
		var id ids
		b, err := Reserve(t.Context(), c, product, 1, []Request{{id.next(), "u", 1}, {id.next(), "u", 0}, {id.next(), "u", 999}})
		require.NoError(t, err)
		require.Equal(t, []Outcome{NoProduct, BadArguments, NoProduct}, outcomes(b.Results))
		require.Empty(t, b.ActivityID)
		require.Zero(t, b.Epoch)
		require.Empty(t, b.State)
		require.EqualValues(t, -1, b.Available)
		require.Empty(t, dump(t, c))
		_, found, err := Audit(t.Context(), c, product)
		require.NoError(t, err)
		require.False(t, found)
	})
}

// TestReserveWindow looks at the very millisecond of start and end.
func TestReserveWindow(t *testing.T) {
	m := miniredis.RunT(t)
	c := connect(t, "redis://"+m.Addr())
	a := sale(10, 1)
	load(t, c, a)
	var id ids
	for _, tc := range []struct {
		now  time.Time
		want Outcome
	}{
		{a.Start.Add(-time.Microsecond), NotStarted},
		{a.Start, Reserved},
		{a.End.Add(-time.Microsecond), Reserved},
		{a.End, Ended},
		{a.End.Add(time.Hour), Ended},
	} {
		m.SetTime(tc.now)
		one := id.next()
		require.Equal(t, []Outcome{tc.want}, outcomes(reserve(t, c, Request{one, "user-" + one, 1})), tc.now)
	}
}

func TestReserveBounds(t *testing.T) {
	onEach(t, func(t *testing.T, c redis.UniversalClient) {
		load(t, c, sale(1_000_000_000, 999))
		var id ids
		reqs := make([]Request, MaxPerCall+1)
		for i := range reqs {
			one := id.next()
			reqs[i] = Request{one, strings.Repeat("u", 100) + one, 999}
		}
		_, err := Reserve(t.Context(), c, product, 1, reqs)
		require.ErrorContains(t, err, "257 requests, want 1 to 256")
		_, err = Reserve(t.Context(), c, product, 1, nil)
		require.ErrorContains(t, err, "0 requests")
		_, err = Reserve(t.Context(), c, "a b", 1, reqs[:1])
		require.ErrorContains(t, err, "product id")
		for _, r := range reserve(t, c, reqs[:MaxPerCall]...) {
			require.Equal(t, Result{Outcome: Reserved, Claim: 1}, r)
		}
		s := audit(t, c)
		require.EqualValues(t, 256*999, s.Frozen)
		require.EqualValues(t, 1_000_000_000-256*999, s.Available)
		require.False(t, s.Damaged)
	})
}

// TestReserveManyOrders: one buyer takes every claim there is, one unit each.
func TestReserveManyOrders(t *testing.T) {
	onEach(t, func(t *testing.T, c redis.UniversalClient) {
		load(t, c, sale(2000, 999))
		var id ids
		claim, last := 0, ""
		for claim < 999 {
			reqs := make([]Request, min(MaxPerCall, 999-claim))
			for i := range reqs {
				reqs[i] = Request{id.next(), "u", 1}
			}
			for i, r := range reserve(t, c, reqs...) {
				claim++
				require.Equal(t, Result{Outcome: Reserved, Claim: claim}, r)
				last = reqs[i].OrderID
			}
		}
		require.Equal(t, []Result{{AlreadyBought, last, 0}}, reserve(t, c, Request{id.next(), "u", 1}))
	})
}
