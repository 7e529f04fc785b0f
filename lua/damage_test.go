package lua

import (
	"context"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"
)

// damages are ways to spoil an open activity with one order of "u" in it, and
// which moves still work then: s settle, r release.
var damages = map[string]struct {
	spoil func(ctx context.Context, c redis.Cmdable, k Keys) error
	works string
}{
	"stock missing":        {func(ctx context.Context, c redis.Cmdable, k Keys) error { return c.Del(ctx, k.Stock).Err() }, "s"},
	"frozen missing":       {func(ctx context.Context, c redis.Cmdable, k Keys) error { return c.Del(ctx, k.Frozen).Err() }, ""},
	"sold missing":         {func(ctx context.Context, c redis.Cmdable, k Keys) error { return c.Del(ctx, k.Sold).Err() }, "r"},
	"stock negative":       {set("stock", "-1"), "s"},
	"stock raised by hand": {set("stock", "100"), "sr"},
	"stock a fraction":     {set("stock", "1.5"), "s"},
	"stock huge":           {set("stock", "9223372036854775807"), "s"},
	"stock nan":            {set("stock", "nan"), "s"},
	"stock hexadecimal":    {set("stock", "0x9"), "s"},
	"stock padded":         {set("stock", "09"), "s"},
	"stock empty":          {set("stock", ""), "s"},
	"frozen no number":     {set("frozen", "one"), ""},
	"frozen too low":       {set("frozen", "0"), ""},
	"sold no number":       {set("sold", " 0"), "r"},
	"stock a list":         {list(func(k Keys) string { return k.Stock }), "s"},
	"frozen a list":        {list(func(k Keys) string { return k.Frozen }), ""},
	"sold a list":          {list(func(k Keys) string { return k.Sold }), "r"},
	"users a list":         {list(func(k Keys) string { return k.Users }), ""},
	"outbox a list":        {list(func(k Keys) string { return k.Outbox }), ""},
	"activity a list":      {list(func(k Keys) string { return k.Activity }), "sr"},
	"id missing":           {field("id"), "sr"},
	"start missing":        {field("start"), "sr"},
	"end missing":          {field("end"), "sr"},
	"total missing":        {field("total"), "sr"},
	"limit missing":        {field("limit"), "sr"},
	"state missing":        {field("state"), "sr"},
	"epoch missing":        {field("epoch"), "sr"},
	"start no number":      {field("start", "soon"), "sr"},
	"end no number":        {field("end", "1e99"), "sr"},
	"total no number":      {field("total", "inf"), "sr"},
	"limit no number":      {field("limit", "-1"), "sr"},
	"state unknown":        {field("state", "OPEN"), "sr"},
	"epoch no number":      {field("epoch", "1.0"), "sr"},
}

func set(name, value string) func(context.Context, redis.Cmdable, Keys) error {
	return func(ctx context.Context, c redis.Cmdable, k Keys) error {
		key := map[string]string{"stock": k.Stock, "frozen": k.Frozen, "sold": k.Sold}[name]
		return c.Set(ctx, key, value, 0).Err()
	}
}

func list(key func(Keys) string) func(context.Context, redis.Cmdable, Keys) error {
	return func(ctx context.Context, c redis.Cmdable, k Keys) error {
		if err := c.Del(ctx, key(k)).Err(); err != nil {
			return err
		}
		return c.RPush(ctx, key(k), "1").Err()
	}
}

func field(name string, value ...any) func(context.Context, redis.Cmdable, Keys) error {
	return func(ctx context.Context, c redis.Cmdable, k Keys) error {
		if len(value) == 0 {
			return c.HDel(ctx, k.Activity, name).Err()
		}
		return c.HSet(ctx, k.Activity, name, value[0]).Err()
	}
}

// TestDamage: whatever is wrong in Redis, nothing is sold, nothing is written,
// and it is a value or ErrDamaged rather than a script that fails.
func TestDamage(t *testing.T) {
	for name, tc := range damages {
		t.Run(name, func(t *testing.T) {
			onEach(t, func(t *testing.T, c redis.UniversalClient) {
				ctx := t.Context()
				var id ids
				load(t, c, sale(10, 5))
				order := id.next()
				require.Equal(t, []Result{{Outcome: Reserved, OrderID: "", Claim: 1}}, reserve(t, c, Request{OrderID: order, UserID: "u", Quantity: 2}))
				require.NoError(t, tc.spoil(ctx, c, KeysOf(product)))
				before := dump(t, c)

				got := outcomes(reserve(t, c, Request{OrderID: id.next(), UserID: "u", Quantity: 1}, Request{OrderID: id.next(), UserID: "v", Quantity: 1}, Request{OrderID: id.next(), UserID: "w", Quantity: 0}))
				require.Equal(t, []Outcome{Unavailable, Unavailable, BadArguments}, got)
				s, found, err := Audit(ctx, c, product)
				require.NoError(t, err)
				require.True(t, found)
				require.True(t, s.Damaged)
				other := sale(10, 1)
				other.ID = "a-2"
				p, err := Preheat(ctx, c, other)
				require.NoError(t, err)
				require.Equal(t, Refused, p)
				require.Equal(t, before, dump(t, c))

				one := []Move{{UserID: "u", OrderID: order}}
				settle := func() ([]Moved, error) { return Settle(ctx, c, product, MarkSettled, one) }
				release := func() ([]Moved, error) { return Release(ctx, c, product, MarkExpired, one) }
				if !strings.Contains(tc.works, "s") {
					_, err := settle()
					require.ErrorIs(t, err, ErrDamaged)
				}
				if !strings.Contains(tc.works, "r") {
					_, err := release()
					require.ErrorIs(t, err, ErrDamaged)
				}
				require.Equal(t, before, dump(t, c))
				if tc.works == "" {
					return
				}
				moved, err := map[byte]func() ([]Moved, error){'s': settle, 'r': release}[tc.works[0]]()
				require.NoError(t, err)
				require.Equal(t, []Moved{Done}, moved)
			})
		})
	}
}

func TestDamagedState(t *testing.T) {
	for name, spoil := range map[string]func(context.Context, redis.Cmdable, Keys) error{
		"activity a list": list(func(k Keys) string { return k.Activity }),
		"id missing":      field("id"),
		"state unknown":   field("state", "OPEN"),
		"epoch no number": field("epoch", "x"),
	} {
		t.Run(name, func(t *testing.T) {
			onEach(t, func(t *testing.T, c redis.UniversalClient) {
				load(t, c, sale(10, 1))
				require.NoError(t, spoil(t.Context(), c, KeysOf(product)))
				_, _, err := SetState(t.Context(), c, product, "a-1", OnHold)
				require.ErrorIs(t, err, ErrDamaged)
			})
		})
	}
}

// TestDamagedRecord harms its own buyer only.
func TestDamagedRecord(t *testing.T) {
	var made ids
	id := made.next()
	for _, record := range []string{
		"", "x", "q", "q:" + id, "z:" + id + ":1:1:1", "q:" + id + ":0:1:1", "q:" + id + ":1:1:", ",q:" + id + ":1:1:1",
		"q:" + id + ":1:1:1,", "q:" + id + ":1:1:1,,q:" + id + ":1:1:1", "q:" + id + ":1:1:1:1", "q:" + id + ":1:1:1:", "q:" + id + ":1:1:1:abcdefghijkl",
		"r:" + id + ":1:1:1:abcdefghijk:", "r:" + id + ":1:1:1:abcdefghijk:oo", "r:" + id + ":1:1:1:abcdefghij:o", "q:" + id + ":1:1:1x", "qq:" + id + ":1:1:1", "q:" + id + ":-1:1:1",
	} {
		t.Run(record, func(t *testing.T) {
			_, err := ParseRecord(record)
			require.Error(t, err)
			onEach(t, func(t *testing.T, c redis.UniversalClient) {
				ctx := t.Context()
				id := made
				load(t, c, sale(10, 2))
				require.NoError(t, c.HSet(ctx, KeysOf(product).Users, "u", record).Err())
				other := id.next()
				got := outcomes(reserve(t, c, Request{OrderID: id.next(), UserID: "u", Quantity: 1}, Request{OrderID: other, UserID: "v", Quantity: 1}))
				require.Equal(t, []Outcome{Unavailable, Reserved}, got)
				_, err := RecordOf(ctx, c, product, "u")
				require.Error(t, err)
				_, err = Records(ctx, c, product, []string{"v", "u"})
				require.ErrorContains(t, err, `user "u"`)
				moved, err := Settle(ctx, c, product, MarkPaid, []Move{{UserID: "u", OrderID: id.next()}, {UserID: "v", OrderID: other}})
				require.NoError(t, err)
				require.Equal(t, []Moved{Unknown, Done}, moved)
				require.NoError(t, c.Del(ctx, KeysOf(product).Activity).Err())
				require.Equal(t, []Outcome{NoProduct}, outcomes(reserve(t, c, Request{OrderID: id.next(), UserID: "u", Quantity: 1})))
			})
		})
	}
}

// TestWithoutKeys: on an empty Redis nothing comes into being but by Preheat.
func TestWithoutKeys(t *testing.T) {
	onEach(t, func(t *testing.T, c redis.UniversalClient) {
		ctx := t.Context()
		var id ids
		moves := []Move{{UserID: "u", OrderID: id.next()}, {UserID: "u", OrderID: "no order id"}, {UserID: "", OrderID: ""}}
		for _, to := range []Mark{MarkCreated, MarkSettled, MarkPaid} {
			moved, err := Settle(ctx, c, product, to, moves)
			require.NoError(t, err)
			require.Equal(t, []Moved{Unknown, Unknown, Unknown}, moved)
		}
		moved, err := Release(ctx, c, product, MarkRejected, moves)
		require.NoError(t, err)
		require.Equal(t, []Moved{Unknown, Unknown, Unknown}, moved)
		_, _, err = SetState(ctx, c, product, "a-1", Open)
		require.ErrorIs(t, err, ErrNoActivity)
		require.NoError(t, Confirm(ctx, c, product, []string{id.next()}))
		require.Empty(t, dump(t, c))
	})
}

// TestForgottenScripts: a server that lost its script cache gets them again.
func TestForgottenScripts(t *testing.T) {
	onEach(t, func(t *testing.T, c redis.UniversalClient) {
		ctx := t.Context()
		var id ids
		require.NoError(t, Load(ctx, c))
		for name, s := range scripts() {
			there, err := s.Exists(ctx, c).Result()
			require.NoError(t, err)
			require.Equal(t, []bool{true}, there, name)
		}
		flush := func() { require.NoError(t, c.ScriptFlush(ctx).Err()) }
		flush()
		load(t, c, sale(10, 1))
		flush()
		one := id.next()
		require.Equal(t, []Outcome{Reserved}, outcomes(reserve(t, c, Request{OrderID: one, UserID: "u", Quantity: 1})))
		flush()
		moved, err := Settle(ctx, c, product, MarkCreated, []Move{{UserID: "u", OrderID: one}})
		require.NoError(t, err)
		require.Equal(t, []Moved{Done}, moved)
		flush()
		moved, err = Release(ctx, c, product, MarkCancelled, []Move{{UserID: "u", OrderID: one}})
		require.NoError(t, err)
		require.Equal(t, []Moved{Done}, moved)
		flush()
		_, changed, err := SetState(ctx, c, product, "a-1", OnHold)
		require.NoError(t, err)
		require.True(t, changed)
		flush()
		require.Equal(t, OnHold, audit(t, c).State)
	})
}

// TestServerGone: what is no outcome is an error, and says what was tried.
func TestServerGone(t *testing.T) {
	c := connect(t, "redis://127.0.0.1:1")
	ctx := t.Context()
	var id ids
	_, err := Reserve(ctx, c, product, 1, []Request{{OrderID: id.next(), UserID: "u", Quantity: 1}})
	require.ErrorContains(t, err, "reserving units of product p-1 for 1 requests: ")
	_, err = Settle(ctx, c, product, MarkPaid, []Move{{UserID: "u", OrderID: id.next()}})
	require.ErrorContains(t, err, "settling 1 orders of product p-1: ")
	_, err = Release(ctx, c, product, MarkExpired, []Move{{UserID: "u", OrderID: id.next()}})
	require.ErrorContains(t, err, "releasing 1 orders of product p-1: ")
	_, err = Preheat(ctx, c, sale(1, 1))
	require.ErrorContains(t, err, "preheating activity a-1 of product p-1: ")
	_, _, err = SetState(ctx, c, product, "a-1", Open)
	require.ErrorContains(t, err, `setting activity "a-1" of product "p-1" to "open": `)
	_, _, err = Audit(ctx, c, product)
	require.ErrorContains(t, err, `auditing product "p-1": `)
	require.ErrorContains(t, Load(ctx, c), "loading script ")
	require.Error(t, Confirm(ctx, c, product, []string{id.next()}))
	_, _, err = OutboxScan(ctx, c, product, 0, 1)
	require.Error(t, err)
	_, err = RecordOf(ctx, c, product, "u")
	require.Error(t, err)
	_, err = Records(ctx, c, product, []string{"u"})
	require.Error(t, err)
}
