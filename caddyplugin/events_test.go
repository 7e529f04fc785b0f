package caddyplugin

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/stretchr/testify/require"

	"github.com/seckill-edge/seckill/caddyplugin/gate"
	"github.com/seckill-edge/seckill/internal/order"
	"github.com/seckill-edge/seckill/internal/servicetest"
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
	var answer *http.Response
	servicetest.Eventually(e.t, func() bool { // a server that a reload ends may cut a connection it has just taken
		answer, err = (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Do(r)
		return err == nil
	})
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
		e.load(e.config("streams_per_buyer 2", byHeader))
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
		servicetest.Eventually(t, func() bool { return e.theGate().Stats().Streams == 1 }, "a dead client ends its stream")
		require.Equal(t, 200, e.openStream("carol", carols, "").answer.StatusCode)
	})
}

func TestStreamsAreBounded(t *testing.T) {
	onEach(t, func(t *testing.T, e *edge) {
		e.sell(20, 1)
		e.load(e.config("streams 1", byHeader))
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
			return strings.Replace(e.config(options, site), "grace_period 5s", "grace_period 3h", 1)
		}
		e.load(patient("", byHeader))
		e.waitOpen()
		id := e.bought("alice")
		for _, next := range []string{
			patient("", byHeader+"\n\theader X-Reloaded yes"),
			patient("linger 11ms", byHeader),
		} {
			s := e.openStream("alice", id, "")
			require.Equal(t, "queued", s.status()["status"])
			e.load(next)
			s.ended()
		}
		s := e.openStream("alice", id, "")
		require.Equal(t, "queued", s.status()["status"])
		e.stop()
		s.ended()
		engines.Range(func(any, any) bool { t.Error("an engine is left"); return true })
	})
}

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

// An EventSource gives up for ever at a 503: while nobody can be asked it is told to
// come again by a stream without an event.
func TestEventSourceComesAgain(t *testing.T) {
	s := newScript()
	s.err = gate.ErrUnavailable
	r := get(location + "/events")
	r.Header.Set("Accept", "text/event-stream")
	answer := serve(t, newTestHandler(s), r)
	require.Equal(t, http.StatusOK, answer.StatusCode)
	require.Equal(t, "text/event-stream", answer.Header.Get("Content-Type"))
	body, err := io.ReadAll(answer.Body)
	require.NoError(t, err)
	require.Regexp(t, `^retry: [1-3]\d{3}\n\n$`, string(body))

	s.err = gate.ErrNoOrder
	r = get(location + "/events")
	r.Header.Set("Accept", "text/event-stream")
	requireProblem(t, serve(t, newTestHandler(s), r), 404, 0)
}
