package servicetest

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

const (
	// redisPoll is how often a started Redis is asked whether it answers.
	redisPoll = 20 * time.Millisecond
	// portTries is how often a start is repeated when somebody else was quicker
	// to take the port.
	portTries = 5
)

// Redis is a private redis-server. Its methods must not be called concurrently,
// except Addr, URL and PID.
type Redis struct {
	dir  string
	port int
	args []string
	*Process
}

// StartRedis starts a redis-server on a free loopback port with its data in dir,
// which must exist: append-only file, fsync every second, no snapshots. args are
// added to its command line and win. It returns when PING is answered, or with
// an error when ctx ends or Patience is over.
func StartRedis(ctx context.Context, dir string, args ...string) (*Redis, error) {
	var err error
	for range portTries {
		r := &Redis{dir: dir, args: args}
		if r.port, err = steadyPort(); err != nil {
			return nil, err
		}
		if err = r.start(ctx); err == nil {
			return r, nil
		}
		if !strings.Contains(err.Error(), "Address already in use") {
			return nil, err
		}
	}
	return nil, fmt.Errorf("starting redis-server on a free port, %d tries: %w", portTries, err)
}

// RedisForTest starts a Redis in a temporary folder and kills it at the end of
// the test.
func RedisForTest(t testing.TB, args ...string) *Redis {
	t.Helper()
	r, err := StartRedis(t.Context(), t.TempDir(), args...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := r.Kill(); err != nil {
			t.Error(err)
		}
	})
	return r
}

// Addr is the server's host:port. It survives a Restart.
func (r *Redis) Addr() string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(r.port)) }

// URL is the server's address as a redis:// URL.
func (r *Redis) URL() string { return "redis://" + r.Addr() + "/0" }

// PatientRedis is the query of a redis:// URL that lets calls take as long as they
// do on the slowest machine, for tests that are not about the deadlines of calls.
func PatientRedis() string {
	return fmt.Sprintf("?dial_timeout=%[1]v&read_timeout=%[1]v&write_timeout=%[1]v&pool_timeout=%[1]v", Patience())
}

// Restart starts the server again on the same port and data, after stopping it
// if it still runs, and waits until it answers.
func (r *Redis) Restart(ctx context.Context) error {
	if err := r.Stop(); err != nil {
		return err
	}
	return r.start(ctx)
}

// Configure sets the arguments of later starts, in place of StartRedis's.
func (r *Redis) Configure(args ...string) { r.args = args }

func (r *Redis) start(ctx context.Context) error {
	path, err := exec.LookPath("redis-server")
	if err != nil {
		return fmt.Errorf("redis-server is not on PATH (%w): apt-get install redis-server or run make test", err)
	}
	cmd := exec.Command(path, append([]string{
		"--port", strconv.Itoa(r.port), "--bind", "127.0.0.1", "--dir", r.dir, "--daemonize", "no",
		"--appendonly", "yes", "--appendfsync", "everysec", "--save", "",
	}, r.args...)...)
	if r.Process, err = startProcess("redis-server", cmd, filepath.Join(r.dir, "redis.log")); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, Patience())
	defer cancel()
	if err := r.waitReady(ctx); err != nil {
		return errors.Join(err, r.Kill())
	}
	return nil
}

func (r *Redis) waitReady(ctx context.Context) error {
	ticker := time.NewTicker(redisPoll)
	defer ticker.Stop()
	for {
		err := r.ping(ctx)
		if err == nil {
			return nil
		}
		select {
		case <-r.Done():
			return r.withLog(fmt.Errorf("redis-server on %s ended while starting: %w", r.Addr(), r.err))
		case <-ctx.Done():
			return r.withLog(fmt.Errorf("waiting for redis-server on %s to answer: %w (last try: %w)", r.Addr(), context.Cause(ctx), err))
		case <-ticker.C:
		}
	}
}

// ping speaks the protocol by hand, so that this package needs no client. It
// makes sure that the process which answers is ours.
func (r *Redis) ping(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, answerWithin())
	defer cancel()
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", r.Addr())
	if err != nil {
		return err
	}
	defer conn.Close()
	deadline, _ := ctx.Deadline()
	if err := conn.SetDeadline(deadline); err != nil {
		return err
	}
	if _, err := conn.Write([]byte("PING\r\nINFO server\r\nQUIT\r\n")); err != nil {
		return err
	}
	lines := bufio.NewScanner(conn)
	if !lines.Scan() || lines.Text() != "+PONG" {
		return fmt.Errorf("PING was answered %q (%w)", lines.Text(), lines.Err())
	}
	want := "process_id:" + strconv.Itoa(r.PID())
	for lines.Scan() {
		if lines.Text() == want {
			return nil
		}
	}
	return fmt.Errorf("INFO server on %s does not say %s (%w)", r.Addr(), want, lines.Err())
}
