package ticket

import (
	"crypto/rand"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/seckill-edge/seckill/internal/order"
)

const (
	secretA = "an old secret of forty bytes, or a few more"
	secretB = "a new secret of forty bytes, or a few more!"
)

var (
	now   = time.UnixMilli(1_794_427_200_123)
	alice = Holder{UserID: "alice", ProductID: "1001", ActivityID: "a1"}
)

func keys(t testing.TB, secrets ...string) *Keys {
	t.Helper()
	k, err := NewKeys(secrets)
	require.NoError(t, err)
	return k
}

func orderOf(t testing.TB, h Holder) string {
	t.Helper()
	id, err := order.NewID(now, rand.Reader)
	require.NoError(t, err)
	return order.OwnID(id, h.ProductID, h.UserID)
}

func TestCheck(t *testing.T) {
	k := keys(t, secretA)
	id := orderOf(t, alice)
	good := k.Sign(alice, id, now.Add(time.Minute))
	require.Len(t, good, Length)
	require.Equal(t, good, k.Sign(alice, id, now.Add(time.Minute)), "nothing in it is chance")
	other := k.Sign(alice, orderOf(t, alice), now.Add(time.Minute))
	for name, tc := range map[string]struct {
		ticket string
		holder Holder
		after  time.Duration
		want   Flaw
	}{
		"good":                  {good, alice, 0, None},
		"in its last ms":        {good, alice, time.Minute - time.Millisecond, None},
		"expired":               {good, alice, time.Minute, Expired},
		"another buyer's":       {good, Holder{"bob", "1001", "a1"}, 0, OtherUser},
		"another product's":     {good, Holder{"alice", "1002", "a1"}, 0, OtherProduct},
		"another activity's":    {good, Holder{"alice", "1001", "a2"}, 0, OtherActivity},
		"stolen and expired":    {good, Holder{"bob", "1001", "a1"}, time.Hour, OtherUser},
		"shifted borders":       {good, Holder{"alice1", "001", "a1"}, 0, OtherUser},
		"empty":                 {"", alice, 0, Forged},
		"an order id":           {id, alice, 0, Forged},
		"cut short":             {good[:Length-1], alice, 0, Forged},
		"too long":              {good + "A", alice, 0, Forged},
		"padded":                {good[:Length-1] + "=", alice, 0, Forged},
		"white space":           {good[:Length-1] + "\n", alice, 0, Forged},
		"upper case order":      {strings.ToUpper(id) + good[order.IDLength:], alice, 0, Forged},
		"another order":         {other[:order.IDLength] + good[order.IDLength:], alice, 0, Forged},
		"another one's claims":  {good[:Length-24] + other[Length-24:], alice, 0, Forged},
		"signed by nobody":      {good[:Length-24] + strings.Repeat("A", 24), alice, 0, Forged},
		"of another key's edge": {keys(t, secretB).Sign(alice, id, now.Add(time.Minute)), alice, 0, Forged},
	} {
		t.Run(name, func(t *testing.T) {
			got, flaw := k.Check(tc.ticket, tc.holder, now.Add(tc.after))
			require.Equal(t, tc.want.String(), flaw.String())
			if tc.want == None || tc.want == Expired {
				require.Equal(t, id, got)
			} else {
				require.Empty(t, got)
			}
		})
	}
}

// TestEveryByteCounts changes each character of a ticket in turn.
func TestEveryByteCounts(t *testing.T) {
	k := keys(t, secretA)
	good := k.Sign(alice, orderOf(t, alice), now.Add(time.Minute))
	for i := range good {
		for _, c := range []byte("A0z_-") {
			bad := []byte(good)
			if bad[i] == c {
				continue
			}
			bad[i] = c
			_, flaw := k.Check(string(bad), alice, now)
			require.Equal(t, Forged, flaw, "%q", bad)
		}
	}
}

// TestRotation goes the three steps with two edges that are never in step.
func TestRotation(t *testing.T) {
	steps := []*Keys{keys(t, secretA), keys(t, secretA, secretB), keys(t, secretB, secretA), keys(t, secretB)}
	for i := range steps[1:] {
		for _, pair := range [][2]*Keys{{steps[i], steps[i+1]}, {steps[i+1], steps[i]}} {
			_, flaw := pair[1].Check(pair[0].Sign(alice, orderOf(t, alice), now.Add(time.Second)), alice, now)
			require.Equal(t, None, flaw, "step %d", i+1)
		}
	}
	_, flaw := steps[3].Check(steps[0].Sign(alice, orderOf(t, alice), now.Add(time.Second)), alice, now)
	require.Equal(t, Forged, flaw, "the old key is gone")
}

func TestNewKeys(t *testing.T) {
	short := secretA[:MinSecret-1]
	for name, tc := range map[string]struct {
		secrets []string
		want    string
	}{
		"none":      {nil, "0 keys"},
		"too many":  {[]string{"1", "2", "3", "4", "5"}, "5 keys"},
		"empty":     {[]string{secretA, ""}, "key 2 has 0 bytes"},
		"too short": {[]string{short}, "key 1 has 31 bytes"},
		"twice":     {[]string{secretA, secretA}, "the same"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := NewKeys(tc.secrets)
			require.ErrorContains(t, err, tc.want)
			require.NotContains(t, err.Error(), short)
		})
	}
}

func TestFlawNames(t *testing.T) {
	seen := map[string]bool{}
	for f := None; f <= Expired; f++ {
		require.NotEqual(t, "unknown", f.String())
		seen[f.String()] = true
	}
	require.Len(t, seen, int(Expired)+1)
	require.Equal(t, "unknown", Flaw(99).String())
}

// FuzzCheck: whatever is presented, only the ticket that was signed is good, and
// only for its holder.
func FuzzCheck(f *testing.F) {
	k := keys(f, secretA, secretB)
	id := "01kb7q3x5e8g9h0jkmnpqrstvw" // the same in every process that fuzzes
	good := k.Sign(alice, id, now.Add(time.Minute))
	f.Add(good, "alice", "1001", "a1", int64(0))
	f.Add(good, "bob", "1001", "a1", int64(59_999))
	f.Add(good[:50], "", "", "", int64(60_000))
	f.Add(strings.Repeat("0", Length), "alice", "1001", "a1", int64(-1))
	f.Fuzz(func(t *testing.T, text, user, product, activity string, ms int64) {
		h := Holder{UserID: user, ProductID: product, ActivityID: activity}
		got, flaw := k.Check(text, h, now.Add(time.Duration(ms)*time.Millisecond))
		if flaw != None && flaw != Expired {
			require.Empty(t, got)
			return
		}
		require.Equal(t, ms >= 60_000, flaw == Expired)
		require.Equal(t, good, text)
		require.Equal(t, alice, h)
		require.Equal(t, id, got)
	})
}

func BenchmarkSign(b *testing.B) {
	k, id, expires := keys(b, secretA), orderOf(b, alice), now.Add(time.Minute)
	b.ReportAllocs()
	for b.Loop() {
		k.Sign(alice, id, expires)
	}
}

func BenchmarkCheck(b *testing.B) {
	k := keys(b, secretA, secretB)
	good := k.Sign(alice, orderOf(b, alice), now.Add(time.Minute))
	for name, text := range map[string]string{"good": good, "forged": good[:Length-1] + "A"} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				k.Check(text, alice, now)
			}
		})
	}
}
