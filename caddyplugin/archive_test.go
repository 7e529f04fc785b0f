package caddyplugin

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/seckill-edge/seckill/caddyplugin/gate"
	"github.com/seckill-edge/seckill/internal/order"
)

var quiet = slog.New(slog.DiscardHandler)

// backend answers like a seckilld that has stored one order.
func backend(t *testing.T, token string, answer func(w http.ResponseWriter, id string)) string {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		want := ""
		if token != "" {
			want = "Bearer " + token
		}
		if r.Header.Get("Authorization") != want {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		id, ok := strings.CutPrefix(r.URL.Path, "/api/orders/")
		if !ok || r.Method != http.MethodGet {
			w.WriteHeader(http.StatusTeapot)
			return
		}
		answer(w, id)
	}))
	t.Cleanup(server.Close)
	return server.URL
}

func storedOrder(w http.ResponseWriter, id string) {
	if id != orderID {
		w.Header().Set("Content-Type", "application/problem+json")
		w.WriteHeader(http.StatusNotFound)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(map[string]any{
		"order_id": id, "activity_id": "a0", "product_id": "1001", "user_id": "alice", "quantity": 2, "claim": 1,
		"state": "rejected", "reason": "dead_letter", "reserved_at": time.Now(),
	})
}

func TestArchive(t *testing.T) {
	a, err := newArchive(backend(t, "s3cret", storedOrder)+"/", "s3cret", quiet)
	require.NoError(t, err)
	defer a.close()
	got, found, err := a.Order(t.Context(), orderID)
	require.NoError(t, err)
	require.True(t, found)
	require.Equal(t, gate.Archived{ProductID: "1001", UserID: "alice", Quantity: 2, State: order.Rejected, Reason: order.ReasonDead}, got)
	for due, payBy := range map[string]time.Time{"": {}, `,"due":"2026-11-11T20:00:00Z"`: time.Date(2026, 11, 11, 20, 0, 0, 0, time.UTC)} {
		b, err := newArchive(backend(t, "", func(w http.ResponseWriter, id string) {
			_, _ = w.Write([]byte(`{"order_id":"` + id + `","state":"created"` + due + `}`))
		}), "", quiet)
		require.NoError(t, err)
		got, _, err := b.Order(t.Context(), orderID)
		b.close()
		require.NoError(t, err)
		require.Equal(t, gate.Archived{State: order.Created, PayBy: payBy}, got)
	}
	_, found, err = a.Order(t.Context(), "01kb7q3x5e8g9h0jkmnpqrstvx")
	require.NoError(t, err)
	require.False(t, found)
}

// Whatever is not the API's own word is an error, never "no such order".
func TestArchiveFailures(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	for name, answer := range map[string]func(w http.ResponseWriter, id string){
		"a proxy's 404": func(w http.ResponseWriter, _ string) { http.NotFound(w, nil) },
		"500":           func(w http.ResponseWriter, _ string) { w.WriteHeader(http.StatusInternalServerError) },
		"redirect": func(w http.ResponseWriter, _ string) {
			w.Header().Set("Location", "http://127.0.0.1:1/")
			w.WriteHeader(http.StatusFound)
		},
		"no JSON":       func(w http.ResponseWriter, _ string) { _, _ = w.Write([]byte("<html>")) },
		"another order": func(w http.ResponseWriter, _ string) { _, _ = w.Write([]byte(`{"order_id":"x","state":"paid"}`)) },
		"odd state": func(w http.ResponseWriter, id string) {
			_, _ = w.Write([]byte(`{"order_id":"` + id + `","state":"\"<"}`))
		},
		"endless": func(w http.ResponseWriter, _ string) {
			_, _ = w.Write([]byte(strings.Repeat(" ", 2*maxArchived) + `{}`))
		},
		"silence": func(http.ResponseWriter, string) { <-ctx.Done() },
	} {
		t.Run(name, func(t *testing.T) {
			a, err := newArchive(backend(t, "s3cret", answer), "s3cret", quiet)
			require.NoError(t, err)
			defer a.close()
			_, found, err := a.Order(ctx, orderID)
			require.Error(t, err)
			require.False(t, found)
			require.NotContains(t, err.Error(), "s3cret")
		})
	}
	var log bytes.Buffer
	a, err := newArchive(backend(t, "s3cret", storedOrder), "another", slog.New(slog.NewTextHandler(&log, nil)))
	require.NoError(t, err)
	defer a.close()
	for range 3 {
		_, _, err = a.Order(t.Context(), orderID)
		require.ErrorIs(t, err, errToken)
	}
	require.EqualValues(t, 3, a.refused.Load())
	require.Zero(t, a.failed.Load())
	require.Equal(t, 1, strings.Count(log.String(), "level=WARN"), "once when it begins: %s", &log)
	require.Contains(t, log.String(), "SECKILL_API_TOKEN")
	require.NotContains(t, log.String(), "another")
	for _, bad := range []string{"", "127.0.0.1:9680", "ftp://127.0.0.1", "http://", "http://u:s3cret@h", "http://h?x=s3cret", "http://h#s3cret", "http://[s3cret"} {
		_, err := newArchive(bad, "", quiet)
		require.ErrorIs(t, err, errBackendURL)
		require.NotContains(t, err.Error(), "s3cret")
	}
}

// Through Caddy: an order of an activity that Redis has forgotten is still told to
// its buyer, and a backend that is away is no "no such order".
func TestArchivedOrderThroughCaddy(t *testing.T) {
	onEach(t, func(t *testing.T, e *edge) {
		up := backend(t, "s3cret", storedOrder)
		t.Setenv("SECKILL_TEST_TOKEN", "s3cret")
		e.load(e.config("backend "+up+"\nbackend_token {env.SECKILL_TEST_TOKEN}", byHeader))
		e.waitOpen()
		r := e.must("GET", location, "alice", "")
		require.Equal(t, 200, r.status, "%s", r.body)
		require.Equal(t, "rejected", r.document(t)["status"])
		require.Equal(t, "dead_letter", r.document(t)["reason"])
		require.Equal(t, 404, e.must("GET", location, "mallory", "").status)
		require.Equal(t, 404, e.must("GET", "/seckill/2002/orders/"+orderID, "alice", "").status)
		s := e.openStream("alice", orderID, "")
		require.Equal(t, "rejected", s.status()["status"])
		s.ended()

		e.load(e.config("backend http://127.0.0.1:1", byHeader))
		e.waitOpen()
		gone := e.must("GET", location, "alice", "")
		require.Equal(t, 503, gone.status)
		require.NotEmpty(t, gone.header.Get("Retry-After"))
		require.Equal(t, "1", e.figure(`caddy_seckill_backend_errors_total{reason="unavailable"}`))

		t.Setenv("SECKILL_TEST_TOKEN", "another")
		e.load(e.config("backend "+up+"\nbackend_token {env.SECKILL_TEST_TOKEN}", byHeader))
		e.waitOpen()
		require.Equal(t, 503, e.must("GET", location, "alice", "").status)
		require.Equal(t, "1", e.figure(`caddy_seckill_backend_errors_total{reason="wrong_token"}`))
		require.Equal(t, "wrong_token", e.adminGet("/seckill/status").document(t)["backend"])
	})
}
