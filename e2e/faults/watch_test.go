package faults

import (
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/seckill-edge/seckill/e2e/history"
)

func TestWhatProgramsSayIsRead(t *testing.T) {
	const ok, away = http.StatusOK, http.StatusServiceUnavailable
	one := func(c history.Claim, text string, names ...history.Server) []history.Statement {
		return []history.Statement{{Claim: c, Text: text, Names: names}}
	}
	why := func(words string) string { return `{"state":"open","why":"` + words + `"}` }
	for _, test := range []struct {
		name   string
		read   reading
		status int
		body   string
		want   []history.Statement
	}{
		{"an edge is ready", edgeStatus, ok, `{"ready":true}`, one(history.Ready, "ready")},
		{"an edge names Redis", edgeStatus, ok, `{"ready":false,"reason":"redis: EOF"}`, one(history.NotReady, "redis: EOF", history.Redis)},
		{"an edge names the queue", edgeStatus, ok, `{"reason":"queue: redis is fine"}`, one(history.NotReady, "queue: redis is fine", history.Broker)},
		{"no status", edgeStatus, 500, `{"ready":true}`, nil},
		{"the metric is 1", edgeMetric, ok, "# HELP x\ncaddy_seckill_ready 1\n", one(history.Ready, "1")},
		{"the metric is 0", edgeMetric, ok, "caddy_seckill_ready 0\n", one(history.NotReady, "0")},
		{"no metric", edgeMetric, ok, "caddy_seckill_ready_or_not 1\n", nil},
		{"a backend waits for the database", backendMetric, ok, "seckill_backend_database_paused 1\n", []history.Statement{
			{Place: "seckill_backend_database_paused", Claim: history.NotReady, Text: "1", Names: []history.Server{history.Database}},
		}},
		{"a backend's metric says ready", backendMetric, ok, "seckill_backend_ready 1\nseckill_backend_database_paused 0\n", []history.Statement{
			{Place: "seckill_backend_ready", Claim: history.Ready, Text: "1"}, {Place: "seckill_backend_database_paused", Text: "0"},
		}},
		{"an edge names parts", edgeStatus, ok, `{"reason":"no","causes":{"redis":"out_of_memory"}}`, one(history.NotReady, "no", history.Redis)},
		{"a cause", activity, ok, `{"why":"x","causes":{"redis":"read_only","queue":"away"}}`, one(history.NotReady, "x", history.Broker, history.Redis)},
		{"the database's cause", activity, ok, `{"why":"x","causes":{"consumer":"read_only","database":"read_only"}}`, one(history.NotReady, "x", history.Database)},
		{"a consumer's cause of a database", activity, ok, `{"why":"x","causes":{"consumer":"full"}}`, one(history.NotReady, "x", history.Database)},
		{"a consumer's cause of a broker", activity, ok, `{"why":"x","causes":{"consumer":"misconfigured"}}`, one(history.NotReady, "x", history.Broker)},
		{"none runs", activity, ok, `{"why":"x","causes":{"backend":"none_running"}}`, one(history.NoBackend, "x")},
		{"a backend is ready", readyz, ok, `{"ready":true}`, one(history.Ready, "ready")},
		{
			"a backend is not", readyz, away, `{"ready":false,"not_ready":["consumer","database","redis"]}`,
			one(history.NotReady, "not ready: map[]", history.Broker, history.Database, history.Redis),
		},
		{
			"a consumer waits for the database", readyz, away, `{"not_ready":["consumer"],"why":{"consumer":"database: storing waits for it"}}`,
			one(history.NotReady, "not ready: map[consumer:database: storing waits for it]", history.Database),
		},
		{"a page of somebody else's", readyz, away, `{"ready":true}`, nil},
		{"selling", activity, ok, why("selling"), one(history.Selling, "selling")},
		{"sold out", activity, ok, why("sold out"), one("", "sold out")},
		{"no backend", activity, ok, why("selling; but no backend (seckilld serve) runs: x"), one(history.NoBackend, "selling; but no backend (seckilld serve) runs: x")},
		{"no broker", activity, ok, why("selling; but the broker does not answer: x"), one(history.NotReady, "selling; but the broker does not answer: x", history.Broker)},
		{"lost", activity, ok, why("Redis has lost it: x"), one(history.NotReady, "Redis has lost it: x")},
		{"held", activity, ok, `{"state":"held","why":"x"}`, one(history.HeldBySomebody, "x")},
		{"held in Redis", activity, ok, why("held in Redis though it should be open: x"), one(history.HeldBySomebody, "held in Redis though it should be open: x")},
		{"cannot be told", activity, away, "", nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			require.Equal(t, test.want, test.read(test.status, []byte(test.body)))
		})
	}
}

func TestLinesOfOutagesAreRead(t *testing.T) {
	at := time.Date(2026, 11, 11, 20, 0, 0, 500_000_000, time.UTC)
	for name, test := range map[string]struct {
		text string
		want history.Line
		ok   bool
	}{
		"an edge's beginning": {
			`{"level":"error","ts":1794427200.5,"logger":"seckill","msg":"Redis does not answer, the entrance is closed","product":"p1"}`,
			history.Line{What: "Redis p1", Server: history.Redis, Begins: true, Text: "Redis does not answer, the entrance is closed"},
			true,
		},
		"an edge's end": {
			`{"level":"info","ts":1794427200.5,"msg":"Redis answers again","product":"p1"}`,
			history.Line{What: "Redis p1", Server: history.Redis, Text: "Redis answers again"},
			true,
		},
		"a backend's beginning": {
			`time=2026-11-11T20:00:00.500Z level=WARN msg="consume: database is away; storing \"waits\" for it" orders=3 error="msg=x"`,
			history.Line{What: "consume: database", Server: history.Database, Begins: true, Text: `consume: database is away; storing \"waits\" for it`},
			true,
		},
		"a backend's end": {
			`time=2026-11-11T20:00:00.500Z level=INFO msg="consume: database is back, storing goes on"`,
			history.Line{What: "consume: database", Server: history.Database, Text: "consume: database is back, storing goes on"},
			true,
		},
		"a duty's": {
			`time=2026-11-11T20:00:00.500Z level=WARN msg="relay: failed; trying again and again" error=x`,
			history.Line{What: "relay", Begins: true, Text: "relay: failed; trying again and again"},
			true,
		},
		"an outage that lasts": {
			`{"level":"error","ts":1794427200.5,"msg":"Redis does not answer: still nothing can be sold"}`, history.Line{}, false,
		},
		"another line":   {`time=2026-11-11T20:00:00.500Z level=INFO msg="activity opened" error="Redis does not answer"`, history.Line{}, false},
		"no line at all": {`panic: Redis does not answer`, history.Line{}, false},
	} {
		t.Run(name, func(t *testing.T) {
			got, ok := outageLine("edge 1", test.text)
			require.Equal(t, test.ok, ok)
			if !ok {
				return
			}
			require.True(t, got.At.Equal(at), got.At)
			test.want.By, test.want.At = "edge 1", got.At
			require.Equal(t, test.want, got)
		})
	}
}
