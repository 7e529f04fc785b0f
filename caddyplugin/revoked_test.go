package caddyplugin

import (
	"net/http"
	"strings"
	"testing"

	"github.com/golang-jwt/jwt/v5"
	"github.com/stretchr/testify/require"

	"github.com/seckill-edge/seckill/internal/servicetest"
)

// When the key of a stolen token is taken away, the token ends with the reload, on
// connections that were open before too; one of another key goes on.
func TestTokensOfARevokedKeyEnd(t *testing.T) {
	onEach(t, func(t *testing.T, e *edge) {
		e.sell(10, 1)
		site := tokenSite(t) + "\n\tseckill"
		var without []string
		for line := range strings.Lines(site) {
			if !strings.Contains(line, "key h1") {
				without = append(without, line)
			}
		}
		stolen, kept := login(t, "alice"), login(t, "bob", signedBy(jwt.SigningMethodEdDSA, "e1"))
		status := func(token string) int {
			return e.again(func() (reply, error) {
				r, err := http.NewRequest(http.MethodGet, "http://"+e.site+"/seckill/1001/orders/"+orderID, nil)
				require.NoError(t, err)
				r.Header.Set("Authorization", "Bearer "+token)
				return e.do(r)
			}).status
		}
		e.load(e.config("", site))
		e.waitOpen()
		servicetest.Eventually(t, func() bool { return status(stolen) == 404 && status(kept) == 404 }, "known, and no such order")
		e.load(e.config("", strings.Join(without, "")))
		require.Equal(t, 401, status(stolen))
		require.Equal(t, 404, status(kept))
		e.load(e.config("", site))
		require.Equal(t, 404, status(stolen))
	})
}
