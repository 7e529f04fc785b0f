package gate

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/seckill-edge/seckill/internal/order"
	"github.com/seckill-edge/seckill/internal/servicetest"
	"github.com/seckill-edge/seckill/lua"
)

// age makes streams look by themselves as seldom as they ever do, and waits until
// none of them is due soon.
func (b *bench) age(t *testing.T, streams ...*Stream) {
	t.Helper()
	servicetest.Eventually(t, func() bool {
		b.streams.mu.Lock()
		defer b.streams.mu.Unlock()
		old, soon := time.Now().Add(-time.Hour), time.Now().Add(followLate*3/4)
		all := true
		for _, s := range streams {
			s.made = old
			all = all && s.due.After(soon)
		}
		return all
	})
}

// TestReleasesOfOthersReadNothing: units that come back again and again wake up the
// streams of their own orders, not all of the product.
func TestReleasesOfOthersReadNothing(t *testing.T) {
	eachRedis(t, func(t *testing.T, url string) {
		var clock stopwatch
		b := setup(t, url, clock.on)
		b.preheat(t, 1000)
		const others, followed = 40, 300
		decisions := b.crowd(t, others+followed)
		var streams []*Stream
		for i, d := range decisions[others:] {
			streams = append(streams, b.follow(t, fmt.Sprintf("buyer-%d", others+i), d.OrderID))
		}
		servicetest.Eventually(t, func() bool {
			n, err := b.redis.PubSubNumSub(t.Context(), lua.Changes).Result()
			return err == nil && n[lua.Changes] == 1
		})
		b.age(t, streams...)
		clock.stop()
		before := b.Stats().Reads
		release := time.NewTicker(10 * time.Millisecond)
		defer release.Stop()
		for i, d := range decisions[:others] {
			<-release.C
			_, err := lua.Release(t.Context(), b.redis, product, lua.MarkRejected, []lua.Move{{UserID: fmt.Sprintf("buyer-%d", i), OrderID: d.OrderID}})
			require.NoError(t, err)
		}
		servicetest.Eventually(t, func() bool { return b.snapshot(t).Available == 1000-followed })
		// One round of all, which had begun before, is two reads.
		require.LessOrEqual(t, b.Stats().Reads-before, uint64(2))
	})
}

// TestProofIsLookedAt: what a backend has written while it proved the stock no script
// has told.
func TestProofIsLookedAt(t *testing.T) {
	eachRedis(t, func(t *testing.T, url string) {
		var clock stopwatch
		b := setup(t, url, clock.on)
		a := b.preheat(t, 10)
		d := b.click(t, "a")
		s := b.follow(t, "a", d.OrderID)
		b.age(t, s)
		text, err := b.redis.HGet(t.Context(), lua.KeysOf(product).Users, "a").Result()
		require.NoError(t, err)
		require.NoError(t, b.redis.HSet(t.Context(), lua.KeysOf(product).Users, "a", "c"+text[1:]).Err())
		clock.stop()
		b.prove(t, a)
		f, more := next(t, s)
		require.True(t, more)
		require.Equal(t, order.Created, f.State)
	})
}
