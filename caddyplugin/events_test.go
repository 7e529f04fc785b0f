package caddyplugin

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/stretchr/testify/require"

	"github.com/seckill-edge/seckill/caddyplugin/gate"
	"github.com/seckill-edge/seckill/internal/order"
	"github.com/seckill-edge/seckill/lua"
)

// stream reads an order's events as a browser does.
type stream struct {
	t      testing.TB
	answer *http.Response
	lines  *bufio.Reader
	cancel context.CancelFunc
}

func (e *edge) openStream(user, id, lastEvent string) *stream {
	e.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+e.site+"/seckill/1001/orders/"+id+"/events", nil)
	require.NoError(e.t, err)
	r.Header.Set("X-User-Id", user)
	if lastEvent != "" {
		r.Header.Set("Last-Event-ID", lastEvent)
	}
	answer, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Do(r)
	require.NoError(e.t, err)
	s := &stream{t: e.t, answer: answer, lines: bufio.NewReader(answer.Body), cancel: cancel}
	e.t.Cleanup(s.close)
	return s
}

func (s *stream) close() {
	s.cancel()
	_ = s.answer.Body.Close()
}

// next reads one event; io.EOF when the stream has ended cleanly.
func (s *stream) next() (fields map[string]string, err error) {
	s.t.Helper()
	timeout := time.AfterFunc(soon, s.cancel)
	defer timeout.Stop()
	fields = make(map[string]string)
	for {
		line, err := s.lines.ReadString('\n')
		if err != nil {
			return nil, err
		}
		line = strings.TrimSuffix(line, "\n")
		if line == "" && len(fields) > 0 {
			return fields, nil
		}
		if name, value, ok := strings.Cut(line, ": "); ok {
			fields[name] = value
		}
	}
}

// status reads one event and returns its data.
func (s *stream) status() map[string]any {
	s.t.Helper()
	fields, err := s.next()
	require.NoError(s.t, err)
	require.Equal(s.t, "status", fields["event"])
	require.Regexp(s.t, `^[1-4]\d{3}$`, fields["retry"])
	var d map[string]any
	require.NoError(s.t, json.Unmarshal([]byte(fields["data"]), &d))
	require.Equal(s.t, d["status"], fields["id"])
	return d
}

func (s *stream) ended() {
	s.t.Helper()
	_, err := s.next()
	require.ErrorIs(s.t, err, io.EOF)
}

func (e *edge) bought(user string) string {
	e.t.Helper()
	r := e.must("POST", "/seckill/1001", user, "")
	require.Equal(e.t, 202, r.status, "%s", r.body)
	return r.document(e.t)["order_id"].(string)
}

func (e *edge) move(to lua.Mark, user, id string) {
	e.t.Helper()
	run := lua.Settle
	if to == lua.MarkRejected || to == lua.MarkCancelled || to == lua.MarkExpired {
		run = lua.Release
	}
	moved, err := run(e.t.Context(), e.store, "1001", to, []lua.Move{{UserID: user, OrderID: id, Reason: order.ReasonOversold}})
	require.NoError(e.t, err)
	require.Equal(e.t, []lua.Moved{lua.Done}, moved)
}

func TestEvents(t *testing.T) {
	onEach(t, func(t *testing.T, e *edge) {
		e.sell(20, 1)
		e.load(e.config("rate off\nstreams_per_buyer 2", byHeader))
		e.waitOpen()
		id := e.bought("alice")
		s := e.openStream("alice", id, "")
		require.Equal(t, 200, s.answer.StatusCode)
		require.Equal(t, "text/event-stream", s.answer.Header.Get("Content-Type"))
		require.Equal(t, "no-store, no-transform", s.answer.Header.Get("Cache-Control"))
		d := s.status()
		require.Equal(t, "queued", d["status"])
		require.Equal(t, false, d["final"])
		require.NotEmpty(t, d["resolve_by"])
		e.move(lua.MarkCreated, "alice", id)
		require.Equal(t, "created", s.status()["status"])
		e.move(lua.MarkPaid, "alice", id)
		d = s.status()
		require.Equal(t, "paid", d["status"])
		require.Equal(t, true, d["final"])
		s.ended()

		// A browser comes again, and is told to stop.
		again := e.openStream("alice", id, "paid")
		require.Equal(t, 204, again.answer.StatusCode)
		fresh := e.openStream("alice", id, "")
		require.Equal(t, "paid", fresh.status()["status"])
		fresh.ended()

		bobs := e.bought("bob")
		reject := e.openStream("bob", bobs, "queued")
		require.Equal(t, "queued", reject.status()["status"])
		require.Equal(t, 404, e.openStream("mallory", bobs, "").answer.StatusCode)
		e.move(lua.MarkRejected, "bob", bobs)
		d = reject.status()
		require.Equal(t, "rejected", d["status"])
		require.Equal(t, "oversold", d["reason"])
		reject.ended()

		// No more than a buyer may have; a closed one makes room.
		carols := e.bought("carol")
		one, two := e.openStream("carol", carols, ""), e.openStream("carol", carols, "")
		one.status()
		two.status()
		third := e.openStream("carol", carols, "")
		require.Equal(t, 429, third.answer.StatusCode)
		require.NotEmpty(t, third.answer.Header.Get("Retry-After"))
		require.Equal(t, "2", e.figure("caddy_seckill_streams"))
		one.close()
		require.Eventually(t, func() bool { return e.theGate().Stats().Streams == 1 }, soon, tick, "a dead client ends its stream")
		require.Equal(t, 200, e.openStream("carol", carols, "").answer.StatusCode)
	})
}

func TestStreamsAreBounded(t *testing.T) {
	onEach(t, func(t *testing.T, e *edge) {
		e.sell(20, 1)
		e.load(e.config("rate off\nstreams 1", byHeader))
		e.waitOpen()
		first := e.openStream("alice", e.bought("alice"), "")
		first.status()
		second := e.openStream("bob", e.bought("bob"), "")
		require.Equal(t, 503, second.answer.StatusCode)
		require.NotEmpty(t, second.answer.Header.Get("Retry-After"))
	})
}

// A reload, whether it keeps the gate or not, and the end of Caddy end every
// stream cleanly and at once, without waiting for its client.
func TestStreamsEndWithTheirConfig(t *testing.T) {
	onEach(t, func(t *testing.T, e *edge) {
		e.sell(20, 1)
		// The time that a shutdown may take is longer than this test waits.
		patient := func(options, site string) string {
			return strings.Replace(e.config(options, site), "grace_period 5s", "grace_period 10m", 1)
		}
		e.load(patient("rate off", byHeader))
		e.waitOpen()
		id := e.bought("alice")
		for _, next := range []string{
			patient("rate off", byHeader+"\n\theader X-Reloaded yes"),
			patient("rate off\nlinger 11ms", byHeader),
		} {
			s := e.openStream("alice", id, "")
			require.Equal(t, "queued", s.status()["status"])
			e.load(next)
			s.ended()
		}
		s := e.openStream("alice", id, "")
		require.Equal(t, "queued", s.status()["status"])
		begin := time.Now()
		e.stop()
		s.ended()
		require.Less(t, time.Since(begin), soon)
		engines.Range(func(any, any) bool { t.Error("an engine is left"); return true })
	})
}

// A server's time-outs are for requests; a stream outlives them where the idle
// timers are off, as in the production Caddyfile: on HTTP/1.1…
func TestStreamOutlivesTimeouts(t *testing.T) {
	onEach(t, func(t *testing.T, e *edge) {
		e.sell(20, 1)
		const timeouts = "metrics\n\tservers {\n\t\ttimeouts {\n\t\t\tread_body 100ms\n\t\t\twrite 100ms\n\t\t\tread_body_idle -1s\n\t\t\twrite_idle -1s\n\t\t}\n\t}"
		e.load(strings.Replace(e.config("rate off", byHeader), "metrics", timeouts, 1))
		e.waitOpen()
		id := e.bought("alice")
		s := e.openStream("alice", id, "")
		require.Equal(t, "queued", s.status()["status"])
		reads := e.theGate().Stats().Reads
		begin := time.Now()
		require.Eventually(t, func() bool { // several looks, which take longer than the time-outs
			return e.theGate().Stats().Reads >= reads+2 && time.Since(begin) > 400*time.Millisecond
		}, soon, tick)
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
	server.Config.WriteTimeout = 100 * time.Millisecond
	server.StartTLS()
	defer server.Close()
	answer, err := server.Client().Get(server.URL)
	require.NoError(t, err)
	defer answer.Body.Close()
	require.Equal(t, 2, answer.ProtoMajor)
	s := &stream{t: t, answer: answer, lines: bufio.NewReader(answer.Body), cancel: func() { _ = answer.Body.Close() }}
	require.Equal(t, "queued", s.status()["status"])
	<-time.After(300 * time.Millisecond) // the deadline passes
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

// A stream opened without a server to end it ends with its handler.
func TestCleanupEndsStreams(t *testing.T) {
	h := new(Handler)
	require.NoError(t, h.Cleanup())
	h.endStreamsWith(caddy.Context{Context: t.Context()})
	require.NoError(t, h.Cleanup())
	require.NoError(t, h.Cleanup())
	<-h.ending
}

func TestNoStream(t *testing.T) {
	for err, status := range map[error]int{gate.ErrTooManyOfBuyer: 429, gate.ErrTooManyStreams: 503} {
		s := newScript()
		s.fate = gate.Fate{OrderID: orderID, State: order.Queued, RetryAfter: 3 * time.Second}
		s.followErr = err
		r := serve(t, newTestHandler(s), get(location+"/events"))
		requireProblem(t, r, status, 0)
		require.Equal(t, "3", r.Header.Get("Retry-After"))
	}
	s := newScript()
	s.err = gate.ErrUnavailable
	requireProblem(t, serve(t, newTestHandler(s), get(location+"/events")), 503, 0)
}
