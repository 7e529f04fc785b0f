package caddyplugin

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/seckill-edge/seckill/internal/servicetest"
	"github.com/seckill-edge/seckill/lua"
)

// The whole signed path, as an operator configures it: a token says who is buying,
// a ticket that he came after the start.
func TestSignedPurchase(t *testing.T) {
	onEach(t, func(t *testing.T, e *edge) {
		t.Setenv("TEST_TICKET_SECRET", ticketSecret)
		e.sell(10, 1)
		e.load(e.config("ticket_keys {env.TEST_TICKET_SECRET}\n\t\tticket_life 3s", tokenSite(t)+"\n\tseckill {\n\t\trequire_ticket on\n\t}"))
		e.waitOpen()
		ask := func(path, user, ticket string, key ...string) reply {
			return e.again(func() (reply, error) {
				r, err := http.NewRequest(http.MethodPost, "http://"+e.site+path, strings.NewReader(""))
				require.NoError(t, err)
				r.Header.Set("X-User-Id", "mallory")
				if user != "" {
					r.Header.Set("Authorization", "Bearer "+login(t, user))
				}
				if ticket != "" {
					r.Header.Set("Seckill-Ticket", ticket)
				}
				r.Header["Idempotency-Key"] = key
				return e.do(r)
			})
		}
		ticketOf := func(user string) string {
			r := ask("/seckill/1001/ticket", user, "")
			require.Equal(t, 200, r.status, "%s", r.body)
			return r.document(t)["ticket"].(string)
		}
		require.Equal(t, 401, ask("/seckill/1001/ticket", "", "").status)
		require.Equal(t, 401, ask("/seckill/1001", "", ticketOf("alice")).status, "a ticket is no login")
		missing := ask("/seckill/1001", "alice", "")
		require.Equal(t, 403, missing.status)
		require.EqualValues(t, lua.NoTicket, missing.document(t)["code"])
		require.Equal(t, 403, ask("/seckill/1001", "bob", ticketOf("alice")).status)

		hers := ticketOf("alice")
		bought := ask("/seckill/1001", "alice", hers, "a-lost-answer")
		require.Equal(t, 202, bought.status, "%s", bought.body)
		id := bought.document(t)["order_id"].(string)
		again := ask("/seckill/1001", "alice", ticketOf("alice"))
		require.Equal(t, 409, again.status, "another ticket does not lift the limit per buyer")
		require.Equal(t, id, again.document(t)["order_id"])

		r := ask("/seckill/1001/ticket", "carol", "")
		require.Equal(t, 200, r.status)
		expires, err := time.Parse(time.RFC3339, r.document(t)["expires"].(string))
		require.NoError(t, err)
		servicetest.Eventually(t, func() bool { return !e.theGate().Offer(t.Context(), "1001").Now.Before(expires) })
		late := ask("/seckill/1001", "carol", r.document(t)["ticket"].(string))
		require.Equal(t, 403, late.status)
		require.Equal(t, "urn:seckill:ticket_expired", late.document(t)["type"])

		// Whoever has lost the answer hears of his order again, when he can have no
		// ticket any more, too; whoever has none buys nothing by that.
		for _, known := range []reply{
			ask("/seckill/1001", "alice", hers), ask("/seckill/1001", "alice", "", "a-lost-answer"),
			ask("/seckill/1001", "alice", "no ticket", "a-lost-answer"),
		} {
			require.Equal(t, 202, known.status, "%s", known.body)
			require.Equal(t, id, known.document(t)["order_id"])
		}
		require.Equal(t, 403, ask("/seckill/1001", "alice", "", "another-key").status)
		require.Equal(t, 403, ask("/seckill/1001", "bob", hers, "a-lost-answer").status)

		e.queued(map[string]string{"alice": id})
		left, err := e.store.Get(t.Context(), "seckill:stock:{1001}").Int()
		require.NoError(t, err)
		require.Equal(t, 9, left)
		require.Equal(t, "1", e.figure(`caddy_seckill_tickets_total{result="expired"}`))
		require.Equal(t, "5", e.figure(`caddy_seckill_answers_total{outcome="no_ticket"}`))
		require.NotContains(t, string(e.adminGet("/config/").body), ticketSecret)
		require.NotContains(t, string(e.adminGet("/config/").body), loginSecret)
	})
}
