package caddyplugin

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	"github.com/stretchr/testify/require"

	"github.com/seckill-edge/seckill/caddyplugin/gate"
	"github.com/seckill-edge/seckill/caddyplugin/limit"
	"github.com/seckill-edge/seckill/lua"
)

// sink is a response that costs nothing itself.
type sink struct {
	header http.Header
	status int
}

func (s *sink) Header() http.Header         { return s.header }
func (s *sink) WriteHeader(status int)      { s.status = status }
func (s *sink) Write(b []byte) (int, error) { return len(b), nil }
func (s *sink) reset()                      { clear(s.header); s.status = 0 }

// hotCalls are the answers of a sale at its height.
var hotCalls = map[string]gate.Decision{
	"sold_out":       {Outcome: lua.SoldOut},
	"not_started":    {Outcome: lua.NotStarted, RetryAfter: 90e9},
	"already_bought": {Outcome: lua.AlreadyBought, OrderID: orderID},
	"queued":         {Outcome: lua.Reserved, OrderID: orderID, ResolveBy: resolveBy},
}

// BenchmarkRefusal measures the handler's part of an answer, without server,
// gate and socket; respond is Caddy's own fixed answer, to compare with.
func BenchmarkRefusal(b *testing.B) {
	for name, decision := range hotCalls {
		for _, placeholder := range []string{"http.auth.user.id", "http.request.header.X-User-Id"} {
			b.Run(name+"/"+placeholder, func(b *testing.B) {
				s := newScript()
				s.decision = decision
				h := newTestHandler(s)
				h.identity = newIdentity(placeholder)
				bench(b, func(w http.ResponseWriter, r *http.Request) error { return h.ServeHTTP(w, r, nil) })
			})
		}
	}
	b.Run("respond", func(b *testing.B) {
		h := caddyhttp.StaticResponse{StatusCode: "410", Body: "sold out", Headers: http.Header{"Cache-Control": {"no-store"}}}
		bench(b, func(w http.ResponseWriter, r *http.Request) error { return h.ServeHTTP(w, r, nil) })
	})
}

func bench(b *testing.B, serve func(http.ResponseWriter, *http.Request) error) {
	w := &sink{header: make(http.Header)}
	r := hotRequest(w)
	b.ReportAllocs()
	for b.Loop() {
		w.reset()
		if err := serve(w, r); err != nil {
			b.Fatal(err)
		}
	}
}

func hotRequest(w http.ResponseWriter) *http.Request {
	r := httptest.NewRequest(http.MethodPost, "/seckill/1001", http.NoBody)
	r.RemoteAddr = "192.0.2.7:4711"
	r.Header.Set("X-User-Id", "alice")
	replacer := caddy.NewReplacer()
	replacer.Set("http.auth.user.id", "alice")
	return caddyhttp.PrepareRequest(r, replacer, w, new(caddyhttp.Server))
}

// TestAllocations keeps the hot answers cheap, those of the limits too.
func TestAllocations(t *testing.T) {
	limited := &LimitHandler{gate: &script{verdict: limit.Verdict{Refused: true, Level: limit.IP, RetryAfter: 2, Policy: `"ip";q=20;w=1`}}}
	w := &sink{header: make(http.Header)}
	r := hotRequest(w)
	require.LessOrEqual(t, testing.AllocsPerRun(1000, func() {
		w.reset()
		if err := limited.ServeHTTP(w, r, nil); err != nil || w.status != http.StatusTooManyRequests {
			t.Fatal(w.status, err)
		}
	}), 4.0)
	for name, limit := range map[string]float64{"sold_out": 4, "not_started": 4, "already_bought": 4, "queued": 4} {
		s := newScript()
		s.decision = hotCalls[name]
		h := newTestHandler(s)
		w := &sink{header: make(http.Header)}
		r := hotRequest(w)
		allocs := testing.AllocsPerRun(1000, func() {
			w.reset()
			if err := h.ServeHTTP(w, r, nil); err != nil {
				t.Fatal(err)
			}
		})
		require.LessOrEqual(t, allocs, limit, name)
	}
}
