package caddyplugin

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"

	"github.com/seckill-edge/seckill/caddyplugin/gate"
	"github.com/seckill-edge/seckill/internal/servicetest"
	"github.com/seckill-edge/seckill/lua"
)

// pair is two edges on the same servers with the same keys, which ask for
// tickets.
type pair struct {
	*edge // for its servers only
	edges [2]*Handler
}

func onPairs(t *testing.T, test func(t *testing.T, p *pair)) {
	onEach(t, func(t *testing.T, e *edge) {
		p := &pair{edge: e}
		for i := range p.edges {
			made, err := newEngine(settings{
				redis: e.redis, rabbitmq: e.rabbitmq,
				// Shared machines stall: what is not about the time-out must not meet it.
				gate: gate.Config{TicketLife: time.Minute, ReserveTimeout: 5 * time.Second},
			}, zap.NewNop())
			require.NoError(t, err)
			t.Cleanup(func() { require.NoError(t, made.Destruct()) })
			p.edges[i] = &Handler{
				PathPrefix: defaultPrefix, gate: made.gate, identity: newIdentity(""), tickets: newTestTickets(t), RequireTicket: true,
			}
		}
		test(t, p)
	})
}

// forwarded is the orders that both edges have handed to the broker.
func (p *pair) forwarded() (n uint64) {
	for _, h := range p.edges {
		n += h.gate.(*gate.Gate).Stats().Forwarded
	}
	return n
}

// ticket fetches one.
func (p *pair) ticket(t *testing.T, edge int, user, product string) string {
	t.Helper()
	var text string
	servicetest.Eventually(t, func() bool { // until the edge has connected
		r := serveAs(t, p.edges[edge], httptest.NewRequest(http.MethodPost, "/seckill/"+product+"/ticket", nil), user)
		if r.StatusCode == http.StatusOK {
			text = document(t, r)["ticket"].(string)
		}
		return r.StatusCode == http.StatusOK
	})
	return text
}

// click is one purchase; key is its Idempotency-Key, empty for none.
type click struct {
	user, product, ticket, key string
	quantity                   int
}

func (p *pair) buy(t *testing.T, edge int, c click) *http.Response {
	t.Helper()
	r := httptest.NewRequest(http.MethodPost, "/seckill/"+c.product, strings.NewReader(fmt.Sprintf(`{"quantity":%d}`, max(1, c.quantity))))
	if c.ticket != "" {
		r.Header.Set(ticketHeader, c.ticket)
	}
	if c.key != "" {
		r.Header.Set("Idempotency-Key", c.key)
	}
	return serveAs(t, p.edges[edge], r, c.user)
}

func (p *pair) audit(t *testing.T) lua.Snapshot {
	t.Helper()
	s, found, err := lua.Audit(t.Context(), p.store, "1001")
	require.NoError(t, err)
	require.True(t, found)
	require.False(t, s.Damaged)
	return s
}

// A ticket that is played a hundred times at two edges at once buys one order,
// whatever the clicks ask for, and whatever becomes of the order and the sale.
func TestTicketReplayed(t *testing.T) {
	onPairs(t, func(t *testing.T, p *pair) {
		p.sell(50, 5)
		text := p.ticket(t, 0, "alice", "1001")
		var mu sync.Mutex
		answers := map[string]int{}
		var replays sync.WaitGroup
		for i := range 100 {
			replays.Go(func() {
				c := click{user: "alice", product: "1001", ticket: text, quantity: 1 + i%3}
				if i%5 == 0 {
					c.key = fmt.Sprintf("key-%d", i)
				}
				r := p.buy(t, i%2, c)
				d := document(t, r)
				mu.Lock()
				defer mu.Unlock()
				answers[fmt.Sprint(r.StatusCode, " ", d["order_id"], " ", d["quantity"])]++
			})
		}
		replays.Wait()
		s := p.audit(t)
		entries, err := lua.RecordOf(t.Context(), p.store, "1001", "alice")
		require.NoError(t, err)
		require.Len(t, entries, 1)
		bought := entries[0]
		require.Equal(t, map[string]int{fmt.Sprint("202 ", bought.OrderID, " ", bought.Quantity): 100}, answers)
		require.EqualValues(t, 50-bought.Quantity, s.Available)
		p.queued(map[string]string{"alice": bought.OrderID})

		again := func(when string) {
			t.Helper()
			before := p.audit(t)
			for edge := range p.edges {
				for _, key := range []string{"", "another-key"} {
					r := p.buy(t, edge, click{user: "alice", product: "1001", ticket: text, key: key, quantity: 4})
					require.Equal(t, 202, r.StatusCode, when)
					d := document(t, r)
					require.Equal(t, bought.OrderID, d["order_id"], when)
					require.EqualValues(t, bought.Quantity, d["quantity"], when)
				}
			}
			require.Equal(t, before.Available, p.audit(t).Available, when)
		}
		again("bought")
		move := []lua.Move{{UserID: "alice", OrderID: bought.OrderID}}
		moved, err := lua.Release(t.Context(), p.store, "1001", lua.MarkCancelled, move)
		require.NoError(t, err)
		require.Equal(t, []lua.Moved{lua.Done}, moved)
		again("cancelled")
		_, _, err = lua.SetState(t.Context(), p.store, "1001", "a1", lua.Closed)
		require.NoError(t, err)
		for _, h := range p.edges {
			servicetest.Eventually(t, func() bool { return h.gate.Offer(t.Context(), "1001").Outcome == lua.Ended })
		}
		again("closed")
		require.EqualValues(t, 1, p.forwarded(), "the order was forwarded once")
	})
}

// A key names an order, and so does a ticket: an order has one of each.
func TestTicketsAndKeys(t *testing.T) {
	onPairs(t, func(t *testing.T, p *pair) {
		p.sell(50, 5)
		one, two := p.ticket(t, 0, "alice", "1001"), p.ticket(t, 1, "alice", "1001")
		require.NotEqual(t, one, two)
		buy := func(edge int, ticket, key string, quantity int) (int, any) {
			r := p.buy(t, edge, click{user: "alice", product: "1001", ticket: ticket, key: key, quantity: quantity})
			return r.StatusCode, document(t, r)["order_id"]
		}
		status, first := buy(0, one, "k", 1)
		require.Equal(t, 202, status)
		for name, tc := range map[string]struct {
			ticket, key string
			quantity    int
			status      int
			order       any
		}{
			"the same again":             {one, "k", 1, 202, first},
			"the ticket without the key": {one, "", 2, 202, first},
			"the key and another ticket": {two, "k", 1, 202, first},
			"another body":               {two, "k", 2, 422, nil},
			"its ticket, another body":   {one, "k", 2, 422, nil},
			"the ticket, another key":    {one, "l", 3, 202, first},
		} {
			for edge := range p.edges {
				status, id := buy(edge, tc.ticket, tc.key, tc.quantity)
				require.Equal(t, tc.status, status, name)
				require.Equal(t, tc.order, id, name)
			}
		}
		require.EqualValues(t, 49, p.audit(t).Available)
		status, second := buy(1, two, "", 2)
		require.Equal(t, 202, status, "the other ticket has bought nothing yet")
		require.NotEqual(t, first, second)
		require.EqualValues(t, 47, p.audit(t).Available)
		servicetest.Eventually(t, func() bool { return p.forwarded() == 2 })
	})
}

// The last unit is gone: who has it is told so again, others are not.
func TestTicketOfTheLastUnit(t *testing.T) {
	onPairs(t, func(t *testing.T, p *pair) {
		p.sell(1, 1)
		alices, bobs := p.ticket(t, 0, "alice", "1001"), p.ticket(t, 1, "bob", "1001")
		bought := p.buy(t, 0, click{user: "alice", product: "1001", ticket: alices})
		require.Equal(t, 202, bought.StatusCode)
		id := document(t, bought)["order_id"]
		for edge := range p.edges {
			requireProblem(t, p.buy(t, edge, click{user: "bob", product: "1001", ticket: bobs}), 410, int(lua.SoldOut))
			require.Equal(t, id, document(t, p.buy(t, edge, click{user: "alice", product: "1001", ticket: alices}))["order_id"])
			r := serveAs(t, p.edges[edge], httptest.NewRequest(http.MethodPost, "/seckill/1001/ticket", nil), "carol")
			requireProblem(t, r, 410, int(lua.SoldOut))
		}
	})
}

// What others may not do with alice's ticket, and she may not do with it herself.
func TestTicketMisused(t *testing.T) {
	onPairs(t, func(t *testing.T, p *pair) {
		p.sell(50, 5)
		now := time.Now().Truncate(time.Millisecond)
		heat := func(id, product string, start time.Duration) {
			done, err := lua.Preheat(t.Context(), p.store, lua.Activity{
				ID: id, ProductID: product, Title: "Phone", Start: now.Add(start), End: now.Add(2 * time.Hour), Total: 9, Limit: 5, State: lua.Open,
			})
			require.NoError(t, err)
			require.Equal(t, lua.Loaded, done)
		}
		heat("b1", "1002", -time.Minute)
		heat("c1", "1003", time.Hour)
		good := p.ticket(t, 0, "alice", "1001")
		refused := func(edge int, c click, kind string) {
			t.Helper()
			d := requireProblem(t, p.buy(t, edge, c), 403, int(lua.NoTicket))
			require.Equal(t, "urn:seckill:ticket_"+kind, d["type"])
		}
		for edge := range p.edges {
			p.ticket(t, edge, "warm", "1002") // connected, and the product is known
			refused(edge, click{user: "alice", product: "1001"}, "missing")
			refused(edge, click{user: "bob", product: "1001", ticket: good}, "other_buyer")
			refused(edge, click{user: "alice", product: "1002", ticket: good}, "other_product")
			refused(edge, click{user: "alice", product: "1001", ticket: good[:60]}, "invalid")
			refused(edge, click{user: "alice", product: "1001", ticket: good[:len(good)-1] + "A"}, "invalid")

			early := serveAs(t, p.edges[edge], httptest.NewRequest(http.MethodPost, "/seckill/1003/ticket", nil), "alice")
			require.NotEmpty(t, early.Header.Get("Retry-After"))
			requireProblem(t, early, 403, int(lua.NotStarted))
		}
		require.EqualValues(t, 50, p.audit(t).Available, "none of it took a unit")

		// The product's next sale is none of the ticket's business.
		_, _, err := lua.SetState(t.Context(), p.store, "1001", "a1", lua.Closed)
		require.NoError(t, err)
		heat("a2", "1001", -time.Minute)
		for edge, h := range p.edges {
			servicetest.Eventually(t, func() bool {
				o := h.gate.Offer(t.Context(), "1001")
				return o.ActivityID == "a2" && o.Outcome == lua.Reserved
			})
			refused(edge, click{user: "alice", product: "1001", ticket: good}, "other_activity")
		}
		require.EqualValues(t, 9, p.audit(t).Available)
	})
}
