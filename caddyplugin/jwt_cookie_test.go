package caddyplugin

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	"github.com/stretchr/testify/require"
)

// A cookie is believed where nothing is bought by it, and only if it is the one
// that is named.
func TestTokenInACookie(t *testing.T) {
	good, late := login(t, "alice"), login(t, "alice", claim("exp", time.Now().Add(-time.Minute).Unix()))
	for name, tc := range map[string]struct {
		method, cookie, field string
		user                  string
		status                int
	}{
		"read":               {"GET", "token=" + good, "", "alice", 200},
		"head":               {"HEAD", "a=b; token=" + good, "", "alice", 200},
		"buy":                {"POST", "token=" + good, "", "", 200},
		"another cookie":     {"GET", "Token=" + good, "", "", 200},
		"two":                {"GET", "token=" + good + "; token=" + good, "", "", 200},
		"empty":              {"GET", "token=", "", "", 200},
		"expired":            {"GET", "token=" + late, "", "", 200},
		"a bad field first":  {"GET", "token=" + good, "Bearer x", "", 401},
		"the field is taken": {"GET", "token=x", "Bearer " + good, "alice", 200},
		"a password":         {"GET", "token=" + good, "Basic YWxpY2U6eA==", "", 200},
	} {
		t.Run(name, func(t *testing.T) {
			h := &TokenHandler{Tokens: newTokens(t)}
			h.Cookie = "token"
			provisionTokens(t, h)
			w := httptest.NewRecorder()
			r := prepare(w, httptest.NewRequest(tc.method, "/", nil), "")
			r.Header.Set("Cookie", tc.cookie)
			if tc.field != "" {
				r.Header.Set("Authorization", tc.field)
			}
			require.NoError(t, h.ServeHTTP(w, r, caddyhttp.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) error {
				require.Equal(t, tc.user, newIdentity("").of(r))
				return nil
			})))
			require.Equal(t, tc.status, w.Code)
		})
	}
	h := &TokenHandler{Tokens: newTokens(t)}
	h.Cookie = "a b"
	_, err := h.verifier()
	require.ErrorContains(t, err, "cookie")
}

// Nobody can put a bad cookie away himself, so it keeps him from nothing that
// strangers may see; what is a buyer's own wants a good one, and says so.
func TestABadCookieIsNobodys(t *testing.T) {
	tokens := &TokenHandler{Tokens: newTokens(t)}
	tokens.Cookie = "token"
	provisionTokens(t, tokens)
	shop := newTestHandler(newScript())
	shop.identity = newIdentity("")
	for name, tc := range map[string]struct{ cookie, kind, challenge string }{
		"expired": {login(t, "alice", claim("exp", time.Now().Add(-time.Minute).Unix())), "urn:seckill:expired_token", "expired"},
		"forged":  {login(t, "alice") + "A", "urn:seckill:invalid_token", "invalid_token"},
	} {
		for path, status := range map[string]int{"/seckill/1001": 200, location: 401, location + "/events": 401} {
			t.Run(name+path, func(t *testing.T) {
				w := httptest.NewRecorder()
				r := prepare(w, get(path), "")
				r.Header.Set("Cookie", "token="+tc.cookie)
				require.NoError(t, tokens.ServeHTTP(w, r, caddyhttp.HandlerFunc(func(w http.ResponseWriter, r *http.Request) error {
					return shop.ServeHTTP(w, r, nil)
				})))
				require.Equal(t, status, w.Code)
				if status == 401 {
					d := requireProblem(t, w.Result(), 401, 0)
					require.Equal(t, tc.kind, d["type"])
					require.Contains(t, w.Header().Get("WWW-Authenticate"), tc.challenge)
				}
			})
		}
	}
}
