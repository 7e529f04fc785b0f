package e2e

import (
	"bufio"
	"context"
	"crypto/tls"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/quic-go/quic-go"
	"github.com/quic-go/quic-go/http3"
	"github.com/stretchr/testify/require"

	"github.com/seckill-edge/seckill/e2e/stack"
	"github.com/seckill-edge/seckill/internal/servicetest"
)

// A sale over HTTP/3, which the production Caddyfile serves wherever it serves
// HTTPS: buy, follow the order, be limited by address like everybody.
func TestHTTP3(t *testing.T) {
	s := startWith(t, 1, stack.Options{Caddyfile: untrusted(t)})
	for _, args := range [][]string{
		{"activity", "create", "--product", "1001", "--title", "Phone", "--total", "10", "--limit", "5", "--start", "2026-01-01T00:00:00Z", "--end", "2099-01-01T00:00:00Z", "--manual"},
		{"activity", "preheat", "1001"},
		{"activity", "open", "1001"},
	} {
		_, err := s.Seckilld(t.Context(), args...)
		require.NoError(t, err)
	}
	edge, url, config := secureEdge(t, s, "SECKILL_LIMIT_IP=1/1h burst 10")
	servicetest.Eventually(t, func() bool { // from an address of its own, and no purchase
		c := clientFrom(t, "127.0.0.3", hostOf(edge.URL), config)
		return c.ask(t, http.MethodGet, url+"/seckill/1001", "nobody", nil).Status == http.StatusOK
	})

	c := clientFrom(t, "127.0.0.1", hostOf(edge.URL), config)
	bought := c.ask(t, http.MethodPost, url+"/seckill/1001", "alice", strings.NewReader(`{"quantity":2}`))
	require.Equal(t, http.StatusAccepted, bought.Status)
	require.Equal(t, "created", c.follow(t, url+bought.StatusURL+"/events", "alice"))
	require.Equal(t, "created", c.ask(t, http.MethodGet, url+bought.StatusURL, "alice", nil).Fate)
	require.Equal(t, http.StatusNotFound, c.ask(t, http.MethodGet, url+bought.StatusURL, "mallory", nil).Status)
	require.Equal(t, http.StatusRequestEntityTooLarge, c.ask(t, http.MethodPost, url+"/seckill/1001", "alice", strings.NewReader(strings.Repeat("x", 5<<10))).Status)
	require.Equal(t, http.StatusBadRequest, c.ask(t, http.MethodPost, url+"/seckill/1001", "alice", strings.NewReader(`{"quantity":1.0}`)).Status)
	for range 4 { // of ten tokens
		require.Equal(t, http.StatusUnauthorized, c.ask(t, http.MethodPost, url+"/seckill/1001", "", nil).Status)
	}

	again := clientFrom(t, "127.0.0.1", hostOf(edge.URL), config)
	for _, c := range []*quicClient{c, again} {
		limited := c.ask(t, http.MethodPost, url+"/seckill/1001", "bob", nil)
		require.Equal(t, http.StatusTooManyRequests, limited.Status)
		require.Equal(t, -10, limited.Code)
	}
	other := clientFrom(t, "127.0.0.2", hostOf(edge.URL), config)
	require.Equal(t, http.StatusAccepted, other.ask(t, http.MethodPost, url+"/seckill/1001", "bob", nil).Status)
	servicetest.Eventually(t, func() bool {
		a := readAudit(t, s.Backends[0].URL, "1001")
		return a.Consistent && a.Drift == 0 && a.Sold == 3 && a.Available == 7
	})
}

// quicClient is one connection of HTTP/3.
type quicClient struct{ *http3.ClientConn }

// clientFrom connects from an address of this machine.
func clientFrom(t *testing.T, from, to string, config *tls.Config) *quicClient {
	socket, err := net.ListenUDP("udp", &net.UDPAddr{IP: net.ParseIP(from)})
	require.NoError(t, err)
	addr, err := net.ResolveUDPAddr("udp", to)
	require.NoError(t, err)
	transport := &quic.Transport{Conn: socket}
	config = config.Clone()
	config.NextProtos = []string{http3.NextProtoH3}
	ctx, cancel := context.WithTimeout(t.Context(), servicetest.Patience())
	defer cancel()
	conn, err := transport.Dial(ctx, addr, config, nil)
	require.NoError(t, err)
	t.Cleanup(func() {
		_ = conn.CloseWithError(0, "")
		require.NoError(t, transport.Close())
		require.NoError(t, socket.Close())
	})
	return &quicClient{new(http3.Transport).NewClientConn(conn)}
}

func (c *quicClient) send(t *testing.T, method, url, user string, body io.Reader) *http.Response {
	req, err := http.NewRequestWithContext(t.Context(), method, url, body)
	require.NoError(t, err)
	if user != "" {
		req.Header.Set("X-User-Id", user)
	}
	resp, err := c.RoundTrip(req)
	require.NoError(t, err)
	require.Equal(t, 3, resp.ProtoMajor)
	return resp
}

func (c *quicClient) ask(t *testing.T, method, url, user string, body io.Reader) answer {
	resp := c.send(t, method, url, user, body)
	defer resp.Body.Close()
	a := answer{}
	_ = json.NewDecoder(resp.Body).Decode(&a) // a problem's status is a number; the code is what counts
	a.Status = resp.StatusCode
	return a
}

// follow reads an order's events to their end and returns the last state.
func (c *quicClient) follow(t *testing.T, url, user string) (state string) {
	resp := c.send(t, http.MethodGet, url, user, nil)
	defer resp.Body.Close()
	require.Equal(t, http.StatusOK, resp.StatusCode)
	lines := bufio.NewScanner(resp.Body)
	for lines.Scan() {
		if id, ok := strings.CutPrefix(lines.Text(), "id: "); ok {
			state = id
		}
	}
	require.NoError(t, lines.Err())
	return state
}
