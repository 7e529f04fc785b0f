package api

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/seckill-edge/seckill/backend/activities"
	"github.com/seckill-edge/seckill/backend/dead"
	"github.com/seckill-edge/seckill/backend/metrics"
	"github.com/seckill-edge/seckill/backend/pay"
	"github.com/seckill-edge/seckill/backend/settle"
	"github.com/seckill-edge/seckill/backend/store"
	"github.com/seckill-edge/seckill/internal/order"
	"github.com/seckill-edge/seckill/internal/queue"
	"github.com/seckill-edge/seckill/internal/servicetest"
	"github.com/seckill-edge/seckill/lua"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// site is a handler on embedded stores.
type site struct {
	http.Handler
	store   *store.Store
	server  *miniredis.Miniredis
	missing map[string]error
	// warnings are what a backend would warn about.
	warnings map[string]string
	broker   queue.Broker
	log      bytes.Buffer // what it says, from debug on
}

func newSite(t *testing.T, token string) *site {
	s := &site{server: miniredis.RunT(t)}
	client, err := lua.NewClient("redis://"+s.server.Addr()+"/0"+servicetest.PatientRedis(), "test")
	require.NoError(t, err)
	s.store, err = store.New(t.Context(), "sqlite:"+filepath.Join(t.TempDir(), "x.db"), nil)
	require.NoError(t, err)
	broker, err := queue.Open(fmt.Sprint("memory:", t.Name(), time.Now().UnixNano()))
	require.NoError(t, err)
	t.Cleanup(func() {
		require.NoError(t, s.store.Close())
		require.NoError(t, client.Close())
	})
	_, err = s.store.Migrate(t.Context())
	require.NoError(t, err)
	log := slog.New(slog.NewTextHandler(&s.log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	s.broker = broker
	s.Handler = New(Deps{
		Dead:     dead.New(dead.Deps{Broker: broker, Store: s.store, Redis: client, Log: log}),
		Warnings: func(context.Context) map[string]string { return s.warnings },
		Activities: activities.New(activities.Deps{
			Store: s.store, Redis: client, Queue: broker, Now: time.Now, Random: rand.Reader, Log: log,
		}),
		Store: s.store,
		Pay: pay.New(pay.Deps{
			Store: s.store, Metrics: metrics.New(), Log: log,
			Tell: func(context.Context, []settle.Order) error { return nil },
		}),
		Registry: prometheus.NewRegistry(), Token: token, Log: log,
		Ready: func(context.Context) map[string]error { return s.missing },
	})
	return s
}

type request struct {
	method, path, body string
	header             map[string]string
	host               string
}

func (s *site) do(t *testing.T, r request) *httptest.ResponseRecorder {
	method := r.method
	if method == "" {
		method = http.MethodGet
	}
	in := httptest.NewRequestWithContext(t.Context(), method, r.path, strings.NewReader(r.body))
	in.Host = "127.0.0.1:9680"
	if r.host != "" {
		in.Host = r.host
	}
	if r.body != "" {
		in.Header.Set("Content-Type", "application/json")
	}
	for k, v := range r.header {
		in.Header.Set(k, v)
	}
	out := httptest.NewRecorder()
	s.ServeHTTP(out, in)
	return out
}

func draft(change func(map[string]any)) string {
	d := map[string]any{
		"product_id": "1001", "title": "Phone", "total": 5, "limit": 1,
		"start": time.Now().Add(-time.Minute).Format(time.RFC3339), "end": time.Now().Add(time.Hour).Format(time.RFC3339),
	}
	change(d)
	body, err := json.Marshal(d)
	if err != nil {
		panic(err)
	}
	return string(body)
}

func unchanged(map[string]any) {}

// A time that is in the store and out of every bound breaks no answer.
func TestStoredTimesOutOfBounds(t *testing.T) {
	s := newSite(t, "")
	require.NoError(t, s.store.CreateActivity(t.Context(), store.Activity{
		ID: "a", ProductID: "1001", Start: time.UnixMilli(-1 << 50), End: time.UnixMilli(1 << 60), Total: 1, Limit: 1, State: store.Scheduled,
	}))
	id, err := order.NewID(time.Now(), rand.Reader)
	require.NoError(t, err)
	_, err = s.store.SaveOrders(t.Context(), []order.Order{{ID: id, ActivityID: "a", ProductID: "1001", UserID: "u", Quantity: 1, Claim: 1, ReservedAt: time.UnixMilli(1 << 48)}})
	require.NoError(t, err)
	for _, path := range []string{"/api/activities", "/api/activities/1001", "/api/orders/" + id} {
		out := s.do(t, request{path: path})
		require.Equal(t, http.StatusOK, out.Code, path)
		require.True(t, json.Valid(out.Body.Bytes()), path)
	}
}

func TestSaleThroughTheAPI(t *testing.T) {
	s := newSite(t, "")
	created := s.do(t, request{method: http.MethodPost, path: "/api/activities", body: draft(unchanged)})
	require.Equal(t, http.StatusCreated, created.Code, created.Body)
	require.Equal(t, http.StatusConflict, s.do(t, request{method: http.MethodPost, path: "/api/activities", body: draft(unchanged)}).Code)
	for _, step := range []struct{ verb, state string }{{"preheat", "held"}, {"open", "open"}, {"hold", "held"}, {"resume", "open"}, {"close", "closed"}, {"close", "closed"}} {
		out := s.do(t, request{method: http.MethodPost, path: "/api/activities/1001/" + step.verb})
		require.Equal(t, http.StatusOK, out.Code, out.Body)
		var a Activity
		require.NoError(t, json.Unmarshal(out.Body.Bytes(), &a))
		require.Equal(t, step.state, a.State)
		require.Equal(t, int64(5), a.Redis.Available)
	}
	require.Equal(t, http.StatusConflict, s.do(t, request{method: http.MethodPost, path: "/api/activities/1001/open"}).Code)

	var audit map[string]any
	out := s.do(t, request{path: "/api/activities/1001/audit"})
	require.NoError(t, json.Unmarshal(out.Body.Bytes(), &audit))
	for _, key := range []string{"total", "available", "frozen", "sold", "outbox", "queued", "orders", "units", "drift", "consistent"} {
		require.Contains(t, audit, key)
	}
	require.Zero(t, audit["drift"])
	require.Equal(t, true, audit["consistent"])
	require.Equal(t, map[string]any{}, audit["orders"])
}

func TestStockThroughTheAPI(t *testing.T) {
	s := newSite(t, "")
	created := s.do(t, request{method: http.MethodPost, path: "/api/activities", body: draft(func(d map[string]any) { d["manual"] = true })})
	require.Contains(t, created.Body.String(), `"manual":true`)
	for _, step := range []struct {
		path, body string
		status     int
		says       string
	}{
		{"stock", `{"add":5}`, 200, `"total":10`},
		{"stock", `{"withdraw":5}`, 200, `"total":5`},
		{"resume", "", 409, "never held"},
		{"preheat", "", 200, `"state":"held"`},
		{"stock", `{"add":5}`, 200, `"total":10`},
		{"stock", `{"add":5,"if_total":5}`, 409, "its total is 10, not 5"},
		{"stock", `{"withdraw":3}`, 200, `"available":7`},
		{"stock", `{"withdraw":7}`, 409, "at least one must stay"},
		{"stock", `{}`, 422, "one of add and withdraw"},
		{"stock", `{"add":1,"withdraw":1}`, 422, "body.add"},
		{"stock", `{"add":0}`, 422, "body.add"},
		{"stock", `{"set":1}`, 422, "set"},
	} {
		out := s.do(t, request{method: http.MethodPost, path: "/api/activities/1001/" + step.path, body: step.body})
		require.Equal(t, step.status, out.Code, "%s %s: %s", step.path, step.body, out.Body)
		require.Contains(t, out.Body.String(), step.says)
	}
	a, err := s.store.LiveActivity(t.Context(), "1001")
	require.NoError(t, err)
	_, err = s.store.ChangeTotal(t.Context(), a.ID, 7, 9)
	require.NoError(t, err)
	require.Contains(t, s.do(t, request{path: "/api/activities/1001"}).Body.String(), `"target":9`)
	require.NoError(t, s.store.SetActivityState(t.Context(), a.ID, []store.ActivityState{store.Held}, store.Closed))
	_, err = s.store.Archive(t.Context(), a.ID)
	require.NoError(t, err)
	require.Contains(t, s.do(t, request{path: "/api/activities/1001"}).Body.String(), `"archived_at":"2`)
}

func TestOrder(t *testing.T) {
	s := newSite(t, "")
	require.Equal(t, http.StatusCreated, s.do(t, request{method: http.MethodPost, path: "/api/activities", body: draft(func(d map[string]any) { d["id"] = "sale" })}).Code)
	id, err := order.NewID(time.Now(), rand.Reader)
	require.NoError(t, err)
	_, err = s.store.SaveOrders(t.Context(), []order.Order{{ID: id, ActivityID: "sale", ProductID: "1001", UserID: "alice", Quantity: 1, Claim: 1, ReservedAt: time.Now()}})
	require.NoError(t, err)
	out := s.do(t, request{path: "/api/orders/" + id})
	var got Order
	require.NoError(t, json.Unmarshal(out.Body.Bytes(), &got))
	require.Equal(t, "created", got.State)
	require.Equal(t, "alice", got.UserID)
}

func TestProblems(t *testing.T) {
	s := newSite(t, "")
	create := func(change func(map[string]any)) request {
		return request{method: http.MethodPost, path: "/api/activities", body: draft(change)}
	}
	for _, tc := range []struct {
		name   string
		r      request
		status int
		says   string
	}{
		{"no such product", request{path: "/api/activities/9"}, 404, "create one first"},
		{"bad product", request{path: "/api/activities/%7B9%7D"}, 422, "A-Z a-z 0-9"},
		{"audit of nothing", request{path: "/api/activities/9/audit"}, 404, ""},
		{"no such order", request{path: "/api/orders/01m8mcb8mmgstzccbmrw2zgrwy"}, 404, "order 01m8mcb8mmgstzccbmrw2zgrwy is not stored"},
		{"no order id", request{path: "/api/orders/1"}, 422, "order id"},
		{"no units", create(func(d map[string]any) { d["total"] = 0 }), 422, "total"},
		{"a billion and one", create(func(d map[string]any) { d["total"] = 1_000_000_001 }), 422, "total"},
		{"no zone", create(func(d map[string]any) { d["start"] = "2026-11-11T20:00:00" }), 422, "start"},
		{"end before start", create(func(d map[string]any) { d["end"] = d["start"] }), 422, "must be after the start"},
		{"unknown field", create(func(d map[string]any) { d["colour"] = "red" }), 422, "colour"},
		{"no JSON", request{method: http.MethodPost, path: "/api/activities", body: "{"}, 400, ""},
		{"too long", request{method: http.MethodPost, path: "/api/activities", body: draft(func(d map[string]any) { d["title"] = strings.Repeat("x", 70_000) })}, 413, ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			out := s.do(t, tc.r)
			require.Equal(t, tc.status, out.Code, out.Body)
			require.Equal(t, "application/problem+json", out.Header().Get("Content-Type"))
			require.Contains(t, out.Body.String(), tc.says)
		})
	}
	s.server.SetError("LOADING it is starting")
	out := s.do(t, request{method: http.MethodPost, path: "/api/activities/1001/preheat"})
	require.Equal(t, http.StatusNotFound, out.Code)
	require.Equal(t, http.StatusCreated, s.do(t, create(unchanged)).Code, "SQL alone is enough to create")
	out = s.do(t, request{method: http.MethodPost, path: "/api/activities/1001/preheat"})
	require.Equal(t, http.StatusServiceUnavailable, out.Code)
	require.NotContains(t, out.Body.String(), "LOADING")
}

func TestWhoIsLetIn(t *testing.T) {
	const token = "correct horse"
	open, closed := newSite(t, ""), newSite(t, token)
	bearer := func(s string) map[string]string { return map[string]string{"Authorization": s} }
	for _, tc := range []struct {
		name   string
		site   *site
		r      request
		status int
	}{
		{"no token", closed, request{path: "/api/activities"}, 401},
		{"wrong token", closed, request{path: "/api/activities", header: bearer("Bearer wrong")}, 401},
		{"other scheme", closed, request{path: "/api/activities", header: bearer("Basic " + token)}, 401},
		{"right token", closed, request{path: "/api/activities", header: bearer("Bearer " + token)}, 200},
		{"scheme in small letters", closed, request{path: "/api/activities", header: bearer("bearer " + token)}, 200},
		{"description", closed, request{path: "/api/openapi.json"}, 401},
		{"metrics", closed, request{path: "/metrics"}, 401},
		{"health", closed, request{path: "/healthz"}, 200},
		{"console", closed, request{path: "/"}, 200},
		{"by name with token", closed, request{path: "/api/activities", host: "sale.example", header: bearer("Bearer " + token)}, 200},
		{"this machine", open, request{path: "/api/activities", host: "localhost:9680"}, 200},
		{"this machine, IPv6", open, request{path: "/api/activities", host: "[::1]:9680"}, 200},
		{"a name pointed here", open, request{path: "/api/activities", host: "evil.example"}, 403},
		{"another site's form", open, request{method: http.MethodPost, path: "/api/activities/1/close", header: map[string]string{"Origin": "http://evil.example"}}, 403},
		{"another site's script", open, request{method: http.MethodPost, path: "/api/activities/1/close", header: map[string]string{"Sec-Fetch-Site": "cross-site"}}, 403},
	} {
		t.Run(tc.name, func(t *testing.T) {
			require.Equal(t, tc.status, tc.site.do(t, tc.r).Code)
		})
	}
}

func TestReadyTellsReasonsToFriendsOnly(t *testing.T) {
	s := newSite(t, "secret")
	require.JSONEq(t, `{"ready":true}`, s.do(t, request{path: "/readyz"}).Body.String())
	s.missing = map[string]error{"redis": errors.New("dial 10.0.0.1"), "database": errors.New("down")}
	out := s.do(t, request{path: "/readyz"})
	require.Equal(t, http.StatusServiceUnavailable, out.Code)
	require.JSONEq(t, `{"ready":false,"not_ready":["database","redis"],"causes":{"database":"failed","redis":"unanswered"}}`, out.Body.String())
	out = s.do(t, request{path: "/readyz", header: map[string]string{"Authorization": "Bearer secret"}})
	require.Contains(t, out.Body.String(), "10.0.0.1")
}

func TestDescriptionIsMadeFromTheCode(t *testing.T) {
	out := newSite(t, "").do(t, request{path: "/api/openapi.json"})
	var doc struct {
		OpenAPI string         `json:"openapi"`
		Paths   map[string]any `json:"paths"`
	}
	require.NoError(t, json.Unmarshal(out.Body.Bytes(), &doc))
	require.Equal(t, "3.1.0", doc.OpenAPI)
	for _, path := range []string{"", "/{product_id}", "/{product_id}/audit", "/{product_id}/preheat", "/{product_id}/open", "/{product_id}/hold", "/{product_id}/close"} {
		require.Contains(t, doc.Paths, "/api/activities"+path)
	}
	require.Contains(t, doc.Paths, "/api/orders/{order_id}")
}

func TestConsoleLoadsNothingFromElsewhere(t *testing.T) {
	s := newSite(t, "")
	for path, kind := range map[string]string{"/": "text/html", "/console.js": "text/javascript", "/console.css": "text/css", "/icon.svg": "image/svg+xml"} {
		out := s.do(t, request{path: path})
		require.Equal(t, http.StatusOK, out.Code, path)
		require.Contains(t, out.Header().Get("Content-Type"), kind)
		require.Contains(t, out.Header().Get("Content-Security-Policy"), "default-src 'none'")
		body := strings.ReplaceAll(out.Body.String(), "http://www.w3.org/2000/svg", "")
		for _, foreign := range []string{"http://", "https://", "<style", "onclick", "<script>"} {
			require.NotContains(t, body, foreign, path)
		}
	}
	require.Equal(t, http.StatusNotFound, s.do(t, request{path: "/nothing"}).Code)
}

func TestLoopback(t *testing.T) {
	for listen, want := range map[string]bool{
		"127.0.0.1:1": true, "localhost:1": true, "[::1]:1": true, "127.8.8.8:0": true,
		":1": false, "0.0.0.0:1": false, "[::]:1": false, "192.168.1.1:1": false, "example.org:1": false, "127.0.0.1": false,
	} {
		require.Equal(t, want, Loopback(listen), listen)
	}
}
