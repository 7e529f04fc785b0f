package main

import (
	"bufio"
	"bytes"
	"context"
	"database/sql"
	"encoding/json"
	"io"
	"maps"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/seckill-edge/seckill/internal/servicetest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(servicetest.Main(m)) }

// shell runs command lines with an environment of its own.
type shell struct {
	*testing.T
	env map[string]string
}

func newShell(t *testing.T) *shell {
	server := miniredis.RunT(t)
	server.ClockTTL(true) // a lease runs out
	return &shell{t, map[string]string{
		"SECKILL_REDIS_URL":    "redis://" + server.Addr() + "/0",
		"SECKILL_RABBITMQ_URL": "memory:" + t.Name(),
		"SECKILL_DATABASE_URL": "sqlite:" + filepath.Join(t.TempDir(), "orders.db"),
	}}
}

func (s *shell) run(args ...string) (code int, stdout, stderr string) {
	var out, err bytes.Buffer
	code = Run(s.Context(), args, &out, &err, s.getenv)
	return code, out.String(), err.String()
}

func (s *shell) getenv(name string) (string, bool) { v, set := s.env[name]; return v, set }

// must runs a line that has to succeed.
func (s *shell) must(args ...string) string {
	s.Helper()
	code, out, err := s.run(args...)
	require.Zero(s, code, "%v: %s", args, err)
	return out
}

var window = []string{"--start", time.Now().Add(-time.Minute).Format(time.RFC3339), "--end", time.Now().Add(time.Hour).Format(time.RFC3339)}

func create(more ...string) []string {
	return append(append([]string{"activity", "create", "--product", "1001", "--total", "7"}, window...), more...)
}

func TestSaleByCommands(t *testing.T) {
	s := newShell(t)
	require.Contains(t, s.must("migrate"), "the schema is up to date")
	require.JSONEq(t, `{"applied":[]}`, s.must("migrate", "--json"))
	require.Contains(t, s.must(create("--title", "Phone", "--manual")...), "preheat it")
	require.Contains(t, s.must("activity", "preheat", "1001"), "held")
	require.Contains(t, s.must("activity", "open", "1001"), "selling")
	var shown struct {
		State string `json:"state"`
		Redis struct {
			Available int `json:"available"`
		} `json:"redis"`
	}
	require.NoError(t, json.Unmarshal([]byte(s.must("activity", "show", "1001", "--json")), &shown))
	require.Equal(t, "open", shown.State)
	require.Equal(t, 7, shown.Redis.Available)
	require.Contains(t, s.must("activity", "audit", "1001"), "drift       0")
	require.Contains(t, s.must("activity", "list"), "selling")
	require.Contains(t, s.must("activity", "hold", "1001", "--json"), `"state": "held"`)
	require.Contains(t, s.must("activity", "resume", "1001"), "selling")
	require.Contains(t, s.must("activity", "stock", "1001", "--add", "3", "--if-total", "7"), "available 10")
	require.Contains(t, s.must("activity", "stock", "1001", "--withdraw", "8"), "units     2, 1 a user")
	code, _, stderr := s.run("activity", "stock", "1001", "--withdraw", "8")
	require.Equal(t, exitRefused, code)
	require.Contains(t, stderr, "at least one must stay")
	require.Contains(t, s.must("activity", "close", "1001"), "over for good")
	var list struct {
		Activities []any `json:"activities"`
	}
	require.NoError(t, json.Unmarshal([]byte(s.must("activity", "list", "--json")), &list))
	require.Len(t, list.Activities, 1)
}

func TestBadInput(t *testing.T) {
	empty := filepath.Join(t.TempDir(), "empty")
	require.NoError(t, os.WriteFile(empty, []byte("\n"), 0o600))
	for _, tc := range []struct {
		name string
		args []string
		env  map[string]string
		code int
		says []string
	}{
		{"no such command", []string{"sell"}, nil, exitUsage, []string{`"sell"`}},
		{"no such sub-command", []string{"activity", "sell"}, nil, exitUsage, []string{`"sell"`}},
		{"no such option", []string{"serve", "--colour", "red"}, nil, exitUsage, []string{"--colour", "--help"}},
		{"no product", []string{"activity", "show"}, nil, exitUsage, []string{"PRODUCT is missing"}},
		{"bad product", []string{"activity", "show", "{1}"}, nil, exitUsage, []string{`"{1}"`, "A-Z a-z 0-9"}},
		{"nothing given", []string{"activity", "create"}, nil, exitUsage, []string{"--product", "--start", "--end", "--total", "must be 1 to 1000000000"}},
		{"no change", []string{"activity", "stock", "1001"}, nil, exitUsage, []string{"give --add or --withdraw"}},
		{"change both ways", []string{"activity", "stock", "1001", "--add", "1", "--withdraw", "1"}, nil, exitUsage, []string{"--add 1 and --withdraw 1 exclude each other"}},
		{"preheat late", []string{"serve", "--preheat-ahead", "0s"}, nil, exitUsage, []string{"--preheat-ahead", "1s or more"}},
		{"promise too much", []string{"serve", "--resolve-within", "1s"}, nil, exitUsage, []string{"--resolve-within 1s", "5s to 1h"}},
		{"keep nothing", []string{"serve", "--keep-keys", "-1s"}, nil, exitUsage, []string{"--keep-keys", "1s or more"}},
		{"total is a word", create("--total", "many"), nil, exitUsage, []string{"--total", `"many": must be a whole number`}},
		{"limit", create("--limit", "1000"), nil, exitUsage, []string{"--limit", `"1000"`, "1 to 999"}},
		{"pay window", create("--pay-window", "-1s"), nil, exitUsage, []string{"--pay-window", `"-1s"`, "168h"}},
		{"adds nothing", []string{"activity", "stock", "1001", "--add", "0"}, nil, exitUsage, []string{`--add "0": one of add and withdraw`}},
		{"unknown product", []string{"activity", "open", "9"}, nil, exitRefused, []string{"product 9", "create one first"}},
		{"redis", []string{"activity", "list", "--redis", "localhost:6379:secret"}, nil, exitUsage, []string{"--redis", "redis://"}},
		{"rabbitmq", []string{"activity", "list", "--rabbitmq", "http://u:secret@x"}, nil, exitUsage, []string{"--rabbitmq", "amqp://"}},
		{"database", []string{"activity", "list", "--database", "oracle://u:secret@x"}, nil, exitUsage, []string{"--database", "mysql://"}},
		{"database set to nothing", []string{"migrate"}, map[string]string{"SECKILL_DATABASE_URL": ""}, exitUsage, []string{"SECKILL_DATABASE_URL is empty", "unset it"}},
		{"token set to nothing", []string{"serve"}, map[string]string{"SECKILL_API_TOKEN": "\n"}, exitUsage, []string{"SECKILL_API_TOKEN is empty"}},
		{"token of two lines", []string{"serve"}, map[string]string{"SECKILL_API_TOKEN": "secret\nanother"}, exitUsage, []string{"SECKILL_API_TOKEN has the character U+000A inside"}},
		{"title", create("--title", "a\u202eb"), nil, exitUsage, []string{"--title", "U+202E"}},
		{"long title", create("--title", strings.Repeat("秒", 256)), nil, exitUsage, []string{"--title", "has 256 characters"}},
		{"log format", []string{"serve", "--log-format", "xml"}, nil, exitUsage, []string{"--log-format", `"xml"`, "text or json"}},
		{"listen", []string{"serve", "--listen", "9680"}, nil, exitUsage, []string{"--listen", `"9680"`, "host:port"}},
		{"listen on a word", []string{"serve", "--listen", "localhost:foo"}, nil, exitUsage, []string{"--listen", `"localhost:foo"`, "0 to 65535"}},
		{"listen everywhere", []string{"serve", "--listen", "0.0.0.0:0"}, nil, exitUsage, []string{`"0.0.0.0:0"`, "SECKILL_API_TOKEN", "127.0.0.1"}},
		{"short token", []string{"serve", "--listen", "0.0.0.0:0"}, map[string]string{"SECKILL_API_TOKEN": "fifteen letters"}, exitUsage, []string{`"0.0.0.0:0"`, "15 characters", "16 or more"}},
		{"two tokens", []string{"serve"}, map[string]string{"SECKILL_API_TOKEN": "secret", "SECKILL_API_TOKEN_FILE": "x"}, exitUsage, []string{"both set"}},
		{"no token file", []string{"serve"}, map[string]string{"SECKILL_API_TOKEN_FILE": "/nowhere"}, exitUsage, []string{"SECKILL_API_TOKEN_FILE", `"/nowhere"`, "readable"}},
		{"empty token file", []string{"serve"}, map[string]string{"SECKILL_API_TOKEN_FILE": empty}, exitUsage, []string{"empty"}},
		{"redis is away", []string{"activity", "open", "1001", "--redis", "redis://127.0.0.1:1/0"}, nil, exitFailed, []string{"Redis", "127.0.0.1:1"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := newShell(t)
			s.must("migrate")
			s.must(create()...)
			maps.Copy(s.env, tc.env)
			code, out, err := s.run(tc.args...)
			require.Equal(t, tc.code, code, "%s%s", out, err)
			require.Empty(t, out)
			for _, words := range tc.says {
				require.Contains(t, err, words)
			}
			require.NotContains(t, err, "secret")
		})
	}
}

func TestHelpHasExamples(t *testing.T) {
	s := newShell(t)
	for _, command := range []string{
		"", "serve", "migrate", "activity", "activity create", "activity list", "activity show", "activity preheat",
		"activity open", "activity hold", "activity resume", "activity stock", "activity close", "activity audit", "order", "order show", "order pay", "order cancel",
		"refund", "refund list", "refund done",
	} {
		require.Contains(t, s.must(append(strings.Fields(command), "--help")...), "Examples:", command)
	}
}

func TestServe(t *testing.T) {
	s := newShell(t)
	token := filepath.Join(t.TempDir(), "token")
	require.NoError(t, os.WriteFile(token, []byte("hush\n"), 0o600))
	s.env["SECKILL_API_TOKEN_FILE"] = token
	ctx, stop := context.WithCancel(t.Context())
	read, write := io.Pipe()
	code := make(chan int)
	var log bytes.Buffer
	go func() {
		code <- Run(ctx, []string{"serve", "--listen", "127.0.0.1:0", "--migrate"}, write, &log, s.getenv)
		write.Close()
	}()
	line, err := bufio.NewReader(read).ReadString('\n')
	require.NoError(t, err)
	url := strings.Fields(line)[1]
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: 5 * time.Second}
	ask := func(path, token string) int {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url+path, nil)
		require.NoError(t, err)
		r.Header.Set("Authorization", "Bearer "+token)
		answer, err := client.Do(r)
		require.NoError(t, err)
		require.NoError(t, answer.Body.Close())
		return answer.StatusCode
	}
	servicetest.Eventually(t, func() bool { return ask("readyz", "") == http.StatusOK })
	require.Equal(t, http.StatusUnauthorized, ask("api/activities", ""))
	require.Equal(t, http.StatusOK, ask("api/activities", "hush"))
	stop()
	require.Zero(t, <-code, log.String())
	require.NotContains(t, log.String(), "hush")
}

// A daemon that starts before its servers waits for them.
func TestServeStartsWithEverythingAway(t *testing.T) {
	s := newShell(t)
	s.env["SECKILL_REDIS_URL"] = "redis://127.0.0.1:1/0"
	s.env["SECKILL_RABBITMQ_URL"] = "amqp://guest:guest@127.0.0.1:1/"
	s.env["SECKILL_DATABASE_URL"] = "mysql://u:secret@127.0.0.1:1/x"
	ctx, stop := context.WithCancel(t.Context())
	read, write := io.Pipe()
	code := make(chan int)
	var log bytes.Buffer
	go func() {
		code <- Run(ctx, []string{"serve", "--listen", "127.0.0.1:0", "--migrate", "--log-format", "json"}, write, &log, s.getenv)
		write.Close()
	}()
	line, err := bufio.NewReader(read).ReadString('\n')
	require.NoError(t, err)
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, strings.Fields(line)[1]+"readyz", nil)
	require.NoError(t, err)
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: 10 * time.Second}
	answer, err := client.Do(r)
	require.NoError(t, err)
	var body struct {
		NotReady []string `json:"not_ready"`
	}
	require.NoError(t, json.NewDecoder(answer.Body).Decode(&body))
	require.NoError(t, answer.Body.Close())
	require.Equal(t, []string{"consumer", "database", "queue", "redis"}, body.NotReady)
	stop()
	require.Zero(t, <-code)
	require.Contains(t, log.String(), "trying again")
	require.NotContains(t, log.String(), "secret")
}

func TestServeOnATakenPort(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer taken.Close()
	s := newShell(t)
	code, _, stderr := s.run("serve", "--migrate", "--listen", taken.Addr().String())
	require.Equal(t, exitFailed, code)
	require.Contains(t, stderr, "--listen "+taken.Addr().String()+" is taken by another program; stop it, or name another port")
}

// An older program says that it is older, and that it has changed nothing.
func TestMigrateANewerSchema(t *testing.T) {
	s := newShell(t)
	s.must("migrate")
	db, err := sql.Open("sqlite", strings.TrimPrefix(s.env["SECKILL_DATABASE_URL"], "sqlite:"))
	require.NoError(t, err)
	_, err = db.Exec("INSERT INTO goose_db_version (version_id, is_applied) VALUES (99, true)")
	require.NoError(t, err)
	require.NoError(t, db.Close())
	for _, args := range [][]string{{"migrate"}, {"migrate", "--json"}} {
		code, stdout, stderr := s.run(args...)
		require.Equal(t, exitRefused, code)
		require.Empty(t, stdout)
		require.Contains(t, stderr, "database schema is newer than this program: it is at version 99, this program knows")
	}
}
