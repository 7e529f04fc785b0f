// Package api is the backend's HTTP: the JSON API under /api/ with its OpenAPI
// description, metrics, health, and the console page.
package api

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/seckill-edge/seckill/backend/activities"
	"github.com/seckill-edge/seckill/backend/dead"
	"github.com/seckill-edge/seckill/backend/pay"
	"github.com/seckill-edge/seckill/backend/reconcile"
	"github.com/seckill-edge/seckill/backend/store"
)

const (
	// callTimeout bounds what one request may ask of the stores; a reconciliation
	// looks twice and may rebuild a stock.
	callTimeout      = 10 * time.Second
	reconcileTimeout = 25 * time.Second
)

// Deps are what the handler works with. All are required but Token.
type Deps struct {
	Activities *activities.Service
	// Reconcile compares the stores for a product, and mends unless dry.
	Reconcile func(ctx context.Context, product string, dry bool) (reconcile.Report, error)
	Store     *store.Store
	Dead      *dead.Service
	Pay       *pay.Service
	// Registry is what /metrics shows; New adds its own figure, so each handler
	// has one of its own.
	Registry *prometheus.Registry
	// Ready says by name what is not ready, and why; empty when all is.
	Ready func(context.Context) map[string]error
	// Warnings say by name what should be mended though all is ready. May be nil.
	Warnings func(context.Context) map[string]string
	// Token, if set, is the bearer token that everything under /api/ and /metrics
	// asks for.
	Token string
	Log   *slog.Logger
}

// New makes the handler.
func New(d Deps) http.Handler {
	mux := http.NewServeMux()
	guard := newGuard(d.Token)
	d.Registry.MustRegister(guard.wrong)
	describe(d, mux)
	outer := http.NewServeMux()
	outer.Handle("/api/", guard.only(typed(limitTime(explained(mux)))))
	outer.Handle("GET /metrics", guard.only(promhttp.HandlerFor(d.Registry, promhttp.HandlerOpts{
		ErrorHandling: promhttp.ContinueOnError,
		Timeout:       callTimeout,
	})))
	outer.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) {
		writeJSON(w, http.StatusOK, map[string]any{"healthy": true})
	})
	outer.Handle("GET /readyz", readyz(d, guard))
	outer.Handle("/", console())
	return headers(guard.sameSite(outer))
}

// describe registers the operations. The OpenAPI document comes from these.
func describe(d Deps, mux *http.ServeMux) {
	config := huma.DefaultConfig("seckill backend", "1")
	config.OpenAPIPath = "/api/openapi"
	// No documentation page: it would load scripts from elsewhere.
	config.DocsPath = ""
	config.SchemasPath = ""
	config.CreateHooks = nil
	// A misspelt option must not look like one that was followed.
	config.RejectUnknownQueryParameters = true
	config.Components.SecuritySchemes = map[string]*huma.SecurityScheme{"bearer": {
		Type: "http", Scheme: "bearer", Description: "The backend's API token. One without a token answers to its own machine only, to whoever asks.",
	}}
	config.Security = []map[string][]string{{"bearer": {}}}
	if d.Token == "" {
		config.Security = append(config.Security, map[string][]string{}) // or none
	}
	api := humago.New(mux, config)
	h := &handlers{d}
	register(api, h, http.MethodGet, "/api/activities", "list-activities", "All activities, with their counters in Redis", h.list)
	huma.Register(api, huma.Operation{
		OperationID: "create-activity", Method: http.MethodPost, Path: "/api/activities", DefaultStatus: http.StatusCreated,
		Summary: "Create an activity; a backend opens it ahead of its start", Errors: problems, MaxBodyBytes: maxBody,
	}, translated(h, h.create))
	register(api, h, http.MethodGet, "/api/activities/{product_id}", "show-activity", "The activity a product sells through", h.show)
	register(api, h, http.MethodGet, "/api/activities/{product_id}/audit", "audit-activity", "Compare Redis, queue and SQL", h.audit)
	register(api, h, http.MethodPost, "/api/activities/{product_id}/reconcile", "reconcile-activity", "Find each difference between Redis, queue and SQL, and mend what has one right answer", h.reconcile)
	register(api, h, http.MethodPost, "/api/activities/{product_id}/preheat", "preheat-activity", "Load its stock into Redis, held; never over a live sale", h.preheat)
	register(api, h, http.MethodPost, "/api/activities/{product_id}/open", "open-activity", "Open the gate", h.open)
	register(api, h, http.MethodPost, "/api/activities/{product_id}/hold", "hold-activity", "Shut the gate until it is opened again", h.hold)
	register(api, h, http.MethodPost, "/api/activities/{product_id}/resume", "resume-activity", "Open the gate again after a hold", h.resume)
	huma.Register(api, huma.Operation{
		OperationID: "change-stock", Method: http.MethodPost, Path: "/api/activities/{product_id}/stock",
		Summary: "Add units to an open or held activity, or withdraw available ones", Errors: problems, MaxBodyBytes: maxBody,
	}, translated(h, h.stock))
	register(api, h, http.MethodPost, "/api/activities/{product_id}/close", "close-activity", "End the sale for good", h.close)
	register(api, h, http.MethodGet, "/api/orders/{order_id}", "show-order", "A stored order", h.order)
	describeDead(api, h)
	describePay(api, h)
}

var problems = []int{http.StatusUnauthorized, http.StatusForbidden, http.StatusNotFound, http.StatusConflict, http.StatusUnprocessableEntity, http.StatusServiceUnavailable}

func register[I, O any](api huma.API, h *handlers, method, path, id, summary string, handler func(context.Context, *I) (*O, error)) {
	huma.Register(api, huma.Operation{OperationID: id, Method: method, Path: path, Summary: summary, Errors: problems}, translated(h, handler))
}

// translated makes each failure of handler an answer, in this one place. What
// handler refuses itself is one already.
func translated[I, O any](h *handlers, handler func(context.Context, *I) (*O, error)) func(context.Context, *I) (*O, error) {
	return func(ctx context.Context, in *I) (*O, error) {
		out, err := handler(ctx, in)
		var answer huma.StatusError
		if err == nil || errors.As(err, &answer) {
			return out, err
		}
		return nil, h.problem(ctx, err)
	}
}

// maxBody bounds the body of a request, in bytes.
const maxBody = 64 << 10

func limitTime(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		timeout := callTimeout
		if strings.HasSuffix(r.URL.Path, "/reconcile") {
			timeout = reconcileTimeout
		}
		ctx, cancel := context.WithTimeout(r.Context(), timeout)
		defer cancel()
		next.ServeHTTP(w, r.WithContext(ctx))
	})
}
