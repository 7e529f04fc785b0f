package caddyplugin

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/crypto/bcrypt"
)

// The two authenticators that Caddy brings along, as the production Caddyfile
// shows them. Neither lets a client say who he is.
func TestLogin(t *testing.T) {
	hash, err := bcrypt.GenerateFromPassword([]byte("wonderland"), bcrypt.MinCost)
	require.NoError(t, err)
	logins := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") == "Bearer alices" {
			w.Header().Set("Remote-User", "alice")
		} // else: known to nobody, but not turned away either
	}))
	defer logins.Close()

	for name, tc := range map[string]struct {
		site    string
		login   func(*http.Request)
		refused int
	}{
		"forward_auth": {
			fmt.Sprintf("forward_auth %s {\n\t\turi /verify\n\t}\n\tseckill {\n\t\tidentity http.reverse_proxy.header.Remote-User\n\t}", logins.URL),
			func(r *http.Request) { r.Header.Set("Authorization", "Bearer alices") }, 401,
		},
		"basic_auth": {
			fmt.Sprintf("basic_auth {\n\t\talice %s\n\t}\n\tseckill", hash),
			func(r *http.Request) { r.SetBasicAuth("alice", "wonderland") }, 401,
		},
	} {
		t.Run(name, func(t *testing.T) {
			onEach(t, func(t *testing.T, e *edge) {
				e.sell(10, 1)
				e.load(e.config("", tc.site))
				e.waitOpen()
				request := func() *http.Request {
					r, err := http.NewRequest(http.MethodPost, "http://"+e.site+"/seckill/1001", nil)
					require.NoError(t, err)
					r.Header.Set("Remote-User", "mallory")
					r.Header.Set("X-User-Id", "mallory")
					return r
				}
				refused, err := e.do(request())
				require.NoError(t, err)
				require.Equal(t, tc.refused, refused.status)

				r := request()
				tc.login(r)
				bought, err := e.do(r)
				require.NoError(t, err)
				require.Equal(t, 202, bought.status, "%s", bought.body)
				e.queued(map[string]string{"alice": bought.document(t)["order_id"].(string)})
			})
		})
	}
}

// As it stands, the production Caddyfile sells to nobody: nobody is logged in.
func TestProductionCaddyfileSellsToNobody(t *testing.T) {
	onEach(t, func(t *testing.T, e *edge) {
		e.sell(10, 1)
		e.loadProduction(t.TempDir())
		r := e.must("POST", "/seckill/1001", "alice", "")
		require.Equal(t, 401, r.status)
		require.Equal(t, 200, e.must("GET", "/seckill/1001", "", "").status)
	})
}

// The same file, with nothing but its environment changed, is the development
// edge.
func TestProductionCaddyfileForDevelopment(t *testing.T) {
	onEach(t, func(t *testing.T, e *edge) {
		e.sell(10, 1)
		t.Setenv("SECKILL_IDENTITY", "http.request.header.X-User-Id")
		t.Setenv("SECKILL_INSECURE_CLIENT_IDENTITY", "on")
		t.Setenv("SECKILL_LIMIT_IP", "off")
		e.loadProduction(t.TempDir())
		e.waitOpen()
		r := e.must("POST", "/seckill/1001", "alice", `{"quantity":1}`)
		require.Equal(t, 202, r.status, "%s", r.body)
		e.queued(map[string]string{"alice": r.document(t)["order_id"].(string)})
		for _, path := range []string{"/no-such-page", "/SECKILL/1001", "//seckill/1001", "/Seckill/1001/orders/x"} {
			require.Equal(t, 404, e.must("GET", path, "alice", "").status, path)
			require.Equal(t, 404, e.must("POST", path, "alice", "").status, path)
		}
	})
}
