package caddyplugin

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/seckill-edge/seckill/lua"
)

// Of a buyer's orders that were given back eight are remembered, and the tickets of
// the others buy nothing more for all that, in whatever order they were given back.
func TestTicketOfAForgottenOrder(t *testing.T) {
	for name, newest := range map[string]bool{"the oldest": false, "the newest": true} {
		t.Run(name, func(t *testing.T) {
			onPairs(t, func(t *testing.T, p *pair) {
				const orders = 12
				p.sell(50, orders)
				var texts, ids []string
				for i := range orders {
					texts = append(texts, p.ticket(t, i%2, "alice", "1001"))
				}
				slices.Sort(texts) // by the time of the order's id
				for i, text := range texts {
					r := p.buy(t, i%2, click{user: "alice", product: "1001", ticket: text})
					require.Equal(t, 202, r.StatusCode)
					ids = append(ids, document(t, r)["order_id"].(string))
				}
				if newest {
					slices.Reverse(ids)
				}
				for _, id := range ids {
					moved, err := lua.Release(t.Context(), p.store, "1001", lua.MarkCancelled, []lua.Move{{UserID: "alice", OrderID: id}})
					require.NoError(t, err)
					require.Equal(t, []lua.Moved{lua.Done}, moved)
				}
				for i, text := range texts {
					r := p.buy(t, i%2, click{user: "alice", product: "1001", ticket: text})
					if i < orders-8 {
						require.Equal(t, "urn:seckill:ticket_used", requireProblem(t, r, 403, int(lua.NoTicket))["type"])
					} else {
						require.Equal(t, text[:26], document(t, r)["order_id"])
					}
				}
				require.EqualValues(t, 50, p.audit(t).Available)
				fresh := p.buy(t, 0, click{user: "alice", product: "1001", ticket: p.ticket(t, 0, "alice", "1001")})
				require.Equal(t, 202, fresh.StatusCode, "who has given back much may buy again")
				require.EqualValues(t, 49, p.audit(t).Available)
			})
		})
	}
}
