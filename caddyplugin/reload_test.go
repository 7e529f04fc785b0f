package caddyplugin

import (
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/seckill-edge/seckill/internal/servicetest"
	"github.com/seckill-edge/seckill/lua"
)

// crowd buys without a pause, every buyer once, until it is told to stop.
type crowd struct {
	e       *edge
	buyers  sync.WaitGroup
	stopped atomic.Bool
	mu      sync.Mutex
	granted map[string]string
}

func (e *edge) crowd(size int) *crowd {
	c := &crowd{e: e, granted: make(map[string]string)}
	for worker := range size {
		c.buyers.Go(func() {
			for n := 0; !c.stopped.Load(); n++ {
				c.buy(fmt.Sprintf("user-%d-%d", worker, n))
			}
		})
	}
	return c
}

// buy asks until it is answered: a reload closes idle connections, and a client
// may meet one that is just being closed. The buyer who does not know whether he
// was heard asks again and is told which order he has.
func (c *crowd) buy(user string) {
	for range 20 {
		r, err := c.e.ask("POST", "/seckill/1001", user, "")
		if err != nil || r.status == 503 {
			continue
		}
		id, _ := r.document(c.e.t)["order_id"].(string)
		if (r.status != 202 && r.status != 409) || id == "" {
			c.e.t.Errorf("%s: %d %s", user, r.status, r.body)
			return
		}
		c.mu.Lock()
		c.granted[user] = id
		c.mu.Unlock()
		return
	}
	c.e.t.Errorf("%s was never answered", user)
}

func (c *crowd) count() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.granted)
}

// sold waits until so many more have bought.
func (c *crowd) sold(more int) {
	c.e.t.Helper()
	enough := c.count() + more
	servicetest.Eventually(c.e.t, func() bool { return c.count() >= enough || c.e.t.Failed() })
}

func (c *crowd) stop() map[string]string {
	c.stopped.Store(true)
	c.buyers.Wait()
	return c.granted
}

// A reload that does not concern the app keeps the gate; one that does drains
// the old gate. Neither loses an order.
func TestReloadUnderLoad(t *testing.T) {
	for name, options := range map[string]func(round int) string{
		"same app":    func(int) string { return "" },
		"another app": func(round int) string { return fmt.Sprintf("linger %dms", 5+round) },
	} {
		t.Run(name, func(t *testing.T) {
			onEach(t, func(t *testing.T, e *edge) {
				e.sell(1_000_000, 1)
				e.load(e.config(options(0), byHeader))
				e.waitOpen()
				c := e.crowd(8)
				c.sold(50)
				first := e.theGate()
				for round := 1; round <= 4; round++ {
					e.load(e.config(options(round), byHeader+"\n\theader X-Round "+strconv.Itoa(round)))
					require.Equal(t, name == "same app", first == e.theGate(), "the gate is kept if nothing changed")
					c.sold(50)
				}
				granted := c.stop()
				require.Equal(t, "4", e.must("GET", "/seckill/1001", "", "").header.Get("X-Round"))
				e.stop()
				engines.Range(func(any, any) bool { t.Error("an engine is left"); return true })
				e.queued(granted)

				s, found, err := lua.Audit(t.Context(), e.store, "1001")
				require.NoError(t, err)
				require.True(t, found)
				require.EqualValues(t, len(granted), s.Frozen)
				require.EqualValues(t, 0, s.Outbox, "what the broker confirmed has left the outbox")
			})
		})
	}
}

func TestMetricsGoOnAfterReload(t *testing.T) {
	onEach(t, func(t *testing.T, e *edge) {
		e.sell(10, 1)
		e.load(e.config("", byHeader))
		e.waitOpen()
		const reserved, soldOut = `caddy_seckill_answers_total{outcome="reserved"}`, `caddy_seckill_answers_total{outcome="sold_out"}`
		require.Equal(t, 202, e.must("POST", "/seckill/1001", "alice", "").status)
		require.Equal(t, "1", e.figure(reserved))
		require.Equal(t, "1", e.figure("caddy_seckill_ready"))
		e.load(e.config("", byHeader+"\n\theader X-Reloaded yes"))
		require.Equal(t, 202, e.must("POST", "/seckill/1001", "bob", "").status)
		require.Equal(t, "2", e.figure(reserved))
		require.Equal(t, "0", e.figure(soldOut))
	})
}

func TestTwoHandlers(t *testing.T) {
	onEach(t, func(t *testing.T, e *edge) {
		e.sell(10, 1)
		e.load(e.config("", `seckill /vip/* {
		path_prefix /vip
		identity http.request.header.X-User-Id
		insecure_client_identity on
	}
	seckill {
		identity http.request.cookie.user
		insecure_client_identity on
	}
	respond elsewhere 200`))
		e.waitOpen()
		r := e.must("POST", "/vip/1001", "alice", "")
		require.Equal(t, 202, r.status)
		require.Contains(t, r.header.Get("Location"), "/vip/1001/orders/")
		require.Equal(t, 401, e.must("POST", "/seckill/1001", "bob", "").status)
		require.Equal(t, "elsewhere", string(e.must("GET", "/other", "", "").body))
		require.Equal(t, 200, e.must("GET", r.header.Get("Location"), "alice", "").status)
	})
}
