package api

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"
)

// What a page of another site can make a browser send without asking is no order
// of the operator's.
func TestBodiesAreJSON(t *testing.T) {
	s := newSite(t, "")
	for _, tc := range []struct {
		kind   string
		status int
	}{
		{"", 415},
		{"text/plain", 415},
		{"text/plain; a=+json", 415},
		{";application/json", 415},
		{"application/x-www-form-urlencoded", 415},
		{"multipart/form-data; boundary=x", 415},
		{"application/cbor", 415},
		{"application/json; charset=utf-8", 201},
		{"application/json", 409}, // it is there
	} {
		out := s.do(t, request{method: http.MethodPost, path: "/api/activities", body: draft(unchanged), header: map[string]string{"Content-Type": tc.kind}})
		require.Equal(t, tc.status, out.Code, "%q: %s", tc.kind, out.Body)
	}
	require.Equal(t, 415, s.do(t, request{method: http.MethodPost, path: "/api/activities/1002/close", body: "a=b", header: map[string]string{"Content-Type": "text/plain"}}).Code)
	require.Equal(t, 404, s.do(t, request{method: http.MethodPost, path: "/api/activities/1002/close"}).Code)
}
