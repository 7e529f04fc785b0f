package caddyplugin

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"

	"github.com/caddyserver/caddy/v2"

	"github.com/seckill-edge/seckill/caddyplugin/gate"
	"github.com/seckill-edge/seckill/caddyplugin/limit"
	"github.com/seckill-edge/seckill/internal/version"
)

// adminStatus is a module that provides the /seckill/status endpoint for the
// Caddy admin API: whether the edge can sell, and why not; what it knows of each
// product; and its counters.
type adminStatus struct{}

// CaddyModule returns the Caddy module information.
func (*adminStatus) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{ID: "admin.api." + appName, New: func() caddy.Module { return new(adminStatus) }}
}

// Routes returns the route of the endpoint.
func (s *adminStatus) Routes() []caddy.AdminRoute {
	return []caddy.AdminRoute{{Pattern: "/seckill/status", Handler: caddy.AdminHandlerFunc(s.serve)}}
}

// status is what the endpoint answers. It holds no address of a server: those
// carry passwords.
type status struct {
	Ready bool `json:"ready"`
	// Version is the plugin's, as the build has noted it.
	Version string `json:"version"`
	// Reason says why it is not ready.
	Reason string `json:"reason,omitempty"`
	// Causes say the same in words from fixed lists: part, redis or queue, to cause.
	Causes map[string]string `json:"causes,omitempty"`
	// Backend says why stored orders cannot be looked up: wrong_token or unavailable.
	Backend  string          `json:"backend,omitempty"`
	Products []productStatus `json:"products"`
	Stats    statsStatus     `json:"stats"`
}

type productStatus struct {
	ProductID  string `json:"product_id"`
	ActivityID string `json:"activity_id"`
	State      string `json:"state"`
	Fresh      bool   `json:"fresh"`
	Epoch      int64  `json:"epoch"`
	Available  int64  `json:"available"`
	Frozen     int64  `json:"frozen"`
	Sold       int64  `json:"sold"`
	Outbox     int64  `json:"outbox"`
}

type statsStatus struct {
	Outcomes      map[string]uint64   `json:"outcomes"`
	Local         uint64              `json:"local"`
	Limits        map[string]verdicts `json:"limits"`
	Late          uint64              `json:"late"`
	Calls         uint64              `json:"redis_calls"`
	CallErrors    uint64              `json:"redis_call_errors"`
	Forwarded     uint64              `json:"forwarded"`
	PublishErrors uint64              `json:"publish_errors"`
	LeftBehind    uint64              `json:"left_behind"`
	Carried       int64               `json:"carried"`
	Repeats       uint64              `json:"repeats"`
	Reads         uint64              `json:"record_reads"`
	ReadErrors    uint64              `json:"record_read_errors"`
	Streams       int64               `json:"streams"`
}

// verdicts are what a limit has said, by how often.
type verdicts struct {
	Allowed  uint64 `json:"allowed"`
	Refused  uint64 `json:"refused"`
	Shadowed uint64 `json:"shadowed"`
}

// serve finds the app of the config that runs at the moment of the request:
// Caddy makes its admin endpoints before the apps of the same config.
func (*adminStatus) serve(w http.ResponseWriter, r *http.Request) error {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		w.Header().Set("Allow", "GET, HEAD")
		return caddy.APIError{HTTPStatus: http.StatusMethodNotAllowed, Err: fmt.Errorf("method %s not allowed", r.Method)}
	}
	found, err := caddy.ActiveContext().AppIfConfigured(appName)
	if errors.Is(err, caddy.ErrNotConfigured) {
		return caddy.APIError{HTTPStatus: http.StatusNotFound, Err: errors.New("the running config has no seckill app")}
	}
	if err != nil {
		return caddy.APIError{HTTPStatus: http.StatusInternalServerError, Err: err}
	}
	w.Header().Set("Content-Type", "application/json")
	if err := json.NewEncoder(w).Encode(statusOf(r.Context(), found.(*App).engine)); err != nil {
		return caddy.APIError{HTTPStatus: http.StatusInternalServerError, Err: fmt.Errorf("writing the status: %w", err)}
	}
	return nil
}

func statusOf(ctx context.Context, e *engine) status {
	g := e.gate
	s := status{Ready: true, Version: version.String(), Products: []productStatus{}}
	if err := g.Ready(ctx); err != nil {
		s.Ready, s.Reason = false, err.Error()
		if missing, ok := errors.AsType[*gate.NotReady](err); ok {
			s.Causes = map[string]string{missing.Part: missing.Cause()}
		}
	}
	if e.archive != nil {
		s.Backend = e.archive.trouble()
	}
	for _, v := range g.Views() {
		s.Products = append(s.Products, productStatus{
			ProductID: v.ProductID, ActivityID: v.ID, State: string(v.Sale(v.Fresh)), Fresh: v.Fresh, Epoch: v.Epoch,
			Available: v.Available, Frozen: v.Frozen, Sold: v.Sold, Outbox: v.Outbox,
		})
	}
	slices.SortFunc(s.Products, func(a, b productStatus) int { return cmp.Compare(a.ProductID, b.ProductID) })
	stats := g.Stats()
	s.Stats = statsStatus{
		Outcomes: make(map[string]uint64, len(stats.Outcomes)),
		Limits:   make(map[string]verdicts, len(stats.Limits.Levels)),
		Local:    stats.Local, Late: stats.Late,
		Calls: stats.Calls, CallErrors: stats.CallErrors,
		Forwarded: stats.Forwarded, PublishErrors: stats.PublishErrors, LeftBehind: stats.LeftBehind,
		Carried: stats.Carried, Repeats: stats.Repeats,
		Reads: stats.Reads, ReadErrors: stats.ReadErrors, Streams: stats.Streams,
	}
	for level, c := range stats.Limits.Levels {
		s.Stats.Limits[limit.Level(level).String()] = verdicts(c)
	}
	for outcome, n := range stats.Outcomes {
		s.Stats.Outcomes[outcome.String()] = n
	}
	return s
}

// Interface guards
var _ caddy.AdminRouter = (*adminStatus)(nil)
