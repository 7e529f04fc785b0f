package gate

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/seckill-edge/seckill/internal/order"
	"github.com/seckill-edge/seckill/internal/servicetest"
	"github.com/seckill-edge/seckill/lua"
)

func (b *bench) follow(t *testing.T, user, id string) *Stream {
	t.Helper()
	f, err := b.Fate(t.Context(), product, user, id)
	require.NoError(t, err)
	s, err := b.Follow(product, user, f)
	require.NoError(t, err)
	t.Cleanup(s.Close)
	return s
}

// next waits for one fate; false if the stream has ended.
func next(t *testing.T, s *Stream) (Fate, bool) {
	t.Helper()
	timer := time.NewTimer(servicetest.Patience())
	defer timer.Stop()
	select {
	case f, more := <-s.Fates():
		return f, more
	case <-timer.C:
		require.FailNow(t, "the stream says nothing")
		return Fate{}, false
	}
}

// TestStream: each change comes, and the last one ends it.
func TestStream(t *testing.T) {
	eachRedis(t, func(t *testing.T, url string) {
		b := setup(t, url)
		b.preheat(t, 10)
		d := b.click(t, "a")
		s := b.follow(t, "a", d.OrderID)
		require.EqualValues(t, 1, b.Stats().Streams)
		move := []lua.Move{{UserID: "a", OrderID: d.OrderID, Reason: order.ReasonDuplicate}}
		_, err := lua.Settle(t.Context(), b.redis, product, lua.MarkCreated, move)
		require.NoError(t, err)
		f, more := next(t, s)
		require.True(t, more)
		require.Equal(t, standing{order.Created, false}, standing{f.State, f.Final})
		_, err = lua.Release(t.Context(), b.redis, product, lua.MarkRejected, move)
		require.NoError(t, err)
		f, more = next(t, s)
		require.True(t, more)
		require.Equal(t, standing{order.Rejected, true}, standing{f.State, f.Final})
		require.Equal(t, order.ReasonDuplicate, f.Reason)
		_, more = next(t, s)
		require.False(t, more)
		require.Zero(t, b.Stats().Streams)
		s.Close()
		servicetest.Eventually(t, func() bool {
			b.streams.mu.Lock()
			defer b.streams.mu.Unlock()
			return len(b.streams.followers) == 0
		}, "nobody follows, so nobody looks")
	})
}

// TestStreamsAreReadTogether: one command serves many streams.
func TestStreamsAreReadTogether(t *testing.T) {
	eachRedis(t, func(t *testing.T, url string) {
		b := setup(t, url)
		b.preheat(t, 1000)
		decisions := b.crowd(t, 600)
		var list []*Stream
		var moves []lua.Move
		for i, d := range decisions {
			user := fmt.Sprintf("buyer-%d", i)
			list = append(list, b.follow(t, user, d.OrderID))
			moves = append(moves, lua.Move{UserID: user, OrderID: d.OrderID})
		}
		before := b.Stats().Reads
		for part := range slices.Chunk(moves, 100) { // an embedded Redis takes its time
			_, err := lua.Settle(t.Context(), b.redis, product, lua.MarkSettled, part)
			require.NoError(t, err)
		}
		for _, s := range list {
			f, more := next(t, s)
			require.True(t, more)
			require.Equal(t, standing{order.Created, true}, standing{f.State, f.Final})
		}
		require.LessOrEqual(t, b.Stats().Reads-before, uint64(60), "3 a round, not 600")
		require.Zero(t, b.Stats().Streams)
	})
}

// TestStreamBounds: per edge and per buyer.
func TestStreamBounds(t *testing.T) {
	b := setup(t, "redis://127.0.0.1:1", func(c *Config, _ *Deps) { c.Streams, c.StreamsPerBuyer = 5, 2 })
	f := Fate{OrderID: "01kb7q3x5e8g9h0jkmnpqrstvw", State: order.Queued}
	var open []*Stream
	for _, user := range []string{"a", "a", "b", "b", "c"} {
		s, err := b.Follow(product, user, f)
		require.NoError(t, err)
		open = append(open, s)
		if user == "a" && len(open) == 2 {
			_, err = b.Follow("another product", "a", f)
			require.ErrorIs(t, err, ErrTooManyOfBuyer)
		}
	}
	_, err := b.Follow(product, "d", f)
	require.ErrorIs(t, err, ErrTooManyStreams)
	open[0].Close()
	open[0].Close()
	s, err := b.Follow(product, "a", f)
	require.NoError(t, err)
	require.EqualValues(t, 5, b.Stats().Streams)

	// The end of the gate ends them all and lets no further one in.
	ctx, cancel := context.WithTimeout(t.Context(), servicetest.Patience())
	defer cancel()
	b.Close(ctx)
	for _, s := range append(open, s) {
		_, more := <-s.Fates()
		require.False(t, more)
		s.Close()
	}
	require.Zero(t, b.Stats().Streams)
	_, err = b.Follow(product, "d", f)
	require.ErrorIs(t, err, ErrTooManyStreams)
}

// TestSlowReaderHearsTheLast: what nobody took is replaced by what came later.
func TestSlowReaderHearsTheLast(t *testing.T) {
	eachRedis(t, func(t *testing.T, url string) {
		b := setup(t, url)
		b.preheat(t, 10)
		d := b.click(t, "a")
		s := b.follow(t, "a", d.OrderID)
		move := []lua.Move{{UserID: "a", OrderID: d.OrderID}}
		for _, mark := range []lua.Mark{lua.MarkCreated, lua.MarkPaid} {
			_, err := lua.Settle(t.Context(), b.redis, product, mark, move)
			require.NoError(t, err)
			servicetest.Eventually(t, func() bool {
				b.streams.mu.Lock()
				defer b.streams.mu.Unlock()
				return s.seen.state == standings[mark].state
			})
		}
		f, more := next(t, s)
		require.True(t, more)
		require.Equal(t, order.Paid, f.State)
		_, more = next(t, s)
		require.False(t, more)
	})
}

// TestStreamOfForgottenOrder: an order that Redis has given to the archive ends
// its stream; one that Redis may have lost does not.
func TestStreamOfForgottenOrder(t *testing.T) {
	eachRedis(t, func(t *testing.T, url string) {
		b := setup(t, url)
		a := b.preheat(t, 10)
		d := b.click(t, "a")
		s := b.follow(t, "a", d.OrderID)
		_, _, err := lua.Hold(t.Context(), b.redis, a, "")
		require.NoError(t, err)
		servicetest.Eventually(t, func() bool { return !b.Views()[0].Proven() })
		record, err := b.redis.HGet(t.Context(), lua.KeysOf(product).Users, "a").Result()
		require.NoError(t, err)
		require.NoError(t, b.redis.Del(t.Context(), lua.KeysOf(product).Users).Err())
		reads := b.Stats().Reads
		servicetest.Eventually(t, func() bool { return b.Stats().Reads >= reads+3 })
		select {
		case <-s.Fates():
			require.FailNow(t, "the stream ended")
		default:
		}
		require.NoError(t, b.redis.HSet(t.Context(), lua.KeysOf(product).Users, "a", record).Err())
		require.NoError(t, b.redis.Del(t.Context(), lua.KeysOf(product).Activity).Err())
		b.preheatOver(t, a)
		_, more := next(t, s)
		require.False(t, more)
	})
}

// preheatOver puts an activity into Redis in place of whatever is there.
func (b *bench) preheatOver(t *testing.T, a lua.Activity) {
	t.Helper()
	k := lua.KeysOf(product)
	require.NoError(t, b.redis.Del(t.Context(), k.Activity, k.Stock, k.Frozen, k.Sold, k.Users, k.Outbox).Err())
	a.ID = "next"
	got, err := lua.Preheat(t.Context(), b.redis, a)
	require.NoError(t, err)
	require.Equal(t, lua.Loaded, got)
}
