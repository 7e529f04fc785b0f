package main

import (
	"fmt"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	mysqldriver "github.com/go-sql-driver/mysql"
	"github.com/stretchr/testify/require"

	"github.com/seckill-edge/seckill/internal/servicetest"
	"github.com/seckill-edge/seckill/lua"
)

// Before the first migrate every command that needs the schema names the way out.
func TestNoSchema(t *testing.T) {
	databases := map[string]func(t *testing.T) string{
		"SQLite": func(t *testing.T) string { return "sqlite:" + filepath.Join(t.TempDir(), "new.db") },
	}
	if !testing.Short() {
		databases["MariaDB"] = func(t *testing.T) string {
			c, err := mysqldriver.ParseDSN(servicetest.SharedMariaDB(t).Database(t))
			require.NoError(t, err)
			return fmt.Sprintf("mysql://%s:%s@%s/%s", c.User, c.Passwd, c.Addr, c.DBName)
		}
	}
	const id = "01kb0c3v9t4z6q8w2x5y7a1d3f"
	for name, address := range databases {
		t.Run(name, func(t *testing.T) {
			s := newShell(t)
			s.env["SECKILL_DATABASE_URL"] = address(t)
			for _, line := range [][]string{
				{"activity", "list"},
				create(),
				{"activity", "show", "1001"},
				{"activity", "preheat", "1001"},
				{"activity", "open", "1001"},
				{"activity", "hold", "1001"},
				{"activity", "resume", "1001"},
				{"activity", "stock", "1001", "--add", "1"},
				{"activity", "close", "1001"},
				{"activity", "audit", "1001"},
				{"reconcile"},
				{"reconcile", "1001"},
				{"order", "show", id},
				{"order", "pay", id, "--payment", "p"},
				{"order", "cancel", id},
				{"refund", "list"},
				{"refund", "done", "p"},
			} {
				code, _, stderr := s.run(line...)
				require.Equal(t, exitFailed, code, "%v: %s", line, stderr)
				require.Contains(t, stderr, "run `seckilld migrate`", "%v", line)
				words := strings.Split(strings.TrimSpace(stderr), ": ")
				for i := 1; i < len(words); i++ {
					require.NotEqual(t, words[i-1], words[i], "%v", line)
				}
			}
		})
	}
}

// A database that takes connections and says nothing is named, and not waited for.
func TestFrozenDatabase(t *testing.T) {
	frozen, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer frozen.Close()
	s := newShell(t)
	s.env["SECKILL_DATABASE_URL"] = "mysql://u:secret@" + frozen.Addr().String() + "/seckill"
	for _, line := range []string{"activity show 1001", "order show 01kb0c3v9t4z6q8w2x5y7a1d3f", "dead list", "reconcile"} {
		code, _, stderr := s.run(strings.Fields(line)...)
		require.Equal(t, exitFailed, code)
		require.Contains(t, stderr, "the database MySQL "+frozen.Addr().String()+"/seckill does not answer", line)
		require.NotContains(t, stderr, "secret")
	}
}

func TestMissingArgument(t *testing.T) {
	s := newShell(t)
	for line, want := range map[string]string{
		"activity open":         "PRODUCT is missing: seckilld activity open PRODUCT",
		"activity audit":        "PRODUCT is missing",
		"activity show 1 2":     `want one PRODUCT, not 2: ["1" "2"]`,
		"order show":            "ORDER is missing",
		"refund done":           "REFERENCE is missing",
		"dead show":             "ID is missing",
		"order cancel a b":      "want one ORDER, not 2",
		"activity preheat 1 2 ": "want one PRODUCT",
	} {
		code, _, stderr := s.run(strings.Fields(line)...)
		require.Equal(t, exitUsage, code, line)
		require.Contains(t, stderr, want)
	}
}

// An activity that is to come says when a backend begins it, and a second one of its
// product names the first, once.
func TestActivityToCome(t *testing.T) {
	s := newShell(t)
	s.must("migrate")
	start := time.Now().Add(time.Hour).UTC().Truncate(time.Second)
	line := []string{"activity", "create", "--product", "1001", "--total", "7", "--start", start.Format(time.RFC3339), "--end", start.Add(time.Hour).Format(time.RFC3339)}
	require.Contains(t, s.must(append(line, "--id", "first")...), "preheats and opens it at "+start.Add(-10*time.Minute).Format(time.RFC3339)+
		", 10m0s ahead of its start unless its --preheat-ahead says otherwise")
	code, _, stderr := s.run(append(line, "--id", "second")...)
	require.Equal(t, exitRefused, code)
	require.Equal(t, `seckilld activity create: creating activity "second": exists already: product "1001" has the live activity "first"; close it first`+"\n", stderr)
}

func TestVersion(t *testing.T) {
	require.Regexp(t, `^seckilld \S.* go1\.\d+`, newShell(t).must("--version"))
}

func TestReachable(t *testing.T) {
	for addr, want := range map[string]string{
		"127.0.0.1:9680":  "127.0.0.1:9680",
		"0.0.0.0:9680":    "127.0.0.1:9680",
		"[::]:9680":       "127.0.0.1:9680",
		"192.0.2.1:9680":  "192.0.2.1:9680",
		"[2001:db8::1]:1": "[2001:db8::1]:1",
	} {
		require.Equal(t, want, reachable(addr))
	}
}

// helperEnv makes the test program talk to a Redis that is away, and end.
const helperEnv = "SECKILLD_TEST_REDIS_AWAY"

// What the Redis library has to say by itself goes through the log, if anywhere:
// whoever reads JSON lines gets JSON lines.
func TestRedisLibraryIsSilent(t *testing.T) {
	if os.Getenv(helperEnv) != "" {
		a := &app{stderr: os.Stderr, env: os.LookupEnv, options: options{logFormat: "json"}}
		_, err := a.log(slog.LevelInfo)
		require.NoError(t, err)
		client, err := lua.NewClient("redis://127.0.0.1:1/0", "test")
		require.NoError(t, err)
		for range 5 {
			require.Error(t, client.Ping(t.Context()).Err())
		}
		require.NoError(t, client.Close())
		return
	}
	c := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestRedisLibraryIsSilent$")
	c.Env = append(os.Environ(), helperEnv+"=1")
	var stderr strings.Builder
	c.Stderr = &stderr
	require.NoError(t, c.Run(), stderr.String())
	require.Empty(t, stderr.String())
}
