package api

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"
)

// A browser that leaves a page cancels its requests. This is no failure of a
// server, so nobody is to be woken for it; a store that fails is one.
func TestAClientThatGoesAwayIsNoError(t *testing.T) {
	paths := []string{"/api/activities", "/api/activities/1001", "/api/activities/1001/audit", "/api/orders/01m8mcb8mmgstzccbmrw2zgrwy", "/api/refunds"}
	for _, tc := range []struct {
		name  string
		cause func(*site) context.Context
		says  string
	}{
		{"the client goes away", func(*site) context.Context {
			ctx, leave := context.WithCancel(t.Context())
			leave()
			return ctx
		}, "level=DEBUG"},
		{"the store fails", func(s *site) context.Context {
			require.NoError(t, s.store.Close())
			return t.Context()
		}, "level=ERROR"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := newSite(t, "")
			ctx := tc.cause(s)
			for _, path := range paths {
				s.log.Reset()
				in := httptest.NewRequestWithContext(ctx, http.MethodGet, path, nil)
				in.Host = "127.0.0.1:9680"
				out := httptest.NewRecorder()
				s.ServeHTTP(out, in)
				require.Equal(t, http.StatusServiceUnavailable, out.Code, "%s: %s", path, out.Body)
				require.Contains(t, s.log.String(), tc.says, path)
			}
		})
	}
}
