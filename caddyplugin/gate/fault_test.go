package gate

import (
	"context"
	"errors"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/seckill-edge/seckill/internal/order"
	"github.com/seckill-edge/seckill/internal/queue"
	"github.com/seckill-edge/seckill/internal/servicetest"
	"github.com/seckill-edge/seckill/lua"
)

// flakyPublisher refuses while broken and counts nothing itself.
type flakyPublisher struct {
	queue.Publisher
	broken atomic.Bool
}

func (p *flakyPublisher) Publish(ctx context.Context, to queue.Target, m queue.Message) error {
	if p.broken.Load() {
		return queue.ErrNotSent
	}
	return p.Publisher.Publish(ctx, to, m)
}

func TestWithoutABrokerReservationsGoOnInBoundedMemory(t *testing.T) {
	eachRedis(t, func(t *testing.T, url string) {
		publisher := &flakyPublisher{}
		publisher.broken.Store(true)
		b := setup(t, url, func(c *Config, d *Deps) {
			c.Buffer = 50
			publisher.Publisher = d.Publisher
			d.Publisher = publisher
		})
		b.preheat(t, 200)
		require.Equal(t, map[lua.Outcome]int{lua.Reserved: 200}, count(b.crowd(t, 200)))
		require.LessOrEqual(t, b.Stats().Carried, int64(50))
		require.GreaterOrEqual(t, b.Stats().LeftBehind, uint64(150))
		require.EqualValues(t, 200, b.snapshot(t).Outbox, "every order is in the outbox")

		publisher.broken.Store(false)
		servicetest.Eventually(t, func() bool { s := b.Stats(); return s.Carried == 0 && s.Forwarded+s.LeftBehind == 200 })
		servicetest.Eventually(t, func() bool { return uint64(b.snapshot(t).Outbox) == b.Stats().LeftBehind }, "exactly what was left behind stays in the outbox")
	})
}

func TestClosingUnderLoadForgetsNothing(t *testing.T) {
	eachRedis(t, func(t *testing.T, url string) {
		b := setup(t, url)
		b.preheat(t, 1000)
		var reserved sync.Map
		var n atomic.Int64
		var wg sync.WaitGroup
		for i := range 8 {
			wg.Go(func() {
				for j := range 1000 {
					d := b.click(t, string(rune('a'+i))+"-"+time.Duration(j).String())
					if d.Outcome != lua.Reserved {
						return
					}
					reserved.Store(d.OrderID, true)
					n.Add(1)
				}
			})
		}
		servicetest.Eventually(t, func() bool { return n.Load() > 50 })
		ctx, cancel := context.WithTimeout(t.Context(), servicetest.Patience())
		defer cancel()
		b.Close(ctx)
		wg.Wait()
		orders := b.published(t, int(n.Load()))
		reserved.Range(func(id, _ any) bool { require.Contains(t, orders, id); return true })
		s := b.snapshot(t)
		require.Equal(t, n.Load(), s.Frozen)
		require.Zero(t, s.Outbox)
	})
}

func TestRedisAbsentAtTheStart(t *testing.T) {
	if testing.Short() {
		return
	}
	server := servicetest.RedisForTest(t)
	require.NoError(t, server.Kill())
	b := setup(t, server.URL())
	require.Equal(t, lua.Unavailable, b.click(t, "a").Outcome)
	require.ErrorContains(t, b.Ready(t.Context()), "redis")
	require.NoError(t, server.Restart(t.Context()))
	b.preheat(t, 1)
	servicetest.Eventually(t, func() bool { return b.click(t, "a").Outcome == lua.Reserved })
	require.NoError(t, b.Ready(t.Context()))
}

func TestRedisKilledTheEntranceClosesAndReopens(t *testing.T) {
	if testing.Short() {
		return
	}
	server := servicetest.RedisForTest(t, "--appendfsync", "always")
	b := setup(t, server.URL())
	activity := b.preheat(t, 10)
	require.Equal(t, lua.Reserved, b.click(t, "a").Outcome)
	require.NoError(t, server.Kill())
	servicetest.Eventually(t, func() bool { return b.click(t, "b").Outcome == lua.Unavailable })
	// Now it is known: refused from memory, without a call.
	calls := b.Stats().Calls
	for range 1000 {
		d := b.click(t, "c")
		require.Equal(t, lua.Unavailable, d.Outcome)
		require.Positive(t, d.RetryAfter)
	}
	require.LessOrEqual(t, b.Stats().Calls, calls+20)
	_, err := b.Fate(t.Context(), product, "a", "01arz3ndektsv4rrffq69g5fav")
	require.ErrorIs(t, err, ErrUnavailable)

	require.NoError(t, server.Restart(t.Context()))
	servicetest.Eventually(t, func() bool { return !b.sales.all()[0].closed() })
	require.Equal(t, lua.Unavailable, b.click(t, "d").Outcome, "a server that has restarted sells nothing until its stock is proven")
	b.prove(t, activity)
	servicetest.Eventually(t, func() bool { return b.click(t, "d").Outcome == lua.Reserved })
}

// Redis forgets everything in mid-sale: nobody is told that there was no such
// product, and the entrance opens when the activity is back.
func TestRedisFlushedTheEntranceIsHeld(t *testing.T) {
	eachRedis(t, func(t *testing.T, url string) {
		b := setup(t, url)
		b.preheat(t, 10)
		require.Equal(t, lua.Reserved, b.click(t, "a").Outcome)
		require.NoError(t, b.redis.FlushAll(t.Context()).Err())
		for range 20 {
			require.Equal(t, lua.Unavailable, b.click(t, "b").Outcome)
		}
		servicetest.Eventually(t, func() bool { return b.sales.all()[0].gone.Load() })
		require.Equal(t, lua.Unavailable, b.click(t, "b").Outcome)
		view, outcome := b.View(t.Context(), product)
		require.Equal(t, lua.Reserved, outcome)
		require.False(t, view.Fresh)
		b.preheat(t, 5)
		servicetest.Eventually(t, func() bool { return b.click(t, "b").Outcome == lua.Reserved })
	})
}

// The backend that proves a stock asks the edges what they carry.
func TestTheEdgeSaysWhatItCarries(t *testing.T) {
	eachRedis(t, func(t *testing.T, url string) {
		publisher := &flakyPublisher{}
		publisher.broken.Store(true)
		b := setup(t, url, func(_ *Config, d *Deps) {
			publisher.Publisher = d.Publisher
			d.Publisher = publisher
		})
		a := b.preheat(t, 10)
		word := func(epoch, carried int64) func() bool {
			return func() bool {
				edges, err := lua.Presence(t.Context(), b.redis, product)
				require.NoError(t, err)
				return len(edges) == 1 && edges[0].ID == b.id && edges[0].Epoch == epoch && edges[0].Carried == carried
			}
		}
		require.Equal(t, lua.Reserved, b.click(t, "a").Outcome)
		require.Equal(t, lua.Reserved, b.click(t, "b").Outcome)
		servicetest.Eventually(t, word(1, 2))
		epoch, _, err := lua.SetState(t.Context(), b.redis, product, a.ID, lua.OnHold)
		require.NoError(t, err)
		publisher.broken.Store(false)
		servicetest.Eventually(t, word(epoch, 0))
		b.Close(t.Context())
		edges, err := lua.Presence(t.Context(), b.redis, product)
		require.NoError(t, err)
		require.Empty(t, edges)
	})
}

func TestRedisSlowTheBuyerIsQueuedAndLearnsTheOutcome(t *testing.T) {
	if testing.Short() {
		return
	}
	server := servicetest.RedisForTest(t)
	b := setup(t, server.URL(), func(c *Config, _ *Deps) { c.ReserveTimeout = servicetest.Scaled(50 * time.Millisecond) })
	b.preheat(t, 2, func(a *lua.Activity) { a.Limit = 2 })
	servicetest.Eventually(t, func() bool { return b.click(t, "a").Outcome == lua.Reserved })

	before := b.Stats().Late // on a slow machine the first click was late, too
	require.NoError(t, server.Pause())
	b1, b2 := b.click(t, "b1"), Decision{}
	require.Equal(t, lua.Reserved, b1.Outcome, "told queued")
	require.NotEmpty(t, b1.OrderID)
	require.Equal(t, before+1, b.Stats().Late)
	require.NoError(t, server.Resume())

	fate := func(user, id string) Fate {
		f, err := b.Fate(t.Context(), product, user, id)
		if errors.Is(err, ErrUnavailable) {
			return Fate{}
		}
		require.NoError(t, err)
		return f
	}
	servicetest.Eventually(t, func() bool { return b.snapshot(t).Frozen == 2 })
	require.Equal(t, order.Queued, fate("b1", b1.OrderID).State)
	servicetest.Eventually(t, func() bool { return b.Stats().LateOutcomes[lua.Reserved] == before+1 })
	require.Contains(t, b.published(t, 2), b1.OrderID, "a late reservation is forwarded like any other")

	// A late click that is refused: its buyer is told, not left queued.
	servicetest.Eventually(t, func() bool {
		require.NoError(t, lua.Confirm(t.Context(), b.redis, product, []string{"x"}))
		b.sales.all()[0].soldOut.Store(false) // as if this edge had not heard of it yet
		require.NoError(t, server.Pause())
		b2 = b.click(t, "b2")
		require.NoError(t, server.Resume())
		return b2.Outcome == lua.Reserved
	})
	servicetest.Eventually(t, func() bool { return fate("b2", b2.OrderID).State == order.Rejected })
	require.Equal(t, order.Reason("sold_out"), fate("b2", b2.OrderID).Reason)
	require.EqualValues(t, 1, b.Stats().LateOutcomes[lua.SoldOut])
	_, err := b.Fate(t.Context(), product, "b1", b2.OrderID)
	require.ErrorIs(t, err, ErrNoOrder)
}

// replyEater forwards to Redis and, when told to, cuts the connection after a
// request has gone through and before its reply comes back.
type replyEater struct {
	listener net.Listener
	target   string
	eat      atomic.Bool
	wg       sync.WaitGroup
}

func startReplyEater(t *testing.T, target string) *replyEater {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	p := &replyEater{listener: l, target: target}
	p.wg.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			p.wg.Go(func() { p.serve(c) })
		}
	})
	t.Cleanup(func() { _ = l.Close(); p.wg.Wait() })
	return p
}

func (p *replyEater) serve(client net.Conn) {
	server, err := net.Dial("tcp", p.target)
	if err != nil {
		_ = client.Close()
		return
	}
	var wg sync.WaitGroup
	wg.Go(func() { _, _ = io.Copy(server, client); _ = server.Close() })
	buf := make([]byte, 64<<10)
	for {
		n, err := server.Read(buf)
		if err != nil || p.eat.CompareAndSwap(true, false) {
			break
		}
		if _, err := client.Write(buf[:n]); err != nil {
			break
		}
	}
	_ = client.Close()
	_ = server.Close()
	wg.Wait()
}

func TestALostReplyTakesNoSecondUnit(t *testing.T) {
	if testing.Short() {
		return
	}
	server := servicetest.RedisForTest(t)
	proxy := startReplyEater(t, server.Addr())
	b := setup(t, "redis://"+proxy.listener.Addr().String())
	b.preheat(t, 100)
	require.Equal(t, lua.Reserved, b.click(t, "warm-up").Outcome)
	for i := range 10 {
		servicetest.Eventually(t, func() bool { return !b.sales.all()[0].closed() })
		proxy.eat.Store(true)
		d := b.click(t, "buyer-"+string(rune('a'+i)))
		require.Equal(t, lua.Reserved, d.Outcome)
		// A look may have been the one that was eaten; then the click was not.
	}
	require.EqualValues(t, 11, b.snapshot(t).Frozen)
	require.Positive(t, b.Stats().CallErrors)
	b.published(t, 11)
	_ = b.redis.Close() // ends the proxy's connections before its own end
}
