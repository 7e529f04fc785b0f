package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/seckill-edge/seckill/internal/servicetest"
)

// sale is a running standalone.
type sale struct {
	Shop, Console, Product, Activity string
	Units                            int64

	t      *testing.T
	end    context.CancelFunc
	exited chan int
	errs   *bytes.Buffer // to be read after the end only
}

// startSale runs the command on free ports until stop, at the latest at the
// test's end. Caddy is one a process: a test runs one sale at a time.
func startSale(t *testing.T, args ...string) *sale {
	t.Helper()
	temp := t.TempDir()
	t.Setenv("TMPDIR", temp)
	ctx, end := context.WithCancel(t.Context())
	read, write := io.Pipe()
	s := &sale{t: t, end: end, exited: make(chan int, 1), errs: new(bytes.Buffer)}
	args = append([]string{"--listen", "127.0.0.1:0", "--console", "127.0.0.1:0", "--json"}, args...)
	go func() {
		code := run(ctx, args, write, s.errs)
		write.Close()
		s.exited <- code
	}()
	t.Cleanup(func() {
		s.stop()
		left, err := os.ReadDir(temp)
		require.NoError(t, err)
		require.Empty(t, left, "left behind in the temporary folder")
	})
	line, err := bufio.NewReader(read).ReadBytes('\n')
	if err != nil {
		s.exited <- <-s.exited
		t.Fatalf("it did not become ready: %s", s.errs)
	}
	require.NoError(t, json.Unmarshal(line, s))
	return s
}

func (s *sale) stop() {
	s.t.Helper()
	s.end()
	select {
	case code := <-s.exited:
		s.exited <- code
		require.Equal(s.t, exitOK, code, s.errs)
		require.Empty(s.t, s.errs.String(), "a run without faults warns of nothing")
	case <-time.After(servicetest.Patience()):
		s.t.Fatal("it does not end")
	}
}

// buy clicks once.
func (s *sale) buy(user string) (status int, answer map[string]any) {
	s.t.Helper()
	return s.call(http.MethodPost, "/seckill/"+s.Product, user)
}

func (s *sale) call(method, path, user string) (status int, answer map[string]any) {
	s.t.Helper()
	req, err := http.NewRequestWithContext(s.t.Context(), method, s.Shop+path, nil)
	require.NoError(s.t, err)
	req.Header.Set("X-User-Id", user)
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	resp, err := client.Do(req)
	require.NoError(s.t, err)
	defer resp.Body.Close()
	require.NoError(s.t, json.NewDecoder(resp.Body).Decode(&answer))
	return resp.StatusCode, answer
}

// read reads a document of the console's.
func (s *sale) read(path string, to any) {
	s.t.Helper()
	req, err := http.NewRequestWithContext(s.t.Context(), http.MethodGet, s.Console+path, nil)
	require.NoError(s.t, err)
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	resp, err := client.Do(req)
	require.NoError(s.t, err)
	defer resp.Body.Close()
	require.NoError(s.t, json.NewDecoder(resp.Body).Decode(to))
}

// created waits until an order is stored.
func (s *sale) created(user, path string) {
	s.t.Helper()
	servicetest.Eventually(s.t, func() bool {
		_, fate := s.call(http.MethodGet, path, user)
		return fate["status"] == "created"
	})
}

func TestOneClickBecomesAnOrder(t *testing.T) {
	s := startSale(t, "--units", "2")
	require.EqualValues(t, 2, s.Units)
	status, page, _ := get(t, s.Shop+"/")
	require.Equal(t, http.StatusOK, status)
	require.Contains(t, page, "秒杀")
	status, _, _ = get(t, s.Console+"/")
	require.Equal(t, http.StatusOK, status)
	status, _, _ = get(t, s.Console+"/readyz")
	require.Equal(t, http.StatusOK, status)

	status, queued := s.buy("alice")
	require.Equal(t, http.StatusAccepted, status)
	s.created("alice", queued["status_url"].(string))
	status, again := s.buy("alice")
	require.Equal(t, http.StatusConflict, status)
	require.Equal(t, queued["order_id"], again["order_id"])
	status, _ = s.buy("bob")
	require.Equal(t, http.StatusAccepted, status)
	status, refusal := s.buy("carol")
	require.Equal(t, http.StatusGone, status)
	require.EqualValues(t, -6, refusal["code"])
}

// The database is kept, the embedded Redis is not: its stock is made from SQL
// again, and the sale goes on where it was.
func TestKeptDatabase(t *testing.T) {
	data := filepath.Join(t.TempDir(), "data")
	first := startSale(t, "--data", data, "--units", "2")
	_, queued := first.buy("alice")
	first.created("alice", queued["status_url"].(string))
	first.stop()

	second := startSale(t, "--data", data, "--units", "500", "--limit", "1", "--pay-window", "0s")
	require.Equal(t, first.Activity, second.Activity)
	require.EqualValues(t, 2, second.Units)
	status, again := second.buy("alice")
	require.Equal(t, http.StatusConflict, status)
	require.Equal(t, queued["order_id"], again["order_id"])
	status, _ = second.buy("bob")
	require.Equal(t, http.StatusAccepted, status)
	status, _ = second.buy("carol")
	require.Equal(t, http.StatusGone, status)
	second.end()
	require.Equal(t, exitOK, <-second.exited)
	require.Equal(t, "standalone: the sale kept in --data "+data+" goes on, without --units 500 (it has 2); name another place for a new sale\n", second.errs.String())
	second.errs.Reset()
	second.exited <- exitOK
}

func TestText(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	ctx, end := context.WithCancel(t.Context())
	read, write := io.Pipe()
	var errs bytes.Buffer
	exited := make(chan int, 1)
	go func() {
		exited <- run(ctx, []string{"--listen", "localhost:0", "--console", "127.0.0.1:0"}, write, &errs)
	}()
	buffered := bufio.NewReader(read)
	var text strings.Builder
	for !strings.Contains(text.String(), "database SQLite in a temporary folder") {
		line, err := buffered.ReadString('\n')
		require.NoError(t, err, errs.String())
		text.WriteString(line)
	}
	end()
	require.Equal(t, exitOK, <-exited)
	require.Contains(t, text.String(), "100 units of product 1001")
	require.Contains(t, text.String(), "go run ./bench/rush --url http://127.0.0.1:")
	require.Contains(t, text.String(), "curl -i -X POST -H 'X-User-Id: alice' http://127.0.0.1:")
	require.Contains(t, errs.String(), "Stopping")
}

func TestUsage(t *testing.T) {
	for name, tc := range map[string]struct {
		args []string
		says string
	}{
		"no port":         {[]string{"--listen", "127.0.0.1"}, `--listen "127.0.0.1" is no host:port`},
		"strange port":    {[]string{"--console", "127.0.0.1:70000"}, `has port "70000"; use 0 to 65535`},
		"everywhere":      {[]string{"--listen", ":8480"}, `--listen ":8480" is not on loopback`},
		"another address": {[]string{"--console", "192.0.2.1:80"}, "use 127.0.0.1:80"},
		"units":           {[]string{"--units", "0"}, "--units 0 is out of range"},
		"limit":           {[]string{"--limit", "1000"}, "--limit 1000 is out of range"},
		"pay window":      {[]string{"--pay-window", "1500ms"}, "--pay-window 1.5s is out of range"},
		"two databases":   {[]string{"--data", "d", "--database", "sqlite:x"}, "leave one of them out"},
		"an argument":     {[]string{"now"}, `unexpected argument "now"`},
		"no number":       {[]string{"--units", "many"}, `--units "many": must be a whole number`},
		"unknown flag":    {[]string{"--bogus"}, "unknown flag: --bogus"},
	} {
		t.Run(name, func(t *testing.T) {
			var out, errs bytes.Buffer
			require.Equal(t, exitUsage, run(t.Context(), tc.args, &out, &errs))
			require.Contains(t, errs.String(), tc.says)
			require.Empty(t, out.String())
		})
	}
	var out, errs bytes.Buffer
	require.Equal(t, exitOK, run(t.Context(), []string{"--help"}, &out, &errs))
	require.Contains(t, out.String(), "Examples:")
	require.Contains(t, out.String(), "--rabbitmq")
}

func TestFailedStart(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer taken.Close()
	gone, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	free := gone.Addr()
	require.NoError(t, gone.Close())
	file := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	away := "redis://u:secret@" + free.String()
	for name, tc := range map[string]struct {
		args []string
		says string
		code int
	}{
		"redis URL":            {[]string{"--redis", "http://u:secret@127.0.0.1"}, "--redis: the Redis URL", exitUsage},
		"no URL":               {[]string{"--redis", "localhost:6379"}, "--redis: the Redis URL", exitUsage},
		"rabbitmq URL":         {[]string{"--redis", away, "--rabbitmq", "http://u:secret@127.0.0.1"}, "--rabbitmq: queue address has scheme", exitUsage},
		"database URL":         {[]string{"--redis", away, "--database", "http://u:secret@127.0.0.1"}, "--database: ", exitUsage},
		"shop's port taken":    {[]string{"--listen", taken.Addr().String()}, "--listen " + taken.Addr().String() + " is taken by another program", exitFailed},
		"console's port taken": {[]string{"--console", taken.Addr().String()}, "--console " + taken.Addr().String() + " is taken", exitFailed},
		"no Redis":             {[]string{"--redis", "redis://u:secret@" + free.String()}, "--redis redis://" + free.String() + " does not answer", exitFailed},
		"no database":          {[]string{"--database", "mysql://u:secret@" + free.String() + "/x"}, "--database cannot be prepared", exitFailed},
		"data is a file":       {[]string{"--data", file}, "--data " + file + " cannot be used", exitFailed},
	} {
		t.Run(name, func(t *testing.T) {
			temp := t.TempDir()
			t.Setenv("TMPDIR", temp)
			var out, errs bytes.Buffer
			args := append([]string{"--listen", "127.0.0.1:0", "--console", "127.0.0.1:0"}, tc.args...)
			require.Equal(t, tc.code, run(t.Context(), args, &out, &errs))
			require.Contains(t, errs.String(), tc.says)
			require.NotContains(t, errs.String(), "secret")
			require.Empty(t, out.String())
			left, err := os.ReadDir(temp)
			require.NoError(t, err)
			require.Empty(t, left)
		})
	}
}
