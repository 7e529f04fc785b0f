package caddyplugin

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	"github.com/stretchr/testify/require"

	"github.com/seckill-edge/seckill/caddyplugin/gate"
	"github.com/seckill-edge/seckill/caddyplugin/limit"
	"github.com/seckill-edge/seckill/internal/order"
	"github.com/seckill-edge/seckill/lua"
)

const (
	orderID  = "01kb7q3x5e8g9h0jkmnpqrstvw"
	location = "/seckill/1001/orders/" + orderID
)

var resolveBy = time.Date(2026, 11, 11, 20, 0, 30, 5e6, time.FixedZone("CST", 8*3600))

// script is a seller that answers what a test wants and writes down what it is
// asked. A real one answers in the end to end test; not every refusal can be
// had from it in a moment.
type script struct {
	verdict  limit.Verdict // of the limits on an address
	user     limit.Verdict
	decision gate.Decision
	offer    gate.Offer
	known    map[string]gate.Decision // by order id or key
	view     gate.View
	outcome  lua.Outcome
	fate     gate.Fate
	err      error
	// followErr is why no stream opens; streams that do are tested through Caddy.
	followErr error

	addr  netip.Addr
	click gate.Click
	asked string
	// refused counts purchases without a good ticket.
	refused int
}

func (s *script) Enter(addr netip.Addr) limit.Verdict { s.addr = addr; return s.verdict }

func (s *script) EnterUser(string) limit.Verdict { return s.user }

func (s *script) Reserve(_ context.Context, c gate.Click) gate.Decision {
	s.click = c
	d := s.decision
	d.Quantity = c.Quantity
	return d
}

func (s *script) Known(c gate.Click) (gate.Decision, bool) {
	d, ok := s.known[c.Key]
	if !ok {
		d, ok = s.known[c.OrderID]
	}
	return d, ok
}

func (s *script) Offer(_ context.Context, product string) gate.Offer {
	s.asked = product
	return s.offer
}

func (s *script) Admit(string, string) (string, error) { return orderID, s.err }

func (s *script) Refused() { s.refused++ }

func (s *script) View(_ context.Context, product string) (gate.View, lua.Outcome) {
	s.asked = product
	return s.view, s.outcome
}

func (s *script) Fate(_ context.Context, product, user, id string) (gate.Fate, error) {
	s.asked = product + " " + user + " " + id
	return s.fate, s.err
}

func (s *script) Follow(string, string, gate.Fate) (*gate.Stream, error) { return nil, s.followErr }

func newScript() *script {
	return &script{
		decision: gate.Decision{Outcome: lua.Reserved, OrderID: orderID, ResolveBy: resolveBy},
	}
}

// newTestHandler is a handler with the default settings in front of s.
func newTestHandler(s seller) *Handler {
	return &Handler{PathPrefix: defaultPrefix, gate: s, identity: newIdentity("")}
}

// serve asks h as a server would, with alice logged in.
func serve(t testing.TB, h *Handler, r *http.Request) *http.Response {
	t.Helper()
	return serveAs(t, h, r, "alice")
}

func serveAs(t testing.TB, h *Handler, r *http.Request, user string) *http.Response {
	t.Helper()
	w := httptest.NewRecorder()
	next := caddyhttp.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) error {
		w.WriteHeader(http.StatusTeapot)
		return nil
	})
	require.NoError(t, h.ServeHTTP(w, prepare(w, r, user), next))
	return w.Result()
}

func prepare(w http.ResponseWriter, r *http.Request, user string) *http.Request {
	replacer := caddy.NewReplacer()
	if user != "" {
		replacer.Set("http.auth.user.id", user)
	}
	return caddyhttp.PrepareRequest(r, replacer, w, new(caddyhttp.Server))
}

func post(body string) *http.Request {
	r := httptest.NewRequest(http.MethodPost, "/seckill/1001", strings.NewReader(body))
	r.RemoteAddr = "192.0.2.7:4711"
	return r
}

func get(path string) *http.Request { return httptest.NewRequest(http.MethodGet, path, nil) }

func document(t testing.TB, r *http.Response) map[string]any {
	t.Helper()
	var d map[string]any
	require.NoError(t, json.NewDecoder(r.Body).Decode(&d))
	return d
}

// requireProblem checks all that RFC 9457 and our callers rest on.
func requireProblem(t testing.TB, r *http.Response, status, code int) map[string]any {
	t.Helper()
	require.Equal(t, status, r.StatusCode)
	require.Equal(t, "application/problem+json", r.Header.Get("Content-Type"))
	require.Equal(t, "no-store", r.Header.Get("Cache-Control"))
	d := document(t, r)
	require.EqualValues(t, status, d["status"])
	require.NotEmpty(t, d["type"])
	require.NotEmpty(t, d["title"])
	require.NotEmpty(t, d["detail"])
	if code == 0 {
		require.NotContains(t, d, "code")
	} else {
		require.EqualValues(t, code, d["code"])
	}
	return d
}

func TestBuy(t *testing.T) {
	for body, quantity := range goodBodies {
		s := newScript()
		r := serve(t, newTestHandler(s), post(body))
		require.Equal(t, http.StatusAccepted, r.StatusCode, "%q", body)
		require.Equal(t, gate.Click{ProductID: "1001", UserID: "alice", Quantity: quantity}, s.click)
		require.Equal(t, netip.MustParseAddr("192.0.2.7"), s.addr)
		require.Equal(t, "application/json", r.Header.Get("Content-Type"))
		require.Equal(t, "no-store", r.Header.Get("Cache-Control"))
		require.Equal(t, location, r.Header.Get("Location"))
		require.Equal(t, map[string]any{
			"code": 0.0, "status": "queued", "order_id": orderID, "product_id": "1001", "quantity": float64(quantity),
			"status_url": location, "resolve_by": "2026-11-11T12:00:30.005Z",
		}, document(t, r))
	}
}

func TestRefusals(t *testing.T) {
	for _, tc := range []struct {
		decision   gate.Decision
		status     int
		retryAfter string
	}{
		{gate.Decision{Outcome: lua.BadArguments}, 400, ""},
		{gate.Decision{Outcome: lua.NotStarted, RetryAfter: 1001 * time.Millisecond}, 403, "2"},
		{gate.Decision{Outcome: lua.Ended}, 410, ""},
		{gate.Decision{Outcome: lua.AlreadyBought, OrderID: orderID}, 409, ""},
		{gate.Decision{Outcome: lua.AlreadyBought}, 409, ""},
		{gate.Decision{Outcome: lua.NoProduct}, 404, ""},
		{gate.Decision{Outcome: lua.SoldOut}, 410, ""},
		{gate.Decision{Outcome: lua.TooFew}, 409, ""},
		{gate.Decision{Outcome: lua.Held, RetryAfter: time.Nanosecond}, 503, "1"},
		{gate.Decision{Outcome: lua.KeyReused}, 422, ""},
		{gate.Decision{Outcome: lua.Unavailable, RetryAfter: time.Second}, 503, "1"},
	} {
		t.Run(tc.decision.Outcome.String(), func(t *testing.T) {
			s := newScript()
			s.decision = tc.decision
			r := serve(t, newTestHandler(s), post(""))
			d := requireProblem(t, r, tc.status, int(tc.decision.Outcome))
			require.Equal(t, tc.retryAfter, r.Header.Get("Retry-After"))
			if tc.decision.OrderID != "" {
				require.Equal(t, tc.decision.OrderID, d["order_id"])
			} else {
				require.NotContains(t, d, "order_id")
			}
		})
	}
	for _, unknown := range []lua.Outcome{1, 0, -10, -15, -100} {
		require.Equal(t, refusalOf(lua.Unavailable), refusalOf(unknown))
	}
}

func TestRefusedBeforeTheGate(t *testing.T) {
	asked := func(method, path string) *http.Request {
		return httptest.NewRequest(method, path, strings.NewReader(""))
	}
	for _, body := range badBodies {
		s := newScript()
		requireProblem(t, serve(t, newTestHandler(s), post(body)), 400, -1)
		require.Zero(t, s.click, "%q", body)
	}
	for _, tc := range []struct {
		name         string
		r            *http.Request
		user         string
		status, code int
		allow        string
	}{
		{"nobody", post(""), "", 401, 0, ""},
		{"nobody asks for an order", get(location), "", 401, 0, ""},
		{"nobody with a bad body", post("x"), "", 401, 0, ""},
		{"user too long", post(""), strings.Repeat("u", order.MaxUserBytes+1), 400, -1, ""},
		{"user with control character", post(""), "al\tice", 400, -1, ""},
		{"user not UTF-8", get(location), "al\xffice", 400, -1, ""},
		{"body too large", post(strings.Repeat(" ", maxBody+1)), "alice", 413, 0, ""},
		{"PUT", asked("PUT", "/seckill/1001"), "alice", 405, 0, "GET, HEAD, POST"},
		{"DELETE of an order", asked("DELETE", location), "alice", 405, 0, "GET, HEAD"},
		{"POST of an order", asked("POST", location), "alice", 405, 0, "GET, HEAD"},
		{"OPTIONS", asked("OPTIONS", "/seckill/1001"), "", 405, 0, "GET, HEAD, POST"},
		{"method in lower case", asked("post", "/seckill/1001"), "alice", 405, 0, "GET, HEAD, POST"},
		{"POST of a stream", asked("POST", location+"/events"), "alice", 405, 0, "GET"},
		{"HEAD of a stream", asked("HEAD", location+"/events"), "alice", 405, 0, "GET"},
		{"nobody follows an order", get(location + "/events"), "", 401, 0, ""},
		{"no order id to follow", get("/seckill/1001/orders/latest/events"), "alice", 404, 0, ""},
		{"POST nowhere", asked("POST", "/seckill/"), "alice", 404, 0, ""},
		{"GET nowhere", get("/seckill/1001/stock"), "", 404, 0, ""},
		{"POST of what is no product", asked("POST", "/seckill/a:b"), "alice", 404, -5, ""},
		{"GET of what is no product", get("/seckill/a:b"), "", 404, -5, ""},
		{"no order id", get("/seckill/1001/orders/latest"), "alice", 404, 0, ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := newScript()
			r := serveAs(t, newTestHandler(s), tc.r, tc.user)
			requireProblem(t, r, tc.status, tc.code)
			require.Equal(t, tc.allow, r.Header.Get("Allow"))
			require.Zero(t, s.click)
			require.Empty(t, s.asked)
		})
	}
}

func TestNotOurs(t *testing.T) {
	for _, path := range []string{"/", "/shop", "/seckills/1001"} {
		require.Equal(t, http.StatusTeapot, serve(t, newTestHandler(newScript()), get(path)).StatusCode)
	}
	h := newTestHandler(newScript())
	h.PathPrefix = "/api/sale"
	require.Equal(t, http.StatusTeapot, serve(t, h, post("")).StatusCode)
	r := httptest.NewRequest(http.MethodPost, "/api/sale/1001", nil)
	require.Equal(t, "/api/sale/1001/orders/"+orderID, serve(t, h, r).Header.Get("Location"))
}

// A client that has gone is no error: Caddy would log it as one.
func TestClientGone(t *testing.T) {
	for _, r := range []*http.Request{post(""), post("x"), get("/seckill/1001"), get(location)} {
		require.NoError(t, newTestHandler(newScript()).ServeHTTP(gone{}, prepare(gone{}, r, "alice"), nil))
	}
}

type gone struct{}

func (gone) Header() http.Header       { return http.Header{} }
func (gone) WriteHeader(int)           {}
func (gone) Write([]byte) (int, error) { return 0, errors.New("broken pipe") }

// Handlers around ours may change a header in place or add to it.
func TestAnswersShareNoHeaders(t *testing.T) {
	s := newScript()
	s.decision = gate.Decision{Outcome: lua.Held, RetryAfter: time.Second}
	first := httptest.NewRecorder()
	require.NoError(t, newTestHandler(s).ServeHTTP(first, prepare(first, post(""), "alice"), nil))
	first.Header()["Content-Type"][0] = "text/html"
	first.Header().Add("Content-Type", "x")
	require.Equal(t, []string{"no-store"}, first.Header()["Cache-Control"])
	requireProblem(t, serve(t, newTestHandler(s), post("")), 503, -8)
}
