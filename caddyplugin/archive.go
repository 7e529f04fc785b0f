package caddyplugin

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/seckill-edge/seckill/caddyplugin/gate"
	"github.com/seckill-edge/seckill/internal/order"
	"github.com/seckill-edge/seckill/internal/outage"
)

// maxArchived bounds a backend's answer, in bytes.
const maxArchived = 16 << 10

// archive asks a backend's API for orders that Redis no longer has.
type archive struct {
	orders string // URL of the collection, with a slash at the end
	token  string
	client *http.Client
	outage *outage.Log
	// refused counts answers that refuse the token, failed all other calls in vain.
	refused, failed atomic.Uint64
}

// errToken reports that the backend does not let us in.
var errToken = errors.New("it refuses backend_token: give the edge the backend's SECKILL_API_TOKEN")

// errBackendURL does not repeat the URL, which may carry a password.
var errBackendURL = errors.New("the backend's URL must look like http://127.0.0.1:9680 or https://backend.internal, without user, query or fragment")

// newArchive takes a backend's base URL and bearer token, empty for none. It
// dials nothing. An outage, a wrong token included, is logged when it begins, once a
// minute, and when it is over.
func newArchive(base, token string, log *slog.Logger) (*archive, error) {
	u, err := url.Parse(base)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		return nil, errBackendURL
	}
	return &archive{
		orders: strings.TrimSuffix(u.String(), "/") + "/api/orders/",
		token:  token,
		outage: outage.NewLog(log, "backend: asking for stored orders", time.Now),
		client: &http.Client{
			Transport: &http.Transport{
				DialContext:         (&net.Dialer{Timeout: time.Second}).DialContext,
				TLSHandshakeTimeout: time.Second,
				MaxIdleConnsPerHost: 4,
				IdleConnTimeout:     30 * time.Second,
			},
			// A token goes to no other server than the one it was given for.
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
	}, nil
}

// Order implements gate.Archive.
func (a *archive) Order(ctx context.Context, orderID string) (gate.Archived, bool, error) {
	stored, found, err := a.order(ctx, orderID)
	switch {
	case errors.Is(err, errToken):
		a.refused.Add(1)
	case err != nil:
		a.failed.Add(1)
	}
	if err == nil || ctx.Err() == nil || errors.Is(ctx.Err(), context.DeadlineExceeded) { // else who asked has gone
		a.outage.Note(err)
	}
	if err != nil {
		return gate.Archived{}, false, fmt.Errorf("asking the backend for order %s: %w", orderID, err)
	}
	return stored, found, nil
}

func (a *archive) order(ctx context.Context, orderID string) (gate.Archived, bool, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, a.orders+orderID, nil)
	if err != nil {
		return gate.Archived{}, false, err
	}
	request.Header.Set("Accept", "application/json")
	if a.token != "" {
		request.Header.Set("Authorization", "Bearer "+a.token)
	}
	response, err := a.client.Do(request)
	if err != nil {
		return gate.Archived{}, false, err
	}
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(io.LimitReader(response.Body, maxArchived))
	if err != nil {
		return gate.Archived{}, false, err
	}
	isJSON := strings.Contains(response.Header.Get("Content-Type"), "json")
	switch {
	case response.StatusCode == http.StatusNotFound && isJSON:
		return gate.Archived{}, false, nil // said by the API, not by something in front of it
	case response.StatusCode == http.StatusUnauthorized:
		return gate.Archived{}, false, fmt.Errorf("%w (it answers %s)", errToken, response.Status)
	case response.StatusCode != http.StatusOK:
		return gate.Archived{}, false, fmt.Errorf("it answers %s", response.Status)
	}
	var stored struct {
		OrderID   string       `json:"order_id"`
		ProductID string       `json:"product_id"`
		UserID    string       `json:"user_id"`
		Quantity  int          `json:"quantity"`
		State     order.State  `json:"state"`
		Reason    order.Reason `json:"reason"`
		Due       *time.Time   `json:"due"`
	}
	if err := json.Unmarshal(body, &stored); err != nil {
		return gate.Archived{}, false, fmt.Errorf("its answer: %w", err)
	}
	if stored.OrderID != orderID || !plainWord(string(stored.State)) || stored.Reason != "" && !plainWord(string(stored.Reason)) {
		return gate.Archived{}, false, errors.New("its answer is not about this order")
	}
	archived := gate.Archived{
		ProductID: stored.ProductID, UserID: stored.UserID, Quantity: stored.Quantity,
		State: stored.State, Reason: stored.Reason,
	}
	if stored.State == order.Created && stored.Due != nil {
		archived.PayBy = *stored.Due
	}
	return archived, true, nil
}

// trouble is a word for what keeps stored orders from being looked up now; empty if
// nothing is known to.
func (a *archive) trouble() string {
	now, lasts := a.outage.Now()
	switch {
	case !lasts:
		return ""
	case errors.Is(now.Err, errToken):
		return "wrong_token"
	}
	return "unavailable"
}

// register adds the figures to a config's registry, where their twins may be.
func (a *archive) register(registry *prometheus.Registry) error {
	if registry == nil { // nobody scrapes it
		return nil
	}
	for reason, n := range map[string]*atomic.Uint64{"wrong_token": &a.refused, "unavailable": &a.failed} {
		err := registry.Register(prometheus.NewCounterFunc(prometheus.CounterOpts{
			Namespace: namespace, Subsystem: subsystem, Name: "backend_errors_total", ConstLabels: prometheus.Labels{"reason": reason},
			Help: "Calls to the backend for a stored order that failed, by why.",
		}, func() float64 { return float64(n.Load()) }))
		var twin prometheus.AlreadyRegisteredError
		if err != nil && !errors.As(err, &twin) {
			return fmt.Errorf("registering the figures of the backend: %w", err)
		}
	}
	return nil
}

func (a *archive) close() { a.client.CloseIdleConnections() }

// plainWord says that a word needs no escape in JSON.
func plainWord(s string) bool { return order.ValidProduct(s) }

// Interface guard
var _ gate.Archive = (*archive)(nil)
