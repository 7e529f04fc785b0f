package lua

import (
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/seckill-edge/seckill/internal/order"
)

func TestHashKey(t *testing.T) {
	one := HashKey("1001", "alice", "k")
	require.True(t, validKey(one), one)
	require.Equal(t, one, HashKey("1001", "alice", "k"))
	for _, other := range []string{
		HashKey("1002", "alice", "k"), HashKey("1001", "bob", "k"), HashKey("1001", "alice", "K"), HashKey("100", "1alice", "k"),
	} {
		require.NotEqual(t, one, other)
	}
}

// TestKeyRepeat: a key's first request decides; a repeat has no second effect, in
// whatever state the order and the activity are.
func TestKeyRepeat(t *testing.T) {
	onEach(t, func(t *testing.T, c redis.UniversalClient) {
		var id ids
		load(t, c, sale(3, 3))
		key := HashKey(product, "u", "k")
		ask := func(quantity int, key string) Request {
			return Request{OrderID: id.next(), UserID: "u", Quantity: quantity, Key: key}
		}
		first := ask(2, key)
		again := Result{Outcome: Reserved, OrderID: first.OrderID, Repeat: true}
		require.Equal(t, []Result{{Outcome: Reserved, Claim: 1}, again, {Outcome: KeyReused}},
			reserve(t, c, first, ask(2, key), ask(1, key)), "in one batch")
		entries, err := RecordOf(t.Context(), c, product, "u")
		require.NoError(t, err)
		require.Len(t, entries, 1)
		require.Equal(t, key, entries[0].Key)
		repeat := func(msg string, epoch int64) {
			t.Helper()
			before := dump(t, c)
			b, err := Reserve(t.Context(), c, product, epoch, []Request{ask(2, key), first, ask(1, key), ask(999, key)})
			require.NoError(t, err, msg)
			tooMany := BadArguments
			if b.ActivityID == "" {
				tooMany = KeyReused
			}
			own, _, err := lookUp(t, c, first)
			require.NoError(t, err, msg)
			require.Equal(t, []Result{again, {Outcome: Reserved, Claim: 1, Earlier: &own}, {Outcome: KeyReused}, {Outcome: tooMany}}, b.Results, msg)
			require.Equal(t, before, dump(t, c), msg)
		}
		repeat("queued", 1)
		repeat("stale epoch", 0)
		require.Equal(t, []Result{{Outcome: Reserved, Claim: 2}}, reserve(t, c, ask(1, HashKey(product, "u", "l"))), "another key")
		repeat("sold out", 1)
		require.Equal(t, []Moved{Done}, change(t, c, MarkCreated, Move{UserID: "u", OrderID: first.OrderID}))
		repeat("created", 1)
		require.Equal(t, []Moved{Done}, change(t, c, MarkRejected, Move{UserID: "u", OrderID: first.OrderID, Reason: order.ReasonOversold}))
		repeat("rejected with a reason", 1)
		_, _, err = SetState(t.Context(), c, product, "a-1", Closed)
		require.NoError(t, err)
		repeat("closed", 2)
		require.NoError(t, c.Del(t.Context(), KeysOf(product).Activity).Err())
		repeat("activity gone", 2)
	})
}

// TestBadKeys: what HashKey cannot have made never gets into a record.
func TestBadKeys(t *testing.T) {
	onEach(t, func(t *testing.T, c redis.UniversalClient) {
		load(t, c, sale(10, 5))
		var id ids
		for _, key := range []string{"short", "abcdefghijkl", "abcdefghij,", "abcdefghij:", "abcdefghi\xff\xff", ":", strings.Repeat("a", 5000)} {
			require.Equal(t, []Outcome{BadArguments}, outcomes(reserve(t, c, Request{OrderID: id.next(), UserID: "u", Quantity: 1, Key: key})), key)
		}
		require.EqualValues(t, 10, audit(t, c).Available)
	})
}

// TestReasons: every reason that a backend can have survives in a record.
func TestReasons(t *testing.T) {
	reasons := []order.Reason{
		order.ReasonOversold, order.ReasonDuplicate, order.ReasonUnknownActivity, order.ReasonInvalid, order.ReasonLost, order.ReasonDead,
	}
	require.Len(t, reasonsByLetter, len(reasons))
	onEach(t, func(t *testing.T, c redis.UniversalClient) {
		load(t, c, sale(100, 1))
		var id ids
		var moves []Move
		for i, reason := range append(reasons, "", "of another version") {
			r := Request{OrderID: id.next(), UserID: "u" + string(reason), Quantity: 1}
			if i%2 == 0 {
				r.Key = HashKey(product, r.UserID, "k")
			}
			reserve(t, c, r)
			moves = append(moves, Move{UserID: r.UserID, OrderID: r.OrderID, Reason: reason})
		}
		change(t, c, MarkRejected, moves...)
		for i, m := range moves {
			entries, err := RecordOf(t.Context(), c, product, m.UserID)
			require.NoError(t, err)
			require.Len(t, entries, 1)
			require.Equal(t, MarkRejected, entries[0].Mark)
			require.Equal(t, i%2 == 0, entries[0].Key != "")
			if i < len(reasons) {
				require.Equal(t, m.Reason, entries[0].Reason)
			} else {
				require.Empty(t, entries[0].Reason)
			}
		}
		// Only a rejection has a reason.
		r := Request{OrderID: id.next(), UserID: "w", Quantity: 1}
		reserve(t, c, r)
		change(t, c, MarkExpired, Move{UserID: "w", OrderID: r.OrderID, Reason: order.ReasonLost})
		entries, err := RecordOf(t.Context(), c, product, "w")
		require.NoError(t, err)
		require.Empty(t, entries[0].Reason)
	})
}

func TestFindOrderAndKey(t *testing.T) {
	var id ids
	at := time.UnixMilli(1_794_000_000_000)
	key := HashKey(product, "u", "k")
	entries := []Entry{
		{Mark: MarkQueued, OrderID: id.next(), Quantity: 1, Claim: 2, At: at},
		{Mark: MarkPaid, OrderID: id.next(), Quantity: 3, Claim: 1, At: at, Key: key},
		{Mark: MarkRejected, OrderID: id.next(), Quantity: 9, Claim: 1, At: at, Reason: order.ReasonDuplicate},
	}
	record := FormatRecord(entries)
	for _, e := range entries {
		got, ok, err := FindOrder(record, e.OrderID)
		require.NoError(t, err)
		require.True(t, ok)
		require.Equal(t, e, got)
	}
	_, ok, err := FindOrder(record, id.next())
	require.NoError(t, err)
	require.False(t, ok)
	_, ok, err = FindOrder("", entries[0].OrderID)
	require.NoError(t, err)
	require.False(t, ok)
	_, _, err = FindOrder("z:"+entries[0].OrderID+":1", entries[0].OrderID)
	require.ErrorContains(t, err, entries[0].OrderID)
	got, ok, err := FindKey(record, key)
	require.NoError(t, err)
	require.True(t, ok)
	require.Equal(t, entries[1], got)
	_, ok, err = FindKey(record, "12345678901")
	require.NoError(t, err)
	require.False(t, ok)
	_, _, err = FindKey("q:1:1:"+key, key)
	require.Error(t, err)
}

// TestChanges: the edges hear of what may be sold again, and of nothing else.
func TestChanges(t *testing.T) {
	onEach(t, func(t *testing.T, c redis.UniversalClient) {
		ctx := t.Context()
		heard := c.Subscribe(ctx, Changes)
		defer func() { require.NoError(t, heard.Close()) }()
		_, err := heard.ReceiveTimeout(ctx, 5*time.Second) // the subscription itself
		require.NoError(t, err)
		hears := func(what string, n int, do func()) {
			t.Helper()
			do()
			for range n {
				m, err := heard.ReceiveTimeout(ctx, 5*time.Second)
				require.NoError(t, err, what)
				require.Equal(t, product, m.(*redis.Message).Payload)
			}
			// Whatever else was said before is heard before this.
			require.NoError(t, c.Publish(ctx, Changes, what).Err())
			m, err := heard.ReceiveTimeout(ctx, 5*time.Second)
			require.NoError(t, err)
			require.Equal(t, what, m.(*redis.Message).Payload)
		}
		var id ids
		order := id.next()
		hears("preheat", 1, func() { load(t, c, sale(10, 1)) })
		hears("preheat again", 0, func() { _, err = Preheat(ctx, c, sale(10, 1)) })
		hears("reserve", 0, func() { reserve(t, c, Request{OrderID: order, UserID: "u", Quantity: 1}) })
		hears("settle", 0, func() { change(t, c, MarkCreated, Move{UserID: "u", OrderID: order}) })
		hears("release", 1, func() { change(t, c, MarkExpired, Move{UserID: "u", OrderID: order}) })
		hears("release again", 0, func() { change(t, c, MarkExpired, Move{UserID: "u", OrderID: order}) })
		hears("state", 1, func() { _, _, err = SetState(ctx, c, product, "a-1", OnHold) })
		a := sale(10, 1)
		var epoch int64
		hears("hold", 1, func() { epoch, _, err = Hold(ctx, c, a, "") })
		was, err := ReadCounters(ctx, c, product)
		require.NoError(t, err)
		hears("prove", 1, func() {
			_, err = Prove(ctx, c, product, "a-1", epoch, OnHold, was, Units{Available: 10}, audit(t, c).ServerRun)
			require.NoError(t, err)
		})
		hears("state again", 0, func() { _, _, err = SetState(ctx, c, product, "a-1", OnHold) })
	})
}
