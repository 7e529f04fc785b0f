package gate

import (
	"fmt"
	"maps"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/seckill-edge/seckill/internal/order"
	"github.com/seckill-edge/seckill/internal/servicetest"
	"github.com/seckill-edge/seckill/lua"
)

// ending is what must not change of a fate once it is final.
type ending struct {
	State  order.State
	Reason order.Reason
	Final  bool
}

// endings asks an edge for the orders of the buyers.
func (b *bench) endings(t *testing.T, orders map[string]string) map[string]ending {
	t.Helper()
	said := make(map[string]ending, len(orders))
	for user, id := range orders {
		var f Fate
		servicetest.Eventually(t, func() bool {
			var err error
			f, err = b.Fate(t.Context(), product, user, id)
			require.NotErrorIs(t, err, ErrNoOrder)
			return err == nil
		})
		said[user] = ending{f.State, f.Reason, f.Final}
	}
	return said
}

func counted(said map[string]ending) map[ending]int {
	n := make(map[ending]int)
	for _, e := range said {
		n[e]++
	}
	return n
}

// standstill is edges of one Redis that has told n buyers of the first one "queued"
// while it stood still, for five units; rule is an ACL rule that holds from before.
// Their clock may be put ahead.
type standstill struct {
	server *servicetest.Redis
	ahead  atomic.Int64
	edge   func() *bench
	a, b   *bench
	orders map[string]string // buyer → order id
}

func stand(t *testing.T, n int, rule string) *standstill {
	t.Helper()
	w := &standstill{server: servicetest.RedisForTest(t), orders: make(map[string]string)}
	w.edge = func() *bench {
		return setup(t, w.server.URL(), func(c *Config, d *Deps) {
			c.ReserveTimeout, c.Surplus = servicetest.Scaled(50*time.Millisecond), -1
			c.ResolveWithin = 5 * time.Minute // by a clock that is put ahead: nobody waits for it
			d.Now = func() time.Time { return time.Now().Add(time.Duration(w.ahead.Load())) }
		})
	}
	w.a, w.b = w.edge(), w.edge()
	w.a.preheat(t, 6)
	servicetest.Eventually(t, func() bool { return w.a.click(t, "first").Outcome == lua.Reserved })
	w.acl(t, rule)
	require.NoError(t, w.server.Pause())
	t.Cleanup(func() { _ = w.server.Resume() })
	before := w.a.Stats().Late
	for i, d := range w.a.crowd(t, n) {
		require.Equal(t, lua.Reserved, d.Outcome, "told queued")
		w.orders[fmt.Sprintf("buyer-%d", i)] = d.OrderID
	}
	require.EqualValues(t, n, w.a.Stats().Late-before)
	return w
}

func (w *standstill) acl(t *testing.T, rule string) {
	t.Helper()
	require.NoError(t, w.a.redis.Do(t.Context(), "ACL", "SETUSER", "default", rule).Err())
}

// Redis stands still while sixty buyers are told "queued" for five units. Every edge
// tells each of them the same end: the one that took the click before it has forgotten
// it and after, another, and one that starts later. Streams tell it too.
func TestAnEndIsTheSameOnEveryEdgeAndStays(t *testing.T) {
	if testing.Short() {
		return
	}
	w := stand(t, 60, "+@all")
	streams := make(map[string]*Stream)
	for user, id := range w.orders {
		s, err := w.a.Follow(product, user, Fate{OrderID: id, State: order.Queued})
		require.NoError(t, err)
		t.Cleanup(s.Close)
		streams[user] = s
	}
	require.NoError(t, w.server.Resume())
	ends := map[ending]int{{order.Queued, "", false}: 5, {order.Rejected, "sold_out", true}: 55}
	servicetest.Eventually(t, func() bool { return maps.Equal(counted(w.a.endings(t, w.orders)), ends) })
	said := w.a.endings(t, w.orders)
	require.Equal(t, said, w.b.endings(t, w.orders), "another edge, before resolve_by")
	for user, end := range said {
		if end.Final {
			f, more := next(t, streams[user])
			require.True(t, more)
			require.Equal(t, ending{f.State, f.Reason, f.Final}, end)
		}
	}

	w.ahead.Store(int64(lostFor * 3 / 4))
	require.Equal(t, said, w.a.endings(t, w.orders), "the same edge, after resolve_by")
	another := lua.Request{OrderID: w.orders["buyer-0"], UserID: "x"} // the old ones are forgotten
	w.a.late.add(product, newTicket(another, w.a.deps.Now()))
	_, remembered := w.a.late.get(product, "buyer-1", w.orders["buyer-1"])
	require.False(t, remembered)
	for name, edge := range map[string]*bench{"that has forgotten": w.a, "another": w.b, "a new one": w.edge()} {
		require.Equal(t, said, edge.endings(t, w.orders), "the edge %s", name)
	}
}

// An end that cannot be noted is told to nobody. Once it can, every edge tells it; if
// that is after resolve_by, all have told before that the order is lost, and stay at it.
func TestAnEndThatIsNotNotedIsToldByNobody(t *testing.T) {
	if testing.Short() {
		return
	}
	for name, tc := range map[string]struct {
		tooLate bool
		reason  order.Reason
	}{"in time": {false, "sold_out"}, "too late": {true, order.ReasonLost}} {
		t.Run(name, func(t *testing.T) {
			w := stand(t, 8, "-zadd")
			require.NoError(t, w.server.Resume())
			told := map[ending]int{{order.Queued, "", false}: 8}
			servicetest.Eventually(t, func() bool { return w.a.Stats().LateOutcomes[lua.SoldOut] == 3 })
			require.Equal(t, told, counted(w.a.endings(t, w.orders)))
			require.Equal(t, told, counted(w.b.endings(t, w.orders)))
			told = map[ending]int{{order.Queued, "", false}: 5, {order.Rejected, tc.reason, true}: 3}
			if tc.tooLate {
				w.ahead.Store(int64(w.a.cfg.ResolveWithin))
				require.Equal(t, told, counted(w.a.endings(t, w.orders)))
			}
			w.acl(t, "+zadd")
			for _, edge := range []*bench{w.a, w.b, w.edge()} {
				servicetest.Eventually(t, func() bool { return maps.Equal(told, counted(edge.endings(t, w.orders))) })
			}
			w.ahead.Store(int64(lostFor * 3 / 4))
			for _, edge := range []*bench{w.a, w.b, w.edge()} {
				require.Equal(t, told, counted(edge.endings(t, w.orders)))
			}
		})
	}
}
