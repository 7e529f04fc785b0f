package caddyplugin

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	"github.com/seckill-edge/seckill/caddyplugin/gate"
	"github.com/seckill-edge/seckill/caddyplugin/ticket"
	"github.com/seckill-edge/seckill/lua"
)

const ticketSecret = "what only the edges of this shop know"

// newTestTickets are tickets that live for a minute.
func newTestTickets(t testing.TB) *tickets {
	t.Helper()
	t.Setenv("TEST_TICKET_SECRET", ticketSecret)
	made, err := newTickets([]string{"{env.TEST_TICKET_SECRET}"}, 0)
	require.NoError(t, err)
	require.NoError(t, made.register(prometheus.NewRegistry()))
	return made
}

func ticketRequest() *http.Request {
	return httptest.NewRequest(http.MethodPost, "/seckill/1001/ticket", nil)
}

// noon is the time of offers in these tests.
var noon = time.Date(2026, 11, 11, 12, 0, 0, 0, time.UTC)

func TestGiveTicket(t *testing.T) {
	for name, tc := range map[string]struct {
		offer      gate.Offer
		status     int
		code       int
		retryAfter string
	}{
		"open":        {gate.Offer{ActivityID: "a1", Now: noon}, 200, 0, ""},
		"not started": {gate.Offer{Outcome: lua.NotStarted, RetryAfter: 1001 * time.Millisecond, ActivityID: "a1", Now: noon}, 403, -2, "2"},
		"ended":       {gate.Offer{Outcome: lua.Ended, ActivityID: "a1", Now: noon}, 410, -3, ""},
		"no product":  {gate.Offer{Outcome: lua.NoProduct}, 404, -5, ""},
		"sold out":    {gate.Offer{Outcome: lua.SoldOut, ActivityID: "a1", Now: noon}, 410, -6, ""},
		"held":        {gate.Offer{Outcome: lua.Held, RetryAfter: time.Second}, 503, -8, "1"},
		"unavailable": {gate.Offer{Outcome: lua.Unavailable, RetryAfter: time.Second}, 503, -14, "1"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScript()
			s.offer = tc.offer
			h := newTestHandler(s)
			h.tickets = newTestTickets(t)
			r := serve(t, h, ticketRequest())
			require.Equal(t, tc.retryAfter, r.Header.Get("Retry-After"))
			if tc.status != 200 {
				requireProblem(t, r, tc.status, tc.code)
				return
			}
			require.Equal(t, 200, r.StatusCode)
			require.Equal(t, "no-store", r.Header.Get("Cache-Control"))
			require.Equal(t, "application/json", r.Header.Get("Content-Type"))
			d := document(t, r)
			require.Equal(t, "2026-11-11T12:01:00.000Z", d["expires"])
			id, flaw := h.tickets.keys.Check(d["ticket"].(string), ticket.Holder{UserID: "alice", ProductID: "1001", ActivityID: "a1"}, noon)
			require.Equal(t, ticket.None, flaw)
			require.Equal(t, orderID, id)
		})
	}
}

func TestTicketPath(t *testing.T) {
	h := newTestHandler(newScript())
	require.Equal(t, 404, serve(t, h, ticketRequest()).StatusCode, "without keys there is no such thing")
	require.Equal(t, 404, serve(t, h, get("/seckill/1001/ticket")).StatusCode)
	h.tickets = newTestTickets(t)
	require.Equal(t, 401, serveAs(t, h, ticketRequest(), "").StatusCode)
	require.Equal(t, 400, serveAs(t, h, ticketRequest(), "\x00").StatusCode)
	for _, method := range []string{http.MethodGet, http.MethodHead, http.MethodPut} {
		r := serve(t, h, httptest.NewRequest(method, "/seckill/1001/ticket", nil))
		require.Equal(t, 405, r.StatusCode, method)
		require.Equal(t, "POST", r.Header.Get("Allow"))
	}
	require.Equal(t, 404, serve(t, h, get("/seckill/1001/ticket/")).StatusCode)
}

func TestTakeTicket(t *testing.T) {
	keys := newTestTickets(t).keys
	alice := ticket.Holder{UserID: "alice", ProductID: "1001", ActivityID: "a1"}
	sign := func(h ticket.Holder, life time.Duration) string { return keys.Sign(h, orderID, noon.Add(life)) }
	good := sign(alice, time.Minute)
	for name, tc := range map[string]struct {
		values   []string
		optional bool
		want     string // the refusal's type
	}{
		"good":                {[]string{good}, false, ""},
		"good where optional": {[]string{good}, true, ""},
		"none where optional": {nil, true, ""},
		"none":                {nil, false, "missing"},
		"two":                 {[]string{good, good}, false, "invalid"},
		"two in one":          {[]string{good + ", " + good}, false, "invalid"},
		"empty":               {[]string{""}, false, "invalid"},
		"garbage":             {[]string{strings.Repeat("\xff", ticket.Length)}, false, "invalid"},
		"cut short":           {[]string{good[:ticket.Length-1]}, false, "invalid"},
		"huge":                {[]string{strings.Repeat(good, 100)}, false, "invalid"},
		"bad where optional":  {[]string{"x"}, true, "invalid"},
		"stolen":              {[]string{sign(ticket.Holder{UserID: "bob", ProductID: "1001", ActivityID: "a1"}, time.Minute)}, false, "other_buyer"},
		"another product's":   {[]string{sign(ticket.Holder{UserID: "alice", ProductID: "1002", ActivityID: "a1"}, time.Minute)}, false, "other_product"},
		"another activity's":  {[]string{sign(ticket.Holder{UserID: "alice", ProductID: "1001", ActivityID: "a0"}, time.Minute)}, false, "other_activity"},
		"expired":             {[]string{sign(alice, 0)}, false, "expired"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScript()
			s.offer = gate.Offer{ActivityID: "a1", Now: noon}
			h := newTestHandler(s)
			h.tickets, h.RequireTicket = newTestTickets(t), !tc.optional
			r := post(`{"quantity":2}`)
			if tc.values != nil {
				r.Header[ticketHeader] = tc.values
			}
			answer := serve(t, h, r)
			if tc.want != "" {
				d := requireProblem(t, answer, 403, int(lua.NoTicket))
				require.Equal(t, "urn:seckill:ticket_"+tc.want, d["type"])
				require.Zero(t, s.click, "nothing has gone to the gate")
				require.Equal(t, 1, s.refused)
				return
			}
			require.Equal(t, 202, answer.StatusCode)
			want := gate.Click{ProductID: "1001", UserID: "alice", Quantity: 2}
			if tc.values != nil {
				want.OrderID, want.ActivityID = orderID, "a1"
			}
			require.Equal(t, want, s.click)
		})
	}
}

// TestKnownWithoutTicket: who cannot buy any more is told what he has bought.
func TestKnownWithoutTicket(t *testing.T) {
	alice := ticket.Holder{UserID: "alice", ProductID: "1001", ActivityID: "a1"}
	expired := newTestTickets(t).keys.Sign(alice, orderID, noon)
	stolen := newTestTickets(t).keys.Sign(ticket.Holder{UserID: "bob", ProductID: "1001", ActivityID: "a1"}, orderID, noon)
	first := gate.Decision{OrderID: orderID, Repeat: true, Quantity: 1, ResolveBy: resolveBy}
	for name, tc := range map[string]struct {
		ticket, key string
		status      int
	}{
		"expired":             {expired, "", 202},
		"expired, new key":    {expired, "unknown", 202},
		"expired, known key":  {expired, "known", 202},
		"none, known key":     {"", "known", 202},
		"none, unknown key":   {"", "unknown", 403},
		"none":                {"", "", 403},
		"forged, known key":   {"x", "known", 202},
		"forged, key reused":  {"x", "reused", 422},
		"stolen":              {stolen, "", 403},
		"stolen, unknown key": {stolen, "unknown", 403},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScript()
			s.offer = gate.Offer{ActivityID: "a1", Now: noon}
			s.known = map[string]gate.Decision{orderID: first, "known": first, "reused": {Outcome: lua.KeyReused}}
			h := newTestHandler(s)
			h.tickets, h.RequireTicket = newTestTickets(t), true
			r := post("")
			if tc.ticket != "" {
				r.Header.Set(ticketHeader, tc.ticket)
			}
			if tc.key != "" {
				r.Header.Set("Idempotency-Key", tc.key)
			}
			answer := serve(t, h, r)
			require.Equal(t, tc.status, answer.StatusCode)
			require.Zero(t, s.click, "nothing is reserved")
			if tc.status == 202 {
				require.Equal(t, orderID, document(t, answer)["order_id"])
			}
		})
	}
}

// Who has no ticket because nobody can have one yet is told when to come.
func TestNoTicketBeforeTheStart(t *testing.T) {
	s := newScript()
	s.offer = gate.Offer{Outcome: lua.NotStarted, RetryAfter: 5 * time.Second, ActivityID: "a1", Now: noon}
	h := newTestHandler(s)
	h.tickets, h.RequireTicket = newTestTickets(t), true
	answer := serve(t, h, post(""))
	requireProblem(t, answer, 403, int(lua.NotStarted))
	require.Equal(t, "5", answer.Header.Get("Retry-After"))
}

// Where nobody knows the activity, nobody can say whether a ticket is good for it.
func TestTicketWithoutActivity(t *testing.T) {
	for outcome, status := range map[lua.Outcome]int{lua.NoProduct: 404, lua.Unavailable: 503, lua.Ended: 410} {
		s := newScript()
		s.offer = gate.Offer{Outcome: outcome, RetryAfter: time.Second}
		h := newTestHandler(s)
		h.tickets, h.RequireTicket = newTestTickets(t), true
		r := post("")
		r.Header.Set(ticketHeader, "x")
		require.Equal(t, status, serve(t, h, r).StatusCode)
		require.Zero(t, s.click)
	}
}

func TestTicketConfig(t *testing.T) {
	t.Setenv("TEST_TICKET_SECRET", ticketSecret)
	t.Setenv("TEST_SHORT_SECRET", "too short, s3cret")
	app := func(options string) string { return "{\n\tseckill {\n" + options + "\n\t}\n}\n" }
	for name, tc := range map[string]struct{ config, want string }{
		"secret in the file": {app("ticket_keys s3cret_s3cret_s3cret_s3cret_s3cret"), "where the secret is"},
		"no such secret":     {app("ticket_keys {env.TEST_NO_SUCH_SECRET}"), "nothing at {env.TEST_NO_SUCH_SECRET}"},
		"short secret":       {app("ticket_keys {env.TEST_SHORT_SECRET}"), "17 bytes"},
		"the same twice":     {app("ticket_keys {env.TEST_TICKET_SECRET} {env.TEST_TICKET_SECRET}"), "the same"},
		"life without keys":  {app("ticket_life 30s"), "no ticket_keys"},
		"long life":          {app("ticket_keys {env.TEST_TICKET_SECRET}\nticket_life 1h"), "10m"},
		"short life":         {app("ticket_keys {env.TEST_TICKET_SECRET}\nticket_life 10ms"), "1s"},
		"required":           {app("") + ":0 {\n\tseckill {\n\t\trequire_ticket on\n\t}\n}\n", "require_ticket"},
	} {
		t.Run(name, func(t *testing.T) {
			err := validate(t, tc.config)
			require.ErrorContains(t, err, tc.want)
			require.NotContains(t, err.Error(), "s3cret")
		})
	}
	require.NoError(t, validate(t, app("ticket_keys {env.TEST_TICKET_SECRET}\nticket_life 30s")+":0 {\n\tseckill {\n\t\trequire_ticket on\n\t}\n}\n"))
}

// FuzzTicketHeader: whatever stands in the field, there is an answer, and only
// the ticket that was given buys.
func FuzzTicketHeader(f *testing.F) {
	s := newScript()
	s.offer = gate.Offer{ActivityID: "a1", Now: noon}
	h := newTestHandler(s)
	h.tickets, h.RequireTicket = newTestTickets(f), true
	good := h.tickets.keys.Sign(ticket.Holder{UserID: "alice", ProductID: "1001", ActivityID: "a1"}, orderID, noon.Add(time.Minute))
	for _, seed := range []string{good, good[:40], good + "A", "", strings.Repeat("0", ticket.Length), good + "," + good} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, field string) {
		r := post("")
		r.Header[ticketHeader] = []string{field}
		answer := serve(t, h, r)
		if field == good {
			require.Equal(t, 202, answer.StatusCode)
			return
		}
		require.Equal(t, 403, answer.StatusCode)
	})
}

// BenchmarkTicket measures what tickets add to a purchase, and to give one.
func BenchmarkTicket(b *testing.B) {
	s := newScript()
	s.offer = gate.Offer{ActivityID: "a1", Now: noon}
	h := newTestHandler(s)
	h.tickets, h.RequireTicket = newTestTickets(b), true
	good := h.tickets.keys.Sign(ticket.Holder{UserID: "alice", ProductID: "1001", ActivityID: "a1"}, orderID, noon.Add(time.Minute))
	for name, value := range map[string]string{"good": good, "forged": good[:ticket.Length-1] + "A", "missing": ""} {
		b.Run(name, func(b *testing.B) {
			bench(b, func(w http.ResponseWriter, r *http.Request) error {
				if value != "" {
					r.Header[ticketHeader] = []string{value}
				}
				return h.ServeHTTP(w, r, nil)
			})
		})
	}
	b.Run("give", func(b *testing.B) {
		bench(b, func(w http.ResponseWriter, r *http.Request) error {
			r.URL.Path = "/seckill/1001/ticket"
			return h.ServeHTTP(w, r, nil)
		})
	})
}
