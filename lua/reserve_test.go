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
		"one unit": {10, 1, []Request{{OrderID: a, UserID: "u", Quantity: 1}}, []Result{{Outcome: Reserved, OrderID: "", Claim: 1}}, 9},
		"the same user twice in a batch": {
			10, 1,
			[]Request{{OrderID: a, UserID: "u", Quantity: 1}, {OrderID: b, UserID: "u", Quantity: 1}},
			[]Result{{Outcome: Reserved, OrderID: "", Claim: 1}, {Outcome: AlreadyBought, OrderID: a, Claim: 0}},
			9,
		},
		"the same order id twice in a batch": {
			10, 2,
			[]Request{{OrderID: a, UserID: "u", Quantity: 1}, {OrderID: a, UserID: "u", Quantity: 1}},
			[]Result{
				{Outcome: Reserved, OrderID: "", Claim: 1},
				{Outcome: Reserved, OrderID: "", Claim: 1, Earlier: &Entry{Mark: MarkQueued, OrderID: a, Quantity: 1, Claim: 1}},
			},
			9,
		},
		"the last unit": {
			1, 1,
			[]Request{{OrderID: a, UserID: "u", Quantity: 1}, {OrderID: b, UserID: "v", Quantity: 1}},
			[]Result{{Outcome: Reserved, OrderID: "", Claim: 1}, {Outcome: SoldOut, OrderID: "", Claim: 0}},
			0,
		},
		"what does not fit does not keep a smaller one from fitting": {
			3, 5,
			[]Request{{OrderID: a, UserID: "u", Quantity: 2}, {OrderID: b, UserID: "v", Quantity: 2}, {OrderID: c, UserID: "w", Quantity: 1}},
			[]Result{{Outcome: Reserved, OrderID: "", Claim: 1}, {Outcome: TooFew, OrderID: "", Claim: 0}, {Outcome: Reserved, OrderID: "", Claim: 1}},
			0,
		},
		"the limit counts units, not orders": {
			10, 3,
			[]Request{{OrderID: a, UserID: "u", Quantity: 2}, {OrderID: b, UserID: "u", Quantity: 2}, {OrderID: c, UserID: "u", Quantity: 1}},
			[]Result{{Outcome: Reserved, OrderID: "", Claim: 1}, {Outcome: AlreadyBought, OrderID: a, Claim: 0}, {Outcome: Reserved, OrderID: "", Claim: 2}},
			7,
		},
		"the limit is named before the stock": {
			1, 1,
			[]Request{{OrderID: a, UserID: "u", Quantity: 1}, {OrderID: b, UserID: "u", Quantity: 1}},
			[]Result{{Outcome: Reserved, OrderID: "", Claim: 1}, {Outcome: AlreadyBought, OrderID: a, Claim: 0}},
			0,
		},
		"999 units": {
			1000, 999,
			[]Request{{OrderID: a, UserID: "u", Quantity: 999}, {OrderID: b, UserID: "v", Quantity: 999}},
			[]Result{{Outcome: Reserved, OrderID: "", Claim: 1}, {Outcome: TooFew, OrderID: "", Claim: 0}},
			1,
		},
		"bad quantities": {
			10, 5,
			[]Request{{OrderID: a, UserID: "u", Quantity: 0}, {OrderID: a, UserID: "u", Quantity: -5}, {OrderID: a, UserID: "u", Quantity: 1000}, {OrderID: a, UserID: "u", Quantity: 6}},
			[]Result{{Outcome: BadArguments, OrderID: "", Claim: 0}, {Outcome: BadArguments, OrderID: "", Claim: 0}, {Outcome: BadArguments, OrderID: "", Claim: 0}, {Outcome: BadArguments, OrderID: "", Claim: 0}},
			10,
		},
		"bad order ids": {
			10, 5,
			[]Request{{OrderID: "", UserID: "u", Quantity: 1}, {OrderID: "x", UserID: "u", Quantity: 1}, {OrderID: strings.ToUpper(a), UserID: "u", Quantity: 1}, {OrderID: a + "0", UserID: "u", Quantity: 1}, {OrderID: "8" + a[1:], UserID: "u", Quantity: 1}, {OrderID: a[:25] + ":", UserID: "u", Quantity: 1}},
			[]Result{{Outcome: BadArguments, OrderID: "", Claim: 0}, {Outcome: BadArguments, OrderID: "", Claim: 0}, {Outcome: BadArguments, OrderID: "", Claim: 0}, {Outcome: BadArguments, OrderID: "", Claim: 0}, {Outcome: BadArguments, OrderID: "", Claim: 0}, {Outcome: BadArguments, OrderID: "", Claim: 0}},
			10,
		},
		"bad user ids": {
			10, 5,
			[]Request{{OrderID: a, UserID: "", Quantity: 1}, {OrderID: a, UserID: strings.Repeat("u", 129), Quantity: 1}, {OrderID: a, UserID: "a\tb", Quantity: 1}, {OrderID: a, UserID: "a\x00", Quantity: 1}},
			[]Result{{Outcome: BadArguments, OrderID: "", Claim: 0}, {Outcome: BadArguments, OrderID: "", Claim: 0}, {Outcome: BadArguments, OrderID: "", Claim: 0}, {Outcome: BadArguments, OrderID: "", Claim: 0}},
			10,
		},
		"odd user ids": {
			10, 5,
			[]Request{{OrderID: a, UserID: "q:,{}*%1", Quantity: 1}, {OrderID: b, UserID: strings.Repeat("u", 128), Quantity: 1}, {OrderID: c, UserID: "用户", Quantity: 1}},
			[]Result{{Outcome: Reserved, OrderID: "", Claim: 1}, {Outcome: Reserved, OrderID: "", Claim: 1}, {Outcome: Reserved, OrderID: "", Claim: 1}},
			7,
		},
	} {
		t.Run(name, func(t *testing.T) {
			onEach(t, func(t *testing.T, c redis.UniversalClient) {
				load(t, c, sale(tc.total, tc.limit))
				before := time.Now()
				b, err := Reserve(t.Context(), c, product, 1, tc.reqs)
				require.NoError(t, err)
				for _, r := range b.Results {
					if r.Earlier != nil {
						require.Equal(t, b.At, r.Earlier.At)
						r.Earlier.At = time.Time{}
					}
				}
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
		b, err := Reserve(t.Context(), c, product, 1, []Request{{OrderID: first, UserID: "u", Quantity: 2}, {OrderID: second, UserID: "u", Quantity: 3}})
		require.NoError(t, err)
		entries, err := RecordOf(t.Context(), c, product, "u")
		require.NoError(t, err)
		require.Equal(t, []Entry{{Mark: MarkQueued, OrderID: first, Quantity: 2, Claim: 1, At: b.At}, {Mark: MarkQueued, OrderID: second, Quantity: 3, Claim: 2, At: b.At}}, entries)
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
		req := Request{OrderID: id.next(), UserID: "u", Quantity: 1}
		other := Request{OrderID: id.next(), UserID: "u", Quantity: 1}
		require.Equal(t, []Result{{Outcome: Reserved, OrderID: "", Claim: 1}, {Outcome: Reserved, OrderID: "", Claim: 2}}, reserve(t, c, req, other))
		repeat := func(msg string, epoch int64) {
			t.Helper()
			before := dump(t, c)
			more := other // a repeat is answered with what was reserved, whatever it asks for
			more.Quantity = 2
			b, err := Reserve(t.Context(), c, product, epoch, []Request{more, req})
			require.NoError(t, err, msg)
			for i, want := range []Request{other, req} {
				e, found, err := lookUp(t, c, want)
				require.NoError(t, err, msg)
				require.True(t, found, msg)
				require.Equal(t, Result{Outcome: Reserved, Claim: 2 - i, Earlier: &e}, b.Results[i], msg)
			}
			require.Equal(t, before, dump(t, c), msg)
		}
		repeat("queued", 1)
		repeat("stale epoch", 0)
		_, err := Settle(t.Context(), c, product, MarkCreated, []Move{{UserID: "u", OrderID: req.OrderID}})
		require.NoError(t, err)
		repeat("created", 1)
		_, err = Release(t.Context(), c, product, MarkExpired, []Move{{UserID: "u", OrderID: req.OrderID}})
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
		"stale epoch": {func(*Activity) {}, 0, Unavailable},
		"next epoch":  {func(*Activity) {}, 2, Unavailable},
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
				b, err := Reserve(t.Context(), c, product, tc.epoch, []Request{{OrderID: id.next(), UserID: "u", Quantity: 1}, {OrderID: id.next(), UserID: "u", Quantity: 2}})
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
		b, err := Reserve(t.Context(), c, product, 1, []Request{{OrderID: id.next(), UserID: "u", Quantity: 1}, {OrderID: id.next(), UserID: "u", Quantity: 0}, {OrderID: id.next(), UserID: "u", Quantity: 999}})
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
		require.Equal(t, []Outcome{tc.want}, outcomes(reserve(t, c, Request{OrderID: one, UserID: "user-" + one, Quantity: 1})), tc.now)
	}
}

// A call that comes after its last moment reserves nothing, and finds what an
// earlier one has reserved.
func TestReserveUntil(t *testing.T) {
	m := miniredis.RunT(t)
	c := connect(t, "redis://"+m.Addr())
	a := sale(10, 1)
	load(t, c, a)
	last := a.Start.Add(time.Second)
	var id ids
	first := id.next()
	for _, tc := range []struct {
		now  time.Time
		id   string
		want Outcome
	}{
		{last, first, Reserved},
		{last.Add(time.Millisecond), id.next(), Unavailable},
		{last.Add(time.Hour), first, Reserved},
		{a.End, id.next(), Ended},
	} {
		m.SetTime(tc.now)
		got, err := ReserveUntil(t.Context(), c, product, 1, last, []Request{{OrderID: tc.id, UserID: "user-" + tc.id, Quantity: 1}})
		require.NoError(t, err)
		require.Equal(t, tc.want, got.Results[0].Outcome, tc.now)
		require.EqualValues(t, 9, got.Available)
	}
}

func TestReserveBounds(t *testing.T) {
	onEach(t, func(t *testing.T, c redis.UniversalClient) {
		load(t, c, sale(1_000_000_000, 999))
		var id ids
		reqs := make([]Request, MaxPerCall+1)
		for i := range reqs {
			one := id.next()
			reqs[i] = Request{OrderID: one, UserID: strings.Repeat("u", 100) + one, Quantity: 999}
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
				reqs[i] = Request{OrderID: id.next(), UserID: "u", Quantity: 1}
			}
			for i, r := range reserve(t, c, reqs...) {
				claim++
				require.Equal(t, Result{Outcome: Reserved, Claim: claim}, r)
				last = reqs[i].OrderID
			}
		}
		require.Equal(t, []Result{{Outcome: AlreadyBought, OrderID: last, Claim: 0}}, reserve(t, c, Request{OrderID: id.next(), UserID: "u", Quantity: 1}))
	})
}

// lookUp reads what a buyer's record says of an order.
func lookUp(t *testing.T, c redis.UniversalClient, r Request) (Entry, bool, error) {
	t.Helper()
	texts, err := RecordTexts(t.Context(), c, product, []string{r.UserID})
	require.NoError(t, err)
	return FindOrder(texts[0], r.OrderID)
}
