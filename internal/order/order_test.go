package order

import (
	"bytes"
	"crypto/rand"
	"sort"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestIDsSortByTimeAndTellIt(t *testing.T) {
	base := time.UnixMilli(1_794_000_000_000)
	var ids []string
	for i := range 1000 {
		at := base.Add(time.Duration(i) * time.Millisecond)
		id, err := NewID(at, rand.Reader)
		require.NoError(t, err)
		require.True(t, ValidID(id), id)
		made, ok := IDTime(id)
		require.True(t, ok)
		require.True(t, made.Equal(at), "%v is not %v", made, at)
		ids = append(ids, id)
	}
	require.True(t, sort.StringsAreSorted(ids))
	// The layout is that of a ULID: ones in all 128 bits.
	id, err := NewID(time.UnixMilli(1<<48-1), bytes.NewReader(bytes.Repeat([]byte{0xff}, 10)))
	require.NoError(t, err)
	require.Equal(t, "7zzzzzzzzzzzzzzzzzzzzzzzzz", id)
}

func TestNewIDFailsWithItsRandomness(t *testing.T) {
	_, err := NewID(time.Now(), strings.NewReader("short"))
	require.Error(t, err)
}

func TestValidID(t *testing.T) {
	for id, want := range map[string]bool{
		"01arz3ndektsv4rrffq69g5fav":  true,
		"01ARZ3NDEKTSV4RRFFQ69G5FAV":  false, // upper case is not how we write it
		"81arz3ndektsv4rrffq69g5fav":  false, // more than 128 bits
		"01arz3ndektsv4rrffq69g5fau":  false, // u is not in the alphabet
		"01arz3ndektsv4rrffq69g5fa":   false,
		"01arz3ndektsv4rrffq69g5favv": false,
		"":                            false,
	} {
		require.Equal(t, want, ValidID(id), id)
	}
}

func TestInput(t *testing.T) {
	for id, want := range map[string]bool{
		"1001": true, "a-Z_9": true, strings.Repeat("x", 64): true,
		"": false, strings.Repeat("x", 65): false, "a b": false, "a}": false, "{a}": false, "a:b": false, "ä": false, "a\x00": false,
	} {
		require.Equal(t, want, ValidProduct(id), "%q", id)
	}
	for id, want := range map[string]bool{
		"alice": true, "用户": true, "a|b,c:d e": true, strings.Repeat("x", 128): true,
		"": false, strings.Repeat("x", 129): false, "a\tb": false, "a\nb": false, "a\x7f": false, "a\u0085": false, "\xff": false,
	} {
		require.Equal(t, want, ValidUser(id), "%q", id)
	}
}

func sample(t *testing.T, n int) []Order {
	t.Helper()
	orders := make([]Order, n)
	for i := range orders {
		id, err := NewID(time.Now(), rand.Reader)
		require.NoError(t, err)
		orders[i] = Order{
			ID: id, ActivityID: "double-11", ProductID: "1001", UserID: "买家 " + id[20:],
			Quantity: 1 + i%MaxQuantity, Claim: 1 + i%3, ReservedAt: time.UnixMilli(1_794_000_000_000 + int64(i)),
		}
	}
	return orders
}

func TestMessageRoundTrip(t *testing.T) {
	for _, n := range []int{1, 2, MaxPerMessage} {
		want := sample(t, n)
		got, bad, err := ParseMessage(AppendMessage(nil, want))
		require.NoError(t, err)
		require.Empty(t, bad)
		require.Equal(t, want, got)
	}
}

func TestBadEntriesDoNotHarmTheirNeighbours(t *testing.T) {
	orders := sample(t, 2)
	good := strings.Split(string(AppendMessage(nil, orders)), "\n")
	id := orders[0].ID
	for _, tc := range []struct{ name, entry, knownID string }{
		{"too few fields", id + "\tu\t1\t1", id},
		{"too many fields", id + "\tu\t1\t1\t1\t1", id},
		{"no id", "x\tu\t1\t1\t1", ""},
		{"no user", id + "\t\t1\t1\t1", id},
		{"quantity 0", id + "\tu\t0\t1\t1", id},
		{"quantity negative", id + "\tu\t-1\t1\t1", id},
		{"quantity with sign", id + "\tu\t+1\t1\t1", id},
		{"quantity with zero in front", id + "\tu\t01\t1\t1", id},
		{"quantity 1e3", id + "\tu\t1e3\t1\t1", id},
		{"quantity too large", id + "\tu\t1000\t1\t1", id},
		{"claim 0", id + "\tu\t1\t0\t1", id},
		{"time after 9999", id + "\tu\t1\t1\t253402300800000", id},
		{"time of the year 5138", id + "\tu\t1\t1\t99999999999999", id},
		{"time of the year 2100", id + "\tu\t1\t1\t4102444800000", id},
		{"time in seconds", id + "\tu\t1\t1\t1794000000", id},
		{"time huge", id + "\tu\t1\t1\t99999999999999999999", id},
		{"empty line", "", ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			body := strings.Join([]string{good[0], good[1], tc.entry, good[2]}, "\n")
			got, bad, err := ParseMessage([]byte(body))
			require.NoError(t, err)
			require.Equal(t, orders, got)
			require.Len(t, bad, 1)
			require.Equal(t, tc.knownID, bad[0].OrderID)
			require.Equal(t, tc.entry, string(bad[0].Raw))
			require.Error(t, bad[0].Err)
		})
	}
}

func TestUnreadableMessages(t *testing.T) {
	full := string(AppendMessage(nil, sample(t, MaxPerMessage)))
	_, entries, _ := strings.Cut(full, "\n")
	for name, body := range map[string]string{
		"empty":       "",
		"json":        `{"order_id":"x"}`,
		"version":     "seckill/2\t1001\ta\nx",
		"product":     "seckill/1\t{1}\ta\nx",
		"activity":    "seckill/1\t1001\t\nx",
		"no order":    "seckill/1\t1001\ta",
		"too many":    full + "\n" + entries,
		"more fields": "seckill/1\t1001\ta\tb\nx",
	} {
		_, _, err := ParseMessage([]byte(body))
		require.ErrorIs(t, err, ErrMessage, name)
	}
}

func FuzzParseMessage(f *testing.F) {
	f.Add([]byte("seckill/1\t1001\tdouble-11\n01arz3ndektsv4rrffq69g5fav\tu\t1\t1\t1794000000000"))
	f.Add([]byte("seckill/1\t1\t1\n\n"))
	f.Fuzz(func(t *testing.T, body []byte) {
		orders, bad, err := ParseMessage(body)
		if err != nil {
			return
		}
		if len(orders)+len(bad) > MaxPerMessage {
			t.Fatalf("%d entries", len(orders)+len(bad))
		}
		if len(orders) == 0 {
			return
		}
		again, bad, err := ParseMessage(AppendMessage(nil, orders))
		if err != nil || len(bad) > 0 {
			t.Fatalf("written and read again: %v, %v", bad, err)
		}
		require.Equal(t, orders, again)
	})
}
