package caddyplugin

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/quic-go/quic-go"
	"github.com/quic-go/quic-go/http3"
	"github.com/stretchr/testify/require"
)

// loadTLS runs an edge that speaks TLS, and so HTTP/3, and returns what its
// clients need, which remembers sessions.
func (e *edge) loadTLS(options, site string) *tls.Config {
	e.t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(e.t, err)
	template := &x509.Certificate{SerialNumber: big.NewInt(1), DNSNames: []string{"localhost"}, NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	require.NoError(e.t, err)
	secret, err := x509.MarshalPKCS8PrivateKey(key)
	require.NoError(e.t, err)
	dir := e.t.TempDir()
	chain := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	require.NoError(e.t, os.WriteFile(filepath.Join(dir, "cert.pem"), chain, 0o600))
	require.NoError(e.t, os.WriteFile(filepath.Join(dir, "key.pem"), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: secret}), 0o600))
	_, port, err := net.SplitHostPort(e.site)
	require.NoError(e.t, err)
	config := e.config(options, fmt.Sprintf("tls %s/cert.pem %s/key.pem\n%s", dir, dir, site))
	e.load(strings.Replace(config, "http://"+e.site, "https://localhost:"+port, 1))
	roots := x509.NewCertPool()
	require.True(e.t, roots.AppendCertsFromPEM(chain))
	return &tls.Config{RootCAs: roots, ServerName: "localhost", NextProtos: []string{http3.NextProtoH3}, ClientSessionCache: tls.NewLRUClientSessionCache(1)}
}

// dial opens a connection that may send before the handshake is complete.
func dial(ctx context.Context, t *testing.T, e *edge, config *tls.Config) (*quic.Conn, *http3.ClientConn) {
	conn, err := quic.DialAddrEarly(ctx, e.site, config, nil)
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.CloseWithError(0, "") })
	return conn, new(http3.Transport).NewClientConn(conn)
}

func request(ctx context.Context, t *testing.T, method, path, user string, body io.Reader) *http.Request {
	r, err := http.NewRequestWithContext(ctx, method, "https://localhost"+path, body)
	require.NoError(t, err)
	r.Header.Set("X-User-Id", user)
	return r
}

// atOnce asks without waiting for the handshake, as no client of HTTP/3
// does by itself for a POST.
func atOnce(t *testing.T, c *http3.ClientConn, r *http.Request) int {
	stream, err := c.OpenRequestStream(r.Context())
	require.NoError(t, err)
	require.NoError(t, stream.SendRequestHeader(r))
	require.NoError(t, stream.Close())
	answer, err := stream.ReadResponse()
	require.NoError(t, err)
	require.NoError(t, answer.Body.Close())
	return answer.StatusCode
}

func inTurn(t *testing.T, c *http3.ClientConn, r *http.Request) int {
	answer, err := c.RoundTrip(r)
	require.NoError(t, err)
	require.NoError(t, answer.Body.Close())
	return answer.StatusCode
}

// left is how many units Redis has.
func (e *edge) left() string {
	n, err := e.store.Get(e.t.Context(), "seckill:stock:{1001}").Result()
	require.NoError(e.t, err)
	return n
}

// What comes before the handshake is complete may be somebody's packets, sent
// again from an address that somebody has made up: nothing of it counts.
func TestEarlyDataIsRefused(t *testing.T) {
	for name, site := range map[string]string{"seckill": byHeader, "seckill_limit": "route {\nseckill_limit\n" + byHeader + "\n}"} {
		t.Run(name, func(t *testing.T) {
			redisURL, rabbitmqURL := backings()[0].start(t)
			e := newEdge(t, redisURL, rabbitmqURL)
			config := e.loadTLS("limit ip 1/1h burst 4", site)
			e.sell(10, 10)
			e.waitOpen()
			ctx, cancel := context.WithTimeout(t.Context(), soon)
			defer cancel()

			first, c := dial(ctx, t, e, config)
			require.Equal(t, http.StatusAccepted, inTurn(t, c, request(ctx, t, http.MethodPost, "/seckill/1001", "alice", nil)))
			require.NoError(t, first.CloseWithError(0, ""))

			for _, early := range [][2]string{
				{http.MethodPost, "/seckill/1001"},
				{http.MethodPost, "/seckill/1001/ticket"},
				{http.MethodGet, "/seckill/1001"},
			} {
				conn, c := dial(ctx, t, e, config)
				require.Equal(t, http.StatusTooEarly, atOnce(t, c, request(ctx, t, early[0], early[1], "alice", nil)), "%v", early)
				require.True(t, conn.ConnectionState().Used0RTT)
				// Four tokens: one before, three for these. What was refused took none.
				require.NotContains(t, []int{http.StatusTooEarly, http.StatusTooManyRequests},
					inTurn(t, c, request(ctx, t, early[0], early[1], "alice", nil)), "%v", early)
				require.NoError(t, conn.CloseWithError(0, ""))
			}
			_, c = dial(ctx, t, e, &tls.Config{RootCAs: config.RootCAs, ServerName: "localhost", NextProtos: config.NextProtos})
			require.Equal(t, http.StatusTooManyRequests, inTurn(t, c, request(ctx, t, http.MethodPost, "/seckill/1001", "alice", nil)))
			require.Equal(t, "8", e.left())
		})
	}
}

// A proxy that takes early data says so, and passes a 425 on.
func TestEarlyDataOfAProxyIsRefused(t *testing.T) {
	onEach(t, func(t *testing.T, e *edge) {
		e.load(e.config("", byHeader))
		e.sell(10, 10)
		e.waitOpen()
		r, err := http.NewRequest(http.MethodPost, "http://"+e.site+"/seckill/1001", nil)
		require.NoError(t, err)
		r.Header.Set("X-User-Id", "alice")
		r.Header.Set("Early-Data", "1")
		got, err := e.do(r)
		require.NoError(t, err)
		require.Equal(t, http.StatusTooEarly, got.status)
		require.Equal(t, "urn:seckill:too_early", got.document(t)["type"])
		require.Equal(t, http.StatusAccepted, e.must(http.MethodPost, "/seckill/1001", "alice", "").status)
		require.Equal(t, "9", e.left())
	})
}

// A body that does not come is not waited for, over no protocol.
func TestSlowBodyIsCutOff(t *testing.T) {
	redisURL, rabbitmqURL := backings()[0].start(t)
	e := newEdge(t, redisURL, rabbitmqURL)
	config := e.loadTLS("", byHeader)
	e.sell(10, 10)
	e.waitOpen()
	ctx, cancel := context.WithTimeout(t.Context(), soon)
	defer cancel()
	_, c := dial(ctx, t, e, config)
	unsized := io.NopCloser(strings.NewReader(`{"quantity":2}`))
	require.Equal(t, http.StatusAccepted, inTurn(t, c, request(ctx, t, http.MethodPost, "/seckill/1001", "alice", unsized)))
	secure := tls.Dialer{Config: &tls.Config{RootCAs: config.RootCAs, ServerName: "localhost", NextProtos: []string{"http/1.1"}}}
	conn, err := secure.DialContext(ctx, "tcp", e.site)
	require.NoError(t, err)
	defer conn.Close()
	_, err = fmt.Fprintf(conn, "POST /seckill/1001 HTTP/1.1\r\nHost: localhost\r\nX-User-Id: carol\r\nContent-Length: 14\r\n\r\n{")
	require.NoError(t, err)

	body, rest := io.Pipe()
	defer rest.Close()
	require.Equal(t, http.StatusRequestTimeout, inTurn(t, c, request(ctx, t, http.MethodPost, "/seckill/1001", "bob", body)))
	require.NoError(t, conn.SetReadDeadline(time.Now().Add(soon)))
	line := make([]byte, 12)
	_, err = conn.Read(line)
	require.NoError(t, err)
	require.Equal(t, "HTTP/1.1 408", string(line))
	require.Equal(t, "8", e.left())
}
