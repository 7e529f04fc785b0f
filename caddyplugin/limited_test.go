package caddyplugin

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	"github.com/stretchr/testify/require"
	"golang.org/x/crypto/bcrypt"

	"github.com/seckill-edge/seckill/caddyplugin/gate"
	"github.com/seckill-edge/seckill/caddyplugin/limit"
	"github.com/seckill-edge/seckill/lua"
)

func refused(level limit.Level) limit.Verdict {
	return limit.Verdict{Refused: true, Level: level, RetryAfter: 7, Policy: `"` + level.String() + `";q=5;w=1`}
}

func shadowed(t testing.TB, levels ...limit.Level) limit.Set {
	t.Helper()
	var s limit.Set
	for _, l := range levels {
		s |= 1 << l
		require.True(t, s.Has(l))
	}
	return s
}

// Every level refuses with a problem of its own, before anything is asked.
func TestLimits(t *testing.T) {
	for _, level := range limit.Levels {
		t.Run(level.String(), func(t *testing.T) {
			s := newScript()
			switch level {
			case limit.User:
				s.user = refused(level)
			case limit.Activity, limit.SharedActivity:
				s.decision = gate.Decision{Outcome: lua.Limited, Limit: refused(level)}
			default:
				s.verdict = refused(level)
			}
			answer := serve(t, newTestHandler(s), post(""))
			d := requireProblem(t, answer, 429, -10)
			require.Equal(t, level.String(), d["level"])
			require.Equal(t, "urn:seckill:limited:"+level.String(), d["type"])
			require.Equal(t, "7", answer.Header.Get("Retry-After"))
			require.Equal(t, `"`+level.String()+`";r=0;t=7`, answer.Header.Get("RateLimit"))
			require.Equal(t, `"`+level.String()+`";q=5;w=1`, answer.Header.Get("RateLimit-Policy"))
		})
	}
}

// The limits on an address come first, for every call, whoever calls.
func TestLimitsComeFirst(t *testing.T) {
	for _, r := range []*http.Request{
		post(""), post("x"), get("/seckill/1001"), get(location), get("/seckill/x/y"),
		httptest.NewRequest(http.MethodDelete, "/seckill/1001", nil), httptest.NewRequest(http.MethodPost, "/seckill/1001/x", nil),
	} {
		for _, user := range []string{"", "alice", "\xff"} {
			s := newScript()
			s.verdict = refused(limit.IP)
			requireProblem(t, serveAs(t, newTestHandler(s), r, user), 429, -10)
			require.Zero(t, s.click)
			require.Empty(t, s.asked)

			s.verdict = limit.Verdict{Denied: true}
			requireProblem(t, serveAs(t, newTestHandler(s), r, user), 403, -12)
		}
	}
	for remote, want := range map[string]string{
		"192.0.2.7:1": "192.0.2.7", "[2001:db8::1]:1": "2001:db8::1", "@": "invalid IP", "": "invalid IP",
	} {
		s := newScript()
		r := post("")
		r.RemoteAddr = remote
		r.Header.Set("X-Forwarded-For", "198.51.100.1")
		serve(t, newTestHandler(s), r)
		require.Equal(t, want, s.addr.String(), remote)
	}
}

func TestCrowded(t *testing.T) {
	s := newScript()
	s.decision = gate.Decision{Outcome: lua.Crowded, RetryAfter: 2e9}
	answer := serve(t, newTestHandler(s), post(""))
	requireProblem(t, answer, 503, -11)
	require.Equal(t, "2", answer.Header.Get("Retry-After"))
}

// Shadowed limits let in, and the answer names them, a refusal by another too.
func TestShadowIsTold(t *testing.T) {
	s := newScript()
	s.verdict = limit.Verdict{Shadowed: shadowed(t, limit.IP, limit.Total)}
	s.user = limit.Verdict{Shadowed: shadowed(t, limit.User)}
	answer := serve(t, newTestHandler(s), post(""))
	require.Equal(t, 202, answer.StatusCode)
	require.Equal(t, []string{"ip, total", "user"}, answer.Header.Values("Seckill-Limit-Shadow"))
	s.decision = gate.Decision{Outcome: lua.SoldOut, Limit: limit.Verdict{Shadowed: shadowed(t, limit.SharedActivity)}}
	answer = serve(t, newTestHandler(s), post(""))
	require.Equal(t, 410, answer.StatusCode)
	require.Equal(t, []string{"ip, total", "user", "shared_activity"}, answer.Header.Values("Seckill-Limit-Shadow"))
	s.user = refused(limit.User)
	require.Equal(t, []string{"ip, total"}, serve(t, newTestHandler(s), post("")).Header.Values("Seckill-Limit-Shadow"))
}

// seckill_limit asks in front, and the handler seckill not again.
func TestLimitHandler(t *testing.T) {
	s := newScript()
	asked := newScript()
	behind := newTestHandler(asked)
	h := &LimitHandler{gate: s}
	w := httptest.NewRecorder()
	next := caddyhttp.HandlerFunc(func(w http.ResponseWriter, r *http.Request) error {
		return behind.ServeHTTP(w, r, nil)
	})
	require.NoError(t, h.ServeHTTP(w, prepare(w, post(""), "alice"), next))
	require.Equal(t, 202, w.Code)
	require.Equal(t, "192.0.2.7", s.addr.String())
	require.False(t, asked.addr.IsValid(), "asked twice")

	s.verdict = refused(limit.Total)
	w = httptest.NewRecorder()
	require.NoError(t, h.ServeHTTP(w, prepare(w, post(""), "alice"), nil))
	requireProblem(t, w.Result(), 429, -10)
}

// Wrong passwords are limited, a login is not asked about them, and what follows
// is counted once.
func TestLimitInFrontOfLogin(t *testing.T) {
	hash, err := bcrypt.GenerateFromPassword([]byte("wonderland"), bcrypt.MinCost)
	require.NoError(t, err)
	onEach(t, func(t *testing.T, e *edge) {
		e.sell(10, 1)
		e.load(e.config("limit ip 1/1h burst 3", fmt.Sprintf("seckill_limit\n\tbasic_auth {\n\t\talice %s\n\t}\n\tseckill", hash)))
		before := e.theGate().Stats().Limits.Levels[limit.IP]
		ask := func(password string) reply {
			r, err := http.NewRequest(http.MethodGet, "http://"+e.site+"/seckill/1001", nil)
			require.NoError(t, err)
			r.SetBasicAuth("alice", password)
			return e.again(func() (reply, error) { return e.do(r) })
		}
		require.Equal(t, 401, ask("guess").status)
		require.Equal(t, 200, ask("wonderland").status)
		require.Equal(t, 401, ask("another guess").status)
		limited := ask("the last guess")
		require.Equal(t, 429, limited.status)
		require.Empty(t, limited.header.Get("WWW-Authenticate"))
		after := e.theGate().Stats().Limits.Levels[limit.IP]
		require.EqualValues(t, 3, after.Allowed-before.Allowed)
		require.EqualValues(t, 1, after.Refused-before.Refused)
	})
}

// The lists, and limits in shadow mode, through a real server; and every change of
// the limits by a reload holds at once, for those who have spent their tokens too.
func TestLimitsThroughReloads(t *testing.T) {
	onEach(t, func(t *testing.T, e *edge) {
		e.sell(10, 1)
		look := func() reply { return e.must("GET", "/seckill/1001", "", "") }
		e.load(e.config("limit ip 1/1h burst 2", byHeader))
		running := e.theGate()
		require.Equal(t, 200, look().status)
		require.Equal(t, 200, look().status)
		require.Equal(t, 429, look().status)
		for name, tc := range map[string]struct {
			options string
			status  int
			shadow  string
		}{
			"more":    {"limit ip 1/1h burst 50", 429, ""},
			"shadow":  {"limit ip 1/1h burst 2 shadow", 200, "ip"},
			"allowed": {"limit ip 1/1h burst 2\nallow 127.0.0.0/8", 200, ""},
			"denied":  {"limit ip 1/1h burst 2\nallow 127.0.0.0/8\ndeny 127.0.0.1", 403, ""},
		} {
			e.load(e.config(tc.options, byHeader))
			require.Same(t, running, e.theGate(), "the limits are no part of the gate")
			r := look()
			require.Equal(t, tc.status, r.status, name)
			require.Equal(t, tc.shadow, r.header.Get("Seckill-Limit-Shadow"), name)
		}
		e.load(e.config("limit ip 1/1h burst 2", byHeader))
		require.Equal(t, 429, look().status)
		e.load(e.config("limit ip 1/1h burst 2\nlinger 11ms", byHeader))
		require.NotSame(t, running, e.theGate())
		require.Equal(t, 429, look().status, "another gate has the same limits")
		e.load(e.config("", byHeader))
		require.Equal(t, 200, look().status)
	})
}

// A config that ends without having begun, or that begins and fails with the rest,
// leaves the limits of the one that runs in use.
func TestLimitsOfFailedConfigs(t *testing.T) {
	r := &running{Limits: limit.New()}
	config := func(burst int) (c limit.Config) {
		c.Limits[limit.Total] = &limit.Limit{Rate: limit.Rate{Events: 1, Per: 3600e9, Burst: burst}}
		return c
	}
	inUse := func() int {
		n := 0
		for r.Limits.Enter(clientAddress(get("/")), time.Now()).In() {
			n++
		}
		return n
	}
	first, second, third := new(App), new(App), new(App)
	r.begin(first, config(1))
	r.end(second)
	require.Equal(t, 1, inUse())
	r.begin(second, config(9))
	r.end(second)
	require.Len(t, r.apps, 1)
	require.Equal(t, first, r.apps[0].app)
	r.begin(third, limit.Config{})
	r.end(first)
	require.Equal(t, third, r.apps[0].app)
	require.True(t, r.Limits.Enter(clientAddress(get("/")), time.Now()).In(), "the third has no limit")
}

// A list in a file, as a placeholder names it.
func TestDenyListFromFile(t *testing.T) {
	var list strings.Builder
	list.WriteString("# made by night\n")
	for i := range 5000 {
		fmt.Fprintf(&list, "10.%d.%d.0/24\n", i>>8, i&255)
	}
	path := filepath.Join(t.TempDir(), "deny")
	require.NoError(t, os.WriteFile(path, []byte(list.String()), 0o600))
	c, err := (&Limits{Deny: []string{"{file." + path + "}", "192.0.2.7"}}).resolve()
	require.NoError(t, err)
	require.Equal(t, 5001, c.Deny.Len())
}

// Caddy reads no more than a MiB of a file, and does not say so: the rest of a deny
// list would be let in.
func TestListTooLongIsRefused(t *testing.T) {
	file := filepath.Join(t.TempDir(), "deny")
	line := "192.0.2.1 # until the end of the year\n"
	for size, want := range map[int]int{1 << 10: 1, 1<<20 - 3: 1, 1<<20 - 1: 0, 1 << 20: 0, 3 << 20: 0} {
		text := strings.Repeat(line, size/len(line)) + strings.Repeat("\t", size%len(line))
		require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
		p, err := prefixes("deny", []string{"{file." + file + "}"})
		require.Equal(t, want, p.Len(), size)
		if want == 0 {
			require.ErrorContains(t, err, "a MiB or more", size)
		} else {
			require.NoError(t, err, size)
		}
	}
}
