package api

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"
)

// Who guesses the token is seen to do so, wherever it would tell him that he is
// right; a console that does not know it yet guesses nothing.
func TestWrongTokensAreCounted(t *testing.T) {
	s := newSite(t, "secret")
	for _, path := range []string{"/api/activities", "/metrics", "/readyz"} {
		s.missing = map[string]error{"redis": http.ErrServerClosed} // a reason, which is for friends
		for _, token := range []string{"", "Bearer guess", "Basic secret", "Bearer secret"} {
			s.do(t, request{path: path, header: map[string]string{"Authorization": token}})
		}
	}
	out := s.do(t, request{path: "/metrics", header: map[string]string{"Authorization": "Bearer secret"}})
	require.Contains(t, out.Body.String(), "\nseckill_backend_wrong_tokens_total 6\n")
}
