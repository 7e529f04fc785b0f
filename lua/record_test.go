package lua

import (
	"maps"
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"
)

func FuzzParseRecord(f *testing.F) {
	var id ids
	for _, seed := range []string{
		"", ",", "q", "q:" + id.next() + ":1:1:1764442047123",
		"p:" + id.next() + ":999:2:0,x:" + id.next() + ":1:1:281474976710655",
		"q:" + id.next() + ":1:1:1:abcdefghi_-", "r:" + id.next() + ":1:1:1:abcdefghi_-:o", "r:" + id.next() + ":1:1:1::l",
		"q:" + id.next() + ":01:1:1", "q:" + id.next() + ":1:+1:1", "é:" + id.next() + ":1:1:1",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, record string) {
		entries, err := ParseRecord(record)
		if err != nil {
			require.Nil(t, entries)
			return
		}
		require.NotEmpty(t, entries)
		require.Equal(t, record, FormatRecord(entries))
	})
}

func TestRecords(t *testing.T) {
	onEach(t, func(t *testing.T, c redis.UniversalClient) {
		ctx := t.Context()
		records, err := Records(ctx, c, product, []string{"u"})
		require.NoError(t, err)
		require.Equal(t, [][]Entry{nil}, records)
		records, err = Records(ctx, c, product, nil)
		require.NoError(t, err)
		require.Empty(t, records)
		entries, err := RecordOf(ctx, c, product, "u")
		require.NoError(t, err)
		require.Empty(t, entries)

		load(t, c, sale(10, 2))
		var id ids
		first, second := id.next(), id.next()
		reserve(t, c, Request{OrderID: first, UserID: "u", Quantity: 1}, Request{OrderID: second, UserID: "w", Quantity: 2})
		records, err = Records(ctx, c, product, []string{"w", "v", "u"})
		require.NoError(t, err)
		require.Len(t, records, 3)
		require.Equal(t, second, records[0][0].OrderID)
		require.Empty(t, records[1])
		require.Equal(t, first, records[2][0].OrderID)
	})
}

func TestOutbox(t *testing.T) {
	onEach(t, func(t *testing.T, c redis.UniversalClient) {
		ctx := t.Context()
		load(t, c, sale(1_000_000, 1))
		var id ids
		want := map[string]string{}
		for range 8 { // more than Redis keeps in a compact, uncut form
			reqs := make([]Request, MaxPerCall)
			for i := range reqs {
				one := id.next()
				reqs[i] = Request{OrderID: one, UserID: "u" + one, Quantity: 1}
				want[one] = "u" + one
			}
			reserve(t, c, reqs...)
		}
		got := map[string]string{}
		var cursor uint64
		for {
			entries, next, err := OutboxScan(ctx, c, product, cursor, 100)
			require.NoError(t, err)
			maps.Copy(got, entries)
			if cursor = next; cursor == 0 {
				break
			}
		}
		require.Equal(t, want, got)
		orders := make([]string, 0, len(want))
		for order := range want {
			orders = append(orders, order)
		}
		require.NoError(t, Confirm(ctx, c, product, nil))
		require.NoError(t, Confirm(ctx, c, product, orders[1:]))
		require.NoError(t, Confirm(ctx, c, product, orders[1:]), "confirming again")
		entries, _, err := OutboxScan(ctx, c, product, 0, 100)
		require.NoError(t, err)
		require.Equal(t, map[string]string{orders[0]: want[orders[0]]}, entries)
	})
}
