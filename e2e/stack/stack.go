// Package stack runs the whole product as real processes on private servers:
// Redis, RabbitMQ, MariaDB, any number of edges (Caddy with this repository's
// Caddyfile) and backends (seckilld). Whole-system tests drive it.
package stack

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	seckill "github.com/seckill-edge/seckill"
	"github.com/seckill-edge/seckill/internal/servicetest"
)

// Stack is the servers and the programs. Its methods are not safe for concurrent
// use; the processes may be killed from anywhere.
type Stack struct {
	Redis    *servicetest.Redis
	RabbitMQ *servicetest.RabbitMQ
	MariaDB  *servicetest.MariaDB
	Edges    []*Edge
	Backends []*Backend

	dir             string
	caddy, seckilld string // the programs
	address         addresses
}

// addresses is where our programs look for their servers. A test that cuts the
// network puts a proxy's address here.
type addresses struct{ redis, rabbitmq, database string }

// Edge is one Caddy.
type Edge struct {
	*servicetest.Process
	URL  string // http://127.0.0.1:port
	addr string
}

// Backend is one seckilld serve.
type Backend struct {
	*servicetest.Process
	URL  string // console and API
	addr string
}

// Start starts the three servers, builds the programs and brings the schema up
// to date. Everything lives in dir, which must be empty. Redis gets the given
// arguments. Stop must be called, also after an error.
func Start(ctx context.Context, dir string, redisArgs ...string) (*Stack, error) {
	s := &Stack{dir: dir}
	var err error
	if s.Redis, err = servicetest.StartRedis(ctx, s.sub("redis"), redisArgs...); err != nil {
		return s, err
	}
	if s.RabbitMQ, err = servicetest.StartRabbitMQ(ctx, s.sub("rabbitmq")); err != nil {
		return s, err
	}
	if s.MariaDB, err = servicetest.StartMariaDB(ctx, s.sub("mariadb")); err != nil {
		return s, err
	}
	if err := s.MariaDB.CreateDatabase(ctx, "seckill"); err != nil {
		return s, err
	}
	s.address = addresses{s.Redis.URL(), s.RabbitMQ.URL(), "mysql://root@" + s.MariaDB.Addr() + "/seckill"}
	if s.caddy, err = servicetest.Build(ctx, dir, "caddyplugin/cmd/caddy"); err != nil {
		return s, err
	}
	if s.seckilld, err = servicetest.Build(ctx, dir, "backend/cmd/seckilld"); err != nil {
		return s, err
	}
	if err := os.WriteFile(s.caddyfile(), seckill.Caddyfile, 0o644); err != nil {
		return s, err
	}
	_, err = s.Seckilld(ctx, "migrate")
	return s, err
}

func (s *Stack) sub(name string) string {
	dir := filepath.Join(s.dir, name)
	_ = os.MkdirAll(dir, 0o755) // what fails here fails again, and says so, in its user
	return dir
}

func (s *Stack) caddyfile() string { return filepath.Join(s.dir, "Caddyfile") }

// Seckilld runs one command of the operator's tool and returns what it printed.
func (s *Stack) Seckilld(ctx context.Context, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, s.seckilld, args...)
	cmd.Env = s.backendEnv()
	out, err := cmd.Output()
	if err != nil {
		var exit *exec.ExitError
		if errors.As(err, &exit) {
			err = fmt.Errorf("%w: %s", err, exit.Stderr)
		}
		return string(out), fmt.Errorf("seckilld %v: %w", args, err)
	}
	return string(out), nil
}

func (s *Stack) backendEnv() []string {
	return append(os.Environ(), "SECKILL_REDIS_URL="+s.address.redis,
		"SECKILL_RABBITMQ_URL="+s.address.rabbitmq, "SECKILL_DATABASE_URL="+s.address.database)
}

// AddEdge starts a further edge, with development identity and no limit per
// address (all clients of a test share one).
func (s *Stack) AddEdge(ctx context.Context) (*Edge, error) {
	addr, err := servicetest.FreeAddr()
	if err != nil {
		return nil, err
	}
	e := &Edge{URL: "http://" + addr, addr: addr}
	s.Edges = append(s.Edges, e)
	return e, s.StartEdge(ctx, e)
}

// StartEdge starts an edge that has ended again, at its address.
func (s *Stack) StartEdge(ctx context.Context, e *Edge) (err error) {
	home := s.sub("home")
	cmd := exec.Command(s.caddy, "run", "--config", s.caddyfile(), "--adapter", "caddyfile")
	cmd.Env = append(os.Environ(), "HOME="+home, "XDG_DATA_HOME="+home, "XDG_CONFIG_HOME="+home,
		"SECKILL_REDIS_URL="+s.address.redis, "SECKILL_RABBITMQ_URL="+s.address.rabbitmq,
		"SECKILL_SITE="+e.URL, "SECKILL_ADMIN=off", "SECKILL_RATE=off", "SECKILL_SHOP_ROOT="+home,
		"SECKILL_IDENTITY=http.request.header.X-User-Id", "SECKILL_INSECURE_CLIENT_IDENTITY=on")
	e.Process, err = servicetest.Start("caddy", cmd, filepath.Join(s.dir, "caddy-"+port(e.addr)+".log"))
	if err != nil {
		return err
	}
	return waitAnswer(ctx, e.Process, e.URL+"/")
}

// AddBackend starts a further backend.
func (s *Stack) AddBackend(ctx context.Context) (*Backend, error) {
	addr, err := servicetest.FreeAddr()
	if err != nil {
		return nil, err
	}
	b := &Backend{URL: "http://" + addr, addr: addr}
	s.Backends = append(s.Backends, b)
	return b, s.StartBackend(ctx, b)
}

// StartBackend starts a backend that has ended again, at its address.
func (s *Stack) StartBackend(ctx context.Context, b *Backend) (err error) {
	cmd := exec.Command(s.seckilld, "serve", "--listen", b.addr)
	cmd.Env = s.backendEnv()
	b.Process, err = servicetest.Start("seckilld", cmd, filepath.Join(s.dir, "seckilld-"+port(b.addr)+".log"))
	if err != nil {
		return err
	}
	return waitAnswer(ctx, b.Process, b.URL+"/healthz")
}

func port(addr string) string { _, p, _ := net.SplitHostPort(addr); return p }

// waitAnswer asks until there is any HTTP answer or the process ends.
func waitAnswer(ctx context.Context, p *servicetest.Process, url string) error {
	ctx, cancel := context.WithTimeout(ctx, 60*time.Second)
	defer cancel()
	for {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
		if err != nil {
			return err
		}
		answer, err := http.DefaultClient.Do(req)
		if err == nil {
			return answer.Body.Close()
		}
		select {
		case <-p.Done():
			return fmt.Errorf("%s: %w", url, p.Wait())
		case <-ctx.Done():
			return fmt.Errorf("no answer from %s: %w", url, err)
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// Stop ends everything: our programs cleanly, the servers at once. It returns
// what did not end cleanly.
func (s *Stack) Stop() error {
	var errs []error
	for _, e := range s.Edges {
		if e.Process != nil {
			errs = append(errs, e.Process.Stop())
		}
	}
	for _, b := range s.Backends {
		if b.Process != nil {
			errs = append(errs, b.Process.Stop())
		}
	}
	if s.RabbitMQ != nil {
		errs = append(errs, s.RabbitMQ.Kill())
	}
	if s.Redis != nil {
		errs = append(errs, s.Redis.Kill())
	}
	if s.MariaDB != nil {
		errs = append(errs, s.MariaDB.Kill())
	}
	return errors.Join(errs...)
}
