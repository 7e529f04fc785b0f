package caddyplugin

import (
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	"github.com/stretchr/testify/require"
)

func TestIdentityCheck(t *testing.T) {
	for _, good := range []string{
		"", "http.auth.user.id", "{http.auth.user.id}", "http.auth.user.email", "http.reverse_proxy.header.Remote-User",
		"http.request.tls.client.subject", "http.request.tls.client.fingerprint",
	} {
		require.NoError(t, newIdentity(good).check(false), "%q", good)
	}
	for _, bad := range []string{
		"http.request.header.X-User-Id", "{http.request.header.X-User-Id}", "http.request.cookie.user", "http.request.uri.query.user",
		"http.request.uri.path", "http.request.host", "http.request.body", "http.request.remote.host", "http.request.tls.server_name",
		"http.vars.user", "http.regexp.user.1", "system.hostname", "env.USER", "header.X-User-Id", "nonsense",
	} {
		require.ErrorContains(t, newIdentity(bad).check(false), "insecure_client_identity", "%q", bad)
		require.NoError(t, newIdentity(bad).check(true), "%q", bad)
	}
	for _, broken := range []string{"{a}{b}", "user {a}", "{a", "a}"} {
		require.ErrorContains(t, newIdentity(broken).check(true), "one placeholder", "%q", broken)
	}
}

func TestIdentityOf(t *testing.T) {
	r := httptest.NewRequest(http.MethodGet, "/?user=quinn", nil)
	r.Header.Set("X-User-Id", "heidi")
	r.Header.Add("X-Twice", "one")
	r.Header.Add("X-Twice", "two")
	r.AddCookie(&http.Cookie{Name: "user", Value: "carol"})
	replacer := caddy.NewReplacer()
	replacer.Set("http.auth.user.id", "alice")
	r = caddyhttp.PrepareRequest(r, replacer, httptest.NewRecorder(), new(caddyhttp.Server))
	for placeholder, want := range map[string]string{
		"":                              "alice",
		"{http.auth.user.id}":           "alice",
		"http.auth.user.email":          "",
		"http.request.header.x-user-id": "heidi",
		"http.request.header.X-None":    "",
		"http.request.header.X-Twice":   "",
		"http.request.cookie.user":      "carol",
		"http.request.uri.query.user":   "quinn",
	} {
		require.Equal(t, want, newIdentity(placeholder).of(r), "%q", placeholder)
	}
	bare := httptest.NewRequest(http.MethodGet, "/", nil)
	require.Empty(t, newIdentity("").of(bare), "no server prepared it")
}

// In Caddy's modes request and require the client certificate is nobody's word but
// its maker's.
func TestUnverifiedCertificateIsNobody(t *testing.T) {
	own := &x509.Certificate{Subject: pkix.Name{CommonName: "alice"}}
	for want, state := range map[string]*tls.ConnectionState{
		"CN=alice": {PeerCertificates: []*x509.Certificate{own}, VerifiedChains: [][]*x509.Certificate{{own, own}}},
		"":         {PeerCertificates: []*x509.Certificate{own}},
	} {
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		r.TLS = state
		r = caddyhttp.PrepareRequest(r, caddy.NewReplacer(), httptest.NewRecorder(), new(caddyhttp.Server))
		require.Equal(t, want, newIdentity("http.request.tls.client.subject").of(r))
	}
	plain := caddyhttp.PrepareRequest(httptest.NewRequest(http.MethodGet, "/", nil), caddy.NewReplacer(), httptest.NewRecorder(), new(caddyhttp.Server))
	require.Empty(t, newIdentity("http.request.tls.client.subject").of(plain))
}
