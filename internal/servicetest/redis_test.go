package servicetest

import (
	"bufio"
	"context"
	"errors"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// say sends one inline command and returns the first line of the reply.
func say(t *testing.T, addr, command string) (string, error) {
	t.Helper()
	conn, err := net.DialTimeout("tcp", addr, answerWithin())
	if err != nil {
		return "", err
	}
	defer conn.Close()
	require.NoError(t, conn.SetDeadline(time.Now().Add(Scaled(time.Second))))
	if _, err := conn.Write([]byte(command + "\r\n")); err != nil {
		return "", err
	}
	line, err := bufio.NewReader(conn).ReadString('\n')
	return strings.TrimSpace(line), err
}

func testRedis(t *testing.T) {
	t.Run("keeps its data and port over a graceful stop", func(t *testing.T) {
		r := RedisForTest(t)
		addr := r.Addr()
		reply, err := say(t, addr, "SET k v")
		require.NoError(t, err)
		require.Equal(t, "+OK", reply)
		require.NoError(t, r.Stop())
		require.NoError(t, r.Stop(), "stopping twice")
		_, err = say(t, addr, "PING")
		require.Error(t, err)
		require.NoError(t, r.Restart(t.Context()))
		require.Equal(t, addr, r.Addr())
		reply, err = say(t, addr, "STRLEN k")
		require.NoError(t, err)
		require.Equal(t, ":1", reply)
	})

	t.Run("dies at once and comes back", func(t *testing.T) {
		r := RedisForTest(t)
		pid := r.PID()
		require.NoError(t, r.Kill())
		require.NoError(t, r.Kill(), "killing twice")
		require.ErrorIs(t, syscall.Kill(pid, 0), syscall.ESRCH)
		require.ErrorContains(t, r.Wait(), "killed")
		require.NoError(t, r.Restart(t.Context()))
		require.NotEqual(t, pid, r.PID())
	})

	t.Run("answers nothing while paused", func(t *testing.T) {
		r := RedisForTest(t)
		require.NoError(t, r.Pause())
		_, err := say(t, r.Addr(), "PING")
		require.ErrorIs(t, err, os.ErrDeadlineExceeded)
		require.NoError(t, r.Resume())
		Eventually(t, func() bool {
			reply, err := say(t, r.Addr(), "PING")
			return err == nil && reply == "+PONG"
		})
		require.NoError(t, r.Pause())
		require.NoError(t, r.Stop(), "a paused server stops too")
	})

	t.Run("says what the server said when it does not start", func(t *testing.T) {
		_, err := StartRedis(t.Context(), t.TempDir(), "--no-such-setting", "1")
		require.ErrorContains(t, err, "no-such-setting")
	})

	t.Run("gives up when the context ends", func(t *testing.T) {
		ctx, cancel := context.WithCancelCause(t.Context())
		cancel(errors.New("not wanted any more"))
		_, err := StartRedis(ctx, t.TempDir())
		require.ErrorContains(t, err, "not wanted any more")
	})
}

// TestRedis needs a redis-server unless -short.
func TestRedis(t *testing.T) {
	cases := map[string]func(*testing.T){"not installed": testRedisMissing}
	if !testing.Short() {
		cases["installed"] = testRedis
		cases["orphan"] = testOrphan
	}
	for name, run := range cases {
		t.Run(name, run)
	}
}

func testRedisMissing(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	_, err := StartRedis(t.Context(), t.TempDir())
	require.ErrorContains(t, err, "apt-get install redis-server or run make test")
}

// orphanDir tells a copy of this test program to start a Redis and be killed.
const orphanDir = "SERVICETEST_ORPHAN_DIR"

// TestMain lets the program play the parent that crashes.
func TestMain(m *testing.M) {
	if dir := os.Getenv(orphanDir); dir != "" {
		r, err := StartRedis(context.Background(), dir)
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, "addr"), []byte(r.Addr()), 0o600)
		}
		if err != nil {
			panic(err)
		}
		<-r.Done()
		return
	}
	os.Exit(m.Run())
}

func testOrphan(t *testing.T) {
	dir := t.TempDir()
	parent := exec.Command(os.Args[0])
	parent.Env = append(os.Environ(), orphanDir+"="+dir)
	require.NoError(t, parent.Start())
	var addr string
	Eventually(t, func() bool {
		raw, err := os.ReadFile(filepath.Join(dir, "addr"))
		addr = string(raw)
		return err == nil && addr != ""
	})
	reply, err := say(t, addr, "PING")
	require.NoError(t, err)
	require.Equal(t, "+PONG", reply)

	require.NoError(t, parent.Process.Kill())
	require.Error(t, parent.Wait())
	Eventually(t, func() bool {
		_, err := say(t, addr, "PING")
		return errors.Is(err, syscall.ECONNREFUSED)
	}, "the server outlived its parent")
}
