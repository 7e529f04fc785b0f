package limit

import (
	"net/netip"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

var start = time.Date(2026, 11, 11, 0, 0, 0, 0, time.UTC)

func TestBurstThenRate(t *testing.T) {
	l := New(10, 3, 100)
	a := netip.MustParseAddr("192.0.2.1")
	for range 3 {
		ok, _ := l.Allow(a, start)
		require.True(t, ok)
	}
	ok, wait := l.Allow(a, start)
	require.False(t, ok)
	require.InDelta(t, 100*time.Millisecond, wait, float64(time.Millisecond))

	ok, _ = l.Allow(a, start.Add(99*time.Millisecond))
	require.False(t, ok, "a refused request must not move the refill")
	ok, _ = l.Allow(a, start.Add(101*time.Millisecond))
	require.True(t, ok)
	other, _ := l.Allow(netip.MustParseAddr("192.0.2.2"), start)
	require.True(t, other, "addresses must not share a bucket")
}

func TestKey(t *testing.T) {
	for _, tc := range []struct{ addr, key string }{
		{"192.0.2.1", "192.0.2.1"},
		{"::ffff:192.0.2.1", "192.0.2.1"},
		{"2001:db8:1:2:3:4:5:6", "2001:db8:1:2::"},
		{"2001:db8:1:2:ffff::1", "2001:db8:1:2::"},
		{"2001:db8:1:3::1", "2001:db8:1:3::"},
		{"fe80::1%eth0", "fe80::"},
	} {
		require.Equal(t, netip.MustParseAddr(tc.key), Key(netip.MustParseAddr(tc.addr)), tc.addr)
	}
	require.Equal(t, netip.Addr{}, Key(netip.Addr{}))
}

// A flood of new addresses neither grows the memory past its bound nor gives an
// abuser a fresh bucket.
func TestFloodDoesNotFreeAnAbuser(t *testing.T) {
	l := New(1, 5, 6400)
	abuser := netip.MustParseAddr("203.0.113.9")
	now := start
	for range 5 {
		l.Allow(abuser, now)
	}
	allowed := 0
	for i := range 200_000 {
		now = now.Add(10 * time.Microsecond)
		l.Allow(netip.AddrFrom4([4]byte{10, byte(i >> 16), byte(i >> 8), byte(i)}), now)
		if i%20 == 0 {
			if ok, _ := l.Allow(abuser, now); ok {
				allowed++
			}
		}
	}
	require.LessOrEqual(t, l.Len(), 6400)
	require.LessOrEqual(t, allowed, 3, "2 s at 1 token a second")
	require.Positive(t, allowed)
}

// Idle addresses are forgotten as new ones come, without a timer.
func TestIdleBucketsGo(t *testing.T) {
	l := New(10, 1, 1_000_000)
	now := start
	for i := range 100_000 {
		now = now.Add(time.Millisecond) // 1,000 new addresses a second, each full again after 0.1 s
		l.Allow(netip.AddrFrom4([4]byte{10, byte(i >> 16), byte(i >> 8), byte(i)}), now)
	}
	require.Less(t, l.Len(), 5000)
}

func BenchmarkAllow(b *testing.B) {
	l := New(1e9, 1e9, 1<<20)
	addrs := make([]netip.Addr, 20_000)
	for i := range addrs {
		addrs[i] = netip.AddrFrom4([4]byte{10, 0, byte(i >> 8), byte(i)})
	}
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		for i := 0; pb.Next(); i++ {
			l.Allow(addrs[i%len(addrs)], start)
		}
	})
}
