package servicetest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"testing"
	"time"
)

// answerWithin bounds one question whether a server is up. The bound of its start
// is Patience.
func answerWithin() time.Duration { return Scaled(2 * time.Second) }

// awaitReady asks until answers has no error, the process ends or ctx does.
func awaitReady(ctx context.Context, p *Process, answers func(context.Context) error) error {
	const pause = 50 * time.Millisecond
	timer := time.NewTimer(0)
	defer timer.Stop()
	var last error
	for {
		select {
		case <-timer.C:
		case <-p.Done():
			return errors.Join(fmt.Errorf("%s ended before it was ready", p.name), p.Wait())
		case <-ctx.Done():
			return p.withLog(fmt.Errorf("waiting for %s: %w; its last answer: %w", p.name, ctx.Err(), last))
		}
		asking, cancel := context.WithTimeout(ctx, answerWithin())
		last = answers(asking)
		cancel()
		if last == nil {
			return nil
		}
		timer.Reset(pause)
	}
}

// shared is a server that all tests of one process use, started by the first of
// them and stopped by Main.
type shared[S interface{ Kill() error }] struct {
	name  string
	start func(ctx context.Context, dir string) (S, error)

	mu      sync.Mutex
	tried   bool
	dir     string
	server  S
	failure error
}

// allShared are the shared servers by what Main must do for them.
var allShared []func() error

func newShared[S interface{ Kill() error }](name string, start func(context.Context, string) (S, error)) *shared[S] {
	s := &shared[S]{name: name, start: start}
	allShared = append(allShared, s.end)
	return s
}

func (s *shared[S]) get(t testing.TB) S {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.tried {
		s.tried = true
		s.failure = s.begin()
	}
	if s.failure != nil {
		t.Fatal(s.failure)
	}
	return s.server
}

func (s *shared[S]) begin() (err error) {
	// Not the context of the test that comes first: the server outlives it.
	ctx, cancel := context.WithTimeout(context.Background(), Patience())
	defer cancel()
	if s.dir, err = os.MkdirTemp("", "seckill-"+s.name+"-"); err != nil {
		return fmt.Errorf("making a folder for %s: %w", s.name, err)
	}
	s.server, err = s.start(ctx, s.dir)
	return err
}

// end kills the server and removes its folder. A later get starts a new one.
func (s *shared[S]) end() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	var err error
	if s.tried && s.failure == nil {
		err = s.server.Kill()
	}
	s.tried = false
	return errors.Join(err, os.RemoveAll(s.dir))
}

// Main wraps m for a package whose tests use shared servers: its Run stops them
// after the tests. In TestMain: goleak.VerifyTestMain(servicetest.Main(m)) or
// os.Exit(servicetest.Main(m).Run()).
func Main(m *testing.M) interface{ Run() int } { return testMain{m} }

type testMain struct{ m *testing.M }

func (t testMain) Run() int {
	code := t.m.Run()
	for _, end := range allShared {
		if err := end(); err != nil {
			fmt.Fprintln(os.Stderr, "stopping a shared test server:", err)
			code = max(code, 1)
		}
	}
	return code
}
