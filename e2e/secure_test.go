package e2e

import (
	"bytes"
	"crypto/tls"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	seckill "github.com/seckill-edge/seckill"
	"github.com/seckill-edge/seckill/e2e/stack"
	"github.com/seckill-edge/seckill/internal/servicetest"
)

// untrusted is the production Caddyfile, but for this: a test must not make this
// machine trust the edge's own certificates.
func untrusted(t *testing.T) []byte {
	own := bytes.Replace(seckill.Caddyfile, []byte("persist_config off\n"), []byte("persist_config off\n\tskip_install_trust\n"), 1)
	require.NotEqual(t, seckill.Caddyfile, own)
	return own
}

// secureEdge adds an edge that speaks TLS, under the certificate it makes itself,
// and returns its URL and what a client needs.
func secureEdge(t *testing.T, s *stack.Stack, env ...string) (edge *stack.Edge, url string, config *tls.Config) {
	edge, err := s.AddEdge(t.Context())
	require.NoError(t, err)
	require.NoError(t, edge.Stop())
	url = "https://localhost:" + edge.URL[strings.LastIndexByte(edge.URL, ':')+1:]
	require.NoError(t, s.StartEdge(t.Context(), edge, append(env, "SECKILL_SITE="+url)...))
	config = &tls.Config{InsecureSkipVerify: true, ServerName: "localhost"} // Caddy's own certificate
	servicetest.Eventually(t, func() bool {                                 // it makes one in the background
		conn, err := tls.Dial("tcp", hostOf(edge.URL), config)
		return err == nil && conn.Close() == nil
	})
	return edge, url, config
}
