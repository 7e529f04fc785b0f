package limit

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

var start = time.Date(2026, 11, 11, 0, 0, 0, 0, time.UTC)

func perSecond(events, burst int) Rate { return Rate{Events: events, Per: time.Second, Burst: burst} }

func TestBurstThenRate(t *testing.T) {
	k := newKeyed(perSecond(10, 3), 100)
	for range 3 {
		ok, _ := k.allow(1, start)
		require.True(t, ok)
	}
	ok, wait := k.allow(1, start)
	require.False(t, ok)
	require.InDelta(t, 100*time.Millisecond, wait, float64(time.Millisecond))

	ok, _ = k.allow(1, start.Add(99*time.Millisecond))
	require.False(t, ok, "a refused call must not move the refill")
	ok, _ = k.allow(1, start.Add(101*time.Millisecond))
	require.True(t, ok)
	other, _ := k.allow(2, start)
	require.True(t, other, "keys must not share a bucket")
}

// A changed rate takes from nobody what he has, and gives him no fresh burst.
func TestAdjust(t *testing.T) {
	k := newKeyed(perSecond(1, 10), 100)
	for range 10 {
		k.allow(1, start)
	}
	for range 4 {
		k.allow(2, start)
	}
	k.adjust(perSecond(10, 100), start)
	ok, wait := k.allow(1, start)
	require.False(t, ok)
	require.InDelta(t, 100*time.Millisecond, wait, float64(time.Millisecond), "the new rate holds")
	for range 6 {
		ok, _ = k.allow(2, start)
		require.True(t, ok)
	}
	ok, _ = k.allow(2, start)
	require.False(t, ok, "what was left is left, and no more")
	k.adjust(perSecond(10, 1), start.Add(time.Hour))
	ok, _ = k.allow(1, start.Add(time.Hour))
	require.True(t, ok)
	ok, _ = k.allow(1, start.Add(time.Hour))
	require.False(t, ok, "the smaller burst holds")
}

// A flood of keys that never fill up again neither grows the memory past its
// bound, nor gives an abuser a fresh bucket, nor shuts out who comes for the first
// time.
func TestFloodDoesNotFreeAnAbuser(t *testing.T) {
	const max = flood / 16 / shards * shards
	k := newKeyed(Rate{Events: 1, Per: time.Minute, Burst: 5}, max)
	now, allowed, asked, refused := start, 0, 0, 0
	for i := range uint64(flood) {
		now = now.Add(30 * time.Second / flood)
		if ok, _ := k.allow(hash(i+1), now); !ok {
			refused++
		}
		if i%(flood/6000) == 0 { // 200 calls a second
			asked++
			if ok, _ := k.allow(hash(0), now); ok {
				allowed++
			}
		}
	}
	require.LessOrEqual(t, k.len(), max)
	require.GreaterOrEqual(t, asked, 6000)
	require.Equal(t, 5, allowed, "one burst, and the first refill comes after a minute")
	require.Zero(t, refused, "first calls of the flood, and so of honest newcomers")
}

// Who fills the memory with spent buckets, which takes little where they refill
// slowly, shuts no newcomer out, and does not free those who have spent all.
func TestSpentBucketsShutNobodyOut(t *testing.T) {
	const max, abusers = 6400, 10 // few enough that no shard holds four of them
	k := newKeyed(Rate{Events: 1, Per: time.Hour, Burst: 4}, max)
	abuse := func() (let int) {
		for i := range uint64(abusers) {
			for range 10 {
				if ok, _ := k.allow(hash(1<<50+i), start); ok {
					let++
				}
			}
		}
		return let
	}
	require.Equal(t, 4*abusers, abuse())
	for i := range uint64(2 * max) {
		for range 3 {
			k.allow(hash(i), start)
		}
	}
	for i := range uint64(100_000) {
		ok, _ := k.allow(hash(1<<40+i), start)
		require.True(t, ok, "newcomer %d", i)
	}
	require.LessOrEqual(t, k.len(), max)
	require.Zero(t, abuse())
}

// Idle keys are forgotten as new ones come, without a timer.
func TestIdleBucketsGo(t *testing.T) {
	k := newKeyed(perSecond(10, 1), 1_000_000)
	now := start
	for i := range uint64(100_000) {
		now = now.Add(time.Millisecond) // 1,000 new keys a second, each full again after 0.1 s
		k.allow(hash(i), now)
	}
	require.Less(t, k.len(), 5000)
}

// hash spreads numbers as the limits' hash does.
func hash(n uint64) uint64 {
	n = (n ^ n>>30) * 0xbf58476d1ce4e5b9
	n = (n ^ n>>27) * 0x94d049bb133111eb
	return n ^ n>>31
}

func BenchmarkKeyed(b *testing.B) {
	k := newKeyed(perSecond(1e9, 1e9), 1<<20)
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		for i := uint64(0); pb.Next(); i++ {
			k.allow(hash(i%20_000), start)
		}
	})
}
