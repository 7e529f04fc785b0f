package main

import (
	"database/sql"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/seckill-edge/seckill/internal/killpoint"
	"github.com/seckill-edge/seckill/internal/servicetest"
	"github.com/seckill-edge/seckill/lua"
)

// victim builds a seckilld that can be killed at a named line.
func victim(t *testing.T) string {
	binary, err := servicetest.Build(t.Context(), t.TempDir(), "backend/cmd/seckilld", "-tags", servicetest.BuildTags+",killpoints")
	require.NoError(t, err)
	return binary
}

// dies runs a line in a process of its own, which must be killed at place.
func (s *shell) dies(binary, place string, args ...string) {
	s.Helper()
	cmd := exec.CommandContext(s.Context(), binary, args...)
	cmd.Env = append(os.Environ(), killpoint.Variable+"="+place)
	for name, value := range s.env {
		cmd.Env = append(cmd.Env, name+"="+value)
	}
	out, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	require.ErrorAs(s, err, &exit, string(out))
	require.Equal(s, syscall.SIGKILL, exit.Sys().(syscall.WaitStatus).Signal(), string(out))
}

// mark is what Redis has of an order.
func (s *shell) mark(id string) string {
	client, err := lua.NewClient(s.env["SECKILL_REDIS_URL"], "test")
	require.NoError(s, err)
	defer func() { require.NoError(s, client.Close()) }()
	record, err := lua.RecordOf(s.Context(), client, "1001", "buyer "+id)
	require.NoError(s, err)
	require.Len(s, record, 1)
	return string(record[0].Mark)
}

// Each move dies once before its commit, where nothing has happened, and once
// between SQL and Redis, where a repeat or the reconciler tells Redis.
func TestKilledBetweenTheStores(t *testing.T) {
	binary := victim(t)
	s := newShell(t)
	s.must("migrate")
	s.must(create("--pay-window", "1h")...)
	s.must("activity", "preheat", "1001")
	s.must("activity", "open", "1001")
	paid, cancelled, repeated, expired := s.bought(), s.bought(), s.bought(), s.bought()
	state := func(id string) string { return s.must("order", "show", id) }

	// First of all, because this one is a whole backend, with a reconciler.
	raw, err := sql.Open("sqlite", "file:"+strings.TrimPrefix(s.env["SECKILL_DATABASE_URL"], "sqlite:"))
	require.NoError(t, err)
	_, err = raw.ExecContext(t.Context(), "UPDATE orders SET due_ms = ? WHERE id = ?", time.Now().UnixMilli(), expired)
	require.NoError(t, err)
	require.NoError(t, raw.Close())
	s.dies(binary, killpoint.AfterMove, "serve", "--listen", "127.0.0.1:0")

	s.dies(binary, killpoint.BeforeCommit, "order", "pay", paid, "--payment", "p-1")
	require.Contains(t, state(paid), "created")
	s.dies(binary, killpoint.BeforeCommit, "order", "cancel", cancelled)
	require.Contains(t, state(cancelled), "created")

	s.dies(binary, killpoint.AfterMove, "order", "pay", paid, "--payment", "p-1")
	s.dies(binary, killpoint.AfterMove, "order", "cancel", cancelled)
	s.dies(binary, killpoint.AfterMove, "order", "cancel", repeated)
	for id, want := range map[string]string{paid: "paid", cancelled: "cancelled", repeated: "cancelled", expired: "expired"} {
		require.Contains(t, state(id), want)
		require.Contains(t, []string{"q", "c"}, s.mark(id), "Redis knows nothing of it")
	}

	s.must("order", "cancel", repeated)
	require.Equal(t, "x", s.mark(repeated))
	servicetest.Eventually(t, func() bool {
		code, _, _ := s.run("reconcile", "1001")
		// Orders too young to be judged are left to the next inspection.
		return code == 0 && s.mark(paid) == "p" && s.mark(cancelled) == "x" && s.mark(expired) == "e"
	})
	audit := s.must("activity", "audit", "1001")
	require.Contains(t, audit, "available 6 + frozen 0 + sold 1")
	require.Regexp(t, `drift +0`, audit)
}

// A backend dies when it has stored an order that the broker did not deliver, before
// Redis is told: the next one tells it, and nothing is doubled.
func TestKilledWhileKeepingAPromise(t *testing.T) {
	binary := victim(t)
	s := newShell(t)
	s.must("migrate")
	s.must(create()...)
	s.must("activity", "preheat", "1001")
	s.must("activity", "open", "1001")
	id := s.reserved()
	keep := []string{"serve", "--listen", "127.0.0.1:0", "--resolve-within", "5s", "--store-directly-after", "1s"}
	s.dies(binary, killpoint.AfterDirect, keep...)
	require.Contains(t, s.must("order", "show", id), "created")
	require.Equal(t, "q", s.mark(id), "Redis knows nothing of it")
	s.dies(binary, killpoint.AfterSettle, keep...)
	require.Equal(t, "s", s.mark(id))
	audit := s.must("activity", "audit", "1001")
	require.Contains(t, audit, "frozen 0 + sold 1")
	require.Regexp(t, `drift +0`, audit)
}
