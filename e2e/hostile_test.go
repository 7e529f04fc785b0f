package e2e

import (
	"bufio"
	"bytes"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"
	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"github.com/seckill-edge/seckill/e2e/stack"
	"github.com/seckill-edge/seckill/internal/servicetest"
)

// What strangers send to an edge with the production Caddyfile breaks nothing,
// costs little and is cut off in time; the sale goes on beside it.
func TestHostileClients(t *testing.T) {
	s := startWith(t, 1, stack.Options{Caddyfile: untrusted(t)})
	ctx := t.Context()
	for _, args := range [][]string{
		{"activity", "create", "--product", "1001", "--title", "Phone", "--total", "1000", "--limit", "2", "--start", "2026-01-01T00:00:00Z", "--end", "2099-01-01T00:00:00Z"},
		{"activity", "preheat", "1001"},
		{"activity", "open", "1001"},
	} {
		_, err := s.Seckilld(ctx, args...)
		require.NoError(t, err)
	}
	edge := s.Edges[0]
	servicetest.Eventually(t, func() bool {
		return call(t, http.MethodPost, edge.URL+"/seckill/1001", "first").Status == http.StatusAccepted
	})
	client := redis.NewClient(&redis.Options{Addr: s.Redis.Addr()})
	defer client.Close()

	t.Run("ids that would be keys", func(t *testing.T) { injectKeys(t, edge, client) })
	t.Run("users that would be records", func(t *testing.T) { injectRecords(t, edge, client) })
	t.Run("a slow body", func(t *testing.T) {
		drip(t, edge, "POST /seckill/1001 HTTP/1.1\r\nHost: "+hostOf(edge.URL)+"\r\nX-User-Id: slow\r\nContent-Length: 100\r\n\r\n")
	})
	t.Run("slow headers", func(t *testing.T) { drip(t, edge, "POST /seckill/1001 HTTP/1.1\r\nX-Slow: ") })
	t.Run("large headers", func(t *testing.T) {
		answer := raw(t, edge, "GET /seckill/1001 HTTP/1.1\r\nHost: x\r\nX-Large: "+strings.Repeat("a", 64<<10)+"\r\n\r\n")
		require.Contains(t, answer, " 431 ")
	})
	t.Run("a large body", func(t *testing.T) {
		answer := raw(t, edge, "POST /seckill/1001 HTTP/1.1\r\nHost: "+hostOf(edge.URL)+"\r\nX-User-Id: large\r\nContent-Length: 1000000000\r\n\r\n{")
		require.Contains(t, answer, " 413 ")
	})
	t.Run("two lengths", func(t *testing.T) {
		answer := raw(t, edge, "POST /seckill/1001 HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nhello")
		require.Contains(t, answer, " 400 ")
	})
	t.Run("http/2 streams opened and reset", func(t *testing.T) { rapidReset(t, s) })

	require.Equal(t, http.StatusAccepted, call(t, http.MethodPost, edge.URL+"/seckill/1001", "last").Status)
	servicetest.Eventually(t, func() bool {
		a := readAudit(t, s.Backends[0].URL, "1001")
		return a.Consistent && a.Drift == 0 && a.Frozen == 0 && a.Outbox == 0
	})
}

// injectKeys: no id of a client becomes a key of Redis.
func injectKeys(t *testing.T, edge *stack.Edge, client *redis.Client) {
	for _, id := range []string{
		"{1001}", "1001}x{", "%7B1001%7D", "1001%00", "1001%0d%0aSET%20a%20b", "1001:x", "..%2f1001", "%2e%2e", "*", "1001*",
		"é", "%ff%fe", strings.Repeat("9", 65), "1001%20", "seckill:stock:%7B1001%7D",
	} {
		for _, url := range []string{"/seckill/" + id, "/seckill/1001/orders/" + id, "/seckill/1001/orders/" + id + "/events", "/seckill/" + id + "/orders/" + id} {
			for _, method := range []string{http.MethodPost, http.MethodGet} {
				status := call(t, method, edge.URL+url, "mallory").Status
				require.Contains(t, []int{400, 404, 405}, status, "%s %s", method, url)
			}
		}
	}
	keys, err := client.Keys(t.Context(), "*").Result()
	require.NoError(t, err)
	require.NotEmpty(t, keys)
	for _, key := range keys {
		require.Regexp(t, `^seckill:([a-z]+:\{1001\}|lease:\{relay\}(:fence)?|backends|\{probe\}|tide|limit)$`, key)
	}
}

// injectRecords: a buyer whose name looks like Redis's records is a buyer.
func injectRecords(t *testing.T, edge *stack.Edge, client *redis.Client) {
	for _, user := range []string{
		"q:01kb7q3x5e8g9h0jkmnpqrstvw:1:1:1", "a,b:c", "{1001}", "*", "'; DROP TABLE orders; --", "\"}{", "<script>", "用户", strings.Repeat("x", 128),
	} {
		bought := call(t, http.MethodPost, edge.URL+"/seckill/1001", user)
		require.Equal(t, http.StatusAccepted, bought.Status, "%q", user)
		require.Equal(t, http.StatusOK, call(t, http.MethodGet, edge.URL+bought.StatusURL, user).Status, "%q", user)
		require.Equal(t, http.StatusNotFound, call(t, http.MethodGet, edge.URL+bought.StatusURL, "mallory").Status, "%q", user)
		record, err := client.HGet(t.Context(), "seckill:users:{1001}", user).Result()
		require.NoError(t, err)
		require.Contains(t, record, bought.OrderID)
	}
	for _, user := range []string{strings.Repeat("x", 129), "a\tb", "\xff"} {
		require.Equal(t, http.StatusBadRequest, call(t, http.MethodPost, edge.URL+"/seckill/1001", user).Status, "%q", user)
	}
}

// drip sends a byte a second behind head until the edge has had enough, which
// must be well before half a minute.
func drip(t *testing.T, edge *stack.Edge, head string) {
	conn, err := net.Dial("tcp", hostOf(edge.URL))
	require.NoError(t, err)
	defer conn.Close()
	require.NoError(t, conn.SetDeadline(time.Now().Add(30*time.Second)))
	_, err = io.WriteString(conn, head)
	require.NoError(t, err)
	cut := make(chan error, 1)
	go func() {
		_, err := io.Copy(io.Discard, conn)
		cut <- err
	}()
	every := time.NewTicker(time.Second)
	defer every.Stop()
	for {
		select {
		case err := <-cut:
			require.False(t, os.IsTimeout(err), "the edge waited for half a minute")
			return
		case <-every.C:
			_, _ = io.WriteString(conn, "x") // refused: cut tells
		}
	}
}

// raw sends bytes and returns the first line of the answer.
func raw(t *testing.T, edge *stack.Edge, request string) string {
	conn, err := net.Dial("tcp", hostOf(edge.URL))
	require.NoError(t, err)
	defer conn.Close()
	require.NoError(t, conn.SetDeadline(time.Now().Add(20*time.Second)))
	_, err = io.WriteString(conn, request)
	require.NoError(t, err)
	line, err := bufio.NewReader(conn).ReadString('\n')
	require.NoError(t, err)
	return line
}

// rapidReset opens streams and takes each back at once, over HTTP/2 and TLS;
// others are served all the while: https://nvd.nist.gov/vuln/detail/CVE-2023-44487
func rapidReset(t *testing.T, s *stack.Stack) {
	edge, secure, config := secureEdge(t, s)
	config.NextProtos = []string{"h2"}
	buyer := &http.Client{Transport: &http.Transport{TLSClientConfig: config.Clone(), ForceAttemptHTTP2: true}}
	defer buyer.CloseIdleConnections()

	for range 20 {
		resetStreams(t, hostOf(edge.URL), config, 5000)
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, secure+"/seckill/1001", nil)
		require.NoError(t, err)
		answer, err := buyer.Do(req)
		require.NoError(t, err)
		require.NoError(t, answer.Body.Close())
		require.Equal(t, http.StatusOK, answer.StatusCode)
	}
	require.Less(t, residentMiB(t, edge.PID()), 512)
}

// resetStreams opens and resets n streams, or as many as the edge bears.
func resetStreams(t *testing.T, addr string, config *tls.Config, n int) {
	conn, err := tls.Dial("tcp", addr, config)
	require.NoError(t, err)
	defer conn.Close()
	require.NoError(t, conn.SetDeadline(time.Now().Add(20*time.Second)))
	_, err = io.WriteString(conn, http2.ClientPreface)
	require.NoError(t, err)
	framer := http2.NewFramer(conn, conn)
	require.NoError(t, framer.WriteSettings())
	drained := make(chan struct{})
	go func() {
		defer close(drained)
		_, _ = io.Copy(io.Discard, conn)
	}()
	defer func() { _ = conn.Close(); <-drained }()
	var block bytes.Buffer
	encoder := hpack.NewEncoder(&block)
	for i := range n {
		block.Reset()
		for _, f := range [][2]string{{":method", "POST"}, {":scheme", "https"}, {":authority", addr}, {":path", "/seckill/1001"}, {"x-user-id", fmt.Sprint("reset", i)}} {
			require.NoError(t, encoder.WriteField(hpack.HeaderField{Name: f[0], Value: f[1]}))
		}
		id := uint32(2*i + 1)
		if framer.WriteHeaders(http2.HeadersFrameParam{StreamID: id, BlockFragment: block.Bytes(), EndHeaders: true}) != nil ||
			framer.WriteRSTStream(id, http2.ErrCodeCancel) != nil {
			return
		}
	}
}

func hostOf(url string) string { return strings.TrimPrefix(url, "http://") }

// residentMiB is what a process holds in memory.
func residentMiB(t *testing.T, pid int) int {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	require.NoError(t, err)
	_, rest, found := strings.Cut(string(status), "VmRSS:")
	require.True(t, found)
	kib, err := strconv.Atoi(strings.Fields(rest)[0])
	require.NoError(t, err)
	return kib >> 10
}
