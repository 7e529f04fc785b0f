package caddyplugin

import (
	"bufio"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/seckill-edge/seckill/caddyplugin/gate"
	"github.com/seckill-edge/seckill/internal/order"
	"github.com/seckill-edge/seckill/internal/servicetest"
	"github.com/seckill-edge/seckill/lua"
)

// A server's time-outs are for requests; a stream outlives them where the idle
// timers are off, as in the production Caddyfile: on HTTP/1.1…
func TestStreamOutlivesTimeouts(t *testing.T) {
	onEach(t, func(t *testing.T, e *edge) {
		e.sell(20, 1)
		brief := servicetest.Scaled(100 * time.Millisecond)
		timeouts := fmt.Sprintf("metrics\n\tservers {\n\t\ttimeouts {\n\t\t\tread_body %[1]v\n\t\t\twrite %[1]v\n\t\t\tread_body_idle -1s\n\t\t\twrite_idle -1s\n\t\t}\n\t}", brief)
		e.load(strings.Replace(e.config("", byHeader), "metrics", timeouts, 1))
		e.waitOpen()
		id := e.bought("alice")
		s := e.openStream("alice", id, "")
		require.Equal(t, "queued", s.status()["status"])
		reads := e.theGate().Stats().Reads
		begin := time.Now()
		servicetest.Eventually(t, func() bool { // several looks, which take longer than the time-outs
			return e.theGate().Stats().Reads >= reads+2 && time.Since(begin) > 4*brief
		})
		e.move(lua.MarkCreated, "alice", id)
		require.Equal(t, "created", s.status()["status"])
	})
}

// …and on HTTP/2, where a deadline strikes without a write.
func TestStreamOutlivesDeadlinesOnHTTP2(t *testing.T) {
	fates := make(chan gate.Fate)
	h := &Handler{ending: make(chan struct{})}
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		e := events{w: w, to: http.NewResponseController(w)}
		e.open()
		if e.send(gate.Fate{OrderID: orderID, State: order.Queued}) {
			h.push(&e, r, fates)
		}
	}))
	server.EnableHTTP2 = true
	brief := servicetest.Scaled(100 * time.Millisecond)
	server.Config.WriteTimeout = brief
	server.StartTLS()
	defer server.Close()
	answer, err := server.Client().Get(server.URL)
	require.NoError(t, err)
	defer answer.Body.Close()
	require.Equal(t, 2, answer.ProtoMajor)
	s := &stream{t: t, answer: answer, lines: bufio.NewReader(answer.Body), cancel: func() { _ = answer.Body.Close() }}
	require.Equal(t, "queued", s.status()["status"])
	<-time.After(3 * brief) // the deadline passes
	fates <- gate.Fate{OrderID: orderID, State: order.Paid, Final: true}
	require.Equal(t, "paid", s.status()["status"])
	s.ended()
}

// A client that reads nothing is given up, and holds nobody up meanwhile.
func TestClientThatReadsNothing(t *testing.T) {
	fates := make(chan gate.Fate)
	server, client := net.Pipe()
	defer client.Close()
	deaf := &pipeWriter{conn: server, header: http.Header{}}
	h := &Handler{ending: make(chan struct{})}
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil)
	require.NoError(t, err)
	e := events{w: deaf, to: http.NewResponseController(deaf)}
	done := make(chan struct{})
	go func() { defer close(done); h.push(&e, r, fates) }()
	fates <- gate.Fate{OrderID: orderID, State: order.Created}
	select {
	case <-done:
	case <-time.After(writeWithin + soon):
		require.FailNow(t, "the stream goes on")
	}
}

// pipeWriter is a ResponseWriter on a connection without any buffer.
type pipeWriter struct {
	conn   net.Conn
	header http.Header
}

func (p *pipeWriter) Header() http.Header                 { return p.header }
func (p *pipeWriter) WriteHeader(int)                     {}
func (p *pipeWriter) Write(b []byte) (int, error)         { return p.conn.Write(b) }
func (p *pipeWriter) FlushError() error                   { return nil }
func (p *pipeWriter) SetReadDeadline(time.Time) error     { return nil }
func (p *pipeWriter) SetWriteDeadline(at time.Time) error { return p.conn.SetWriteDeadline(at) }
