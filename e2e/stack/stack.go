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
	options         Options
	caddy, seckilld string // the programs
}

// Options of a stack; the zero value is the plain product.
type Options struct {
	// Proxied puts a proxy between each program and each of its servers.
	Proxied bool
	// Programs is the folder that Build has built the programs in; empty builds them
	// for this stack, without kill points.
	Programs string
	// Caddyfile is the edges'; nil means this repository's.
	Caddyfile []byte
	// RedisArgs are added to redis-server's command line, BackendArgs to that of
	// seckilld serve.
	RedisArgs, BackendArgs []string
}

// What the backends log in to the database as: somebody whom a read-only server
// refuses, unlike root.
const (
	databaseName     = "seckill"
	databaseUser     = "seckill"
	databasePassword = "secret"
)

// The programs, as packages of this repository.
const (
	caddyProgram    = "caddyplugin/cmd/caddy"
	seckilldProgram = "backend/cmd/seckilld"
)

// Edge is one Caddy.
type Edge struct {
	*servicetest.Process
	URL   string // http://127.0.0.1:port
	Admin string // the same of Caddy's admin endpoint
	Log   string // path
	addr  string
	admin string
	Lines
}

// Backend is one seckilld serve.
type Backend struct {
	*servicetest.Process
	URL  string // console and API
	Log  string // path
	addr string
	Lines
}

// Start starts the three servers, builds the programs and brings the schema up
// to date. Everything lives in dir, which must be empty. Stop must be called,
// also after an error.
func Start(ctx context.Context, dir string, o Options) (*Stack, error) {
	s := &Stack{dir: dir, options: o}
	var err error
	if s.Redis, err = servicetest.StartRedis(ctx, s.sub("redis"), o.RedisArgs...); err != nil {
		return s, err
	}
	if s.RabbitMQ, err = servicetest.StartRabbitMQ(ctx, s.sub("rabbitmq")); err != nil {
		return s, err
	}
	if s.MariaDB, err = servicetest.StartMariaDB(ctx, s.sub("mariadb")); err != nil {
		return s, err
	}
	if err := s.MariaDB.CreateDatabase(ctx, databaseName); err != nil {
		return s, err
	}
	if err := s.MariaDB.Exec(ctx, "GRANT ALL ON "+databaseName+".* TO "+databaseUser+"@'127.0.0.1' IDENTIFIED BY '"+databasePassword+"'"); err != nil {
		return s, err
	}
	if err := s.build(ctx); err != nil {
		return s, err
	}
	_, err = s.Seckilld(ctx, "migrate")
	return s, err
}

// Build builds the programs in dir, for any number of stacks, with their kill points
// if asked to.
func Build(ctx context.Context, dir string, killPoints bool) error {
	var args []string
	if killPoints {
		args = []string{"-tags", servicetest.BuildTags + ",killpoints"} // the last -tags wins
	}
	for _, program := range []string{caddyProgram, seckilldProgram} {
		if _, err := servicetest.Build(ctx, dir, program, args...); err != nil {
			return err
		}
	}
	return nil
}

func (s *Stack) build(ctx context.Context) error {
	programs := s.options.Programs
	if programs == "" {
		programs = s.dir
		if err := Build(ctx, programs, false); err != nil {
			return err
		}
	}
	s.caddy, s.seckilld = filepath.Join(programs, filepath.Base(caddyProgram)), filepath.Join(programs, filepath.Base(seckilldProgram))
	config := s.options.Caddyfile
	if config == nil {
		config = seckill.Caddyfile
	}
	return os.WriteFile(s.caddyfile(), config, 0o644)
}

// Dir is the folder everything lives in.
func (s *Stack) Dir() string { return s.dir }

func (s *Stack) sub(name string) string {
	dir := filepath.Join(s.dir, name)
	_ = os.MkdirAll(dir, 0o755) // what fails here fails again, and says so, in its user
	return dir
}

func (s *Stack) caddyfile() string { return filepath.Join(s.dir, "Caddyfile") }

// Seckilld runs one command of the operator's tool and returns what it printed.
func (s *Stack) Seckilld(ctx context.Context, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, s.seckilld, args...)
	cmd.Env = backendEnv(s.addressesOf(Lines{}))
	out, err := cmd.Output()
	if err != nil {
		if exit, ok := errors.AsType[*exec.ExitError](err); ok {
			err = fmt.Errorf("%w: %s", err, exit.Stderr)
		}
		return string(out), fmt.Errorf("seckilld %v: %w", args, err)
	}
	return string(out), nil
}

func backendEnv(at addresses, more ...string) []string {
	return append(append(os.Environ(), "SECKILL_REDIS_URL="+at.redis,
		"SECKILL_RABBITMQ_URL="+at.rabbitmq, "SECKILL_DATABASE_URL="+at.database), more...)
}

// AddEdge starts a further edge, with development identity and without the limits
// on an address (all clients of a test share one) and a buyer.
func (s *Stack) AddEdge(ctx context.Context) (*Edge, error) {
	addr, err := servicetest.FreeAddr()
	if err != nil {
		return nil, err
	}
	admin, err := servicetest.FreeAddr()
	if err != nil {
		return nil, err
	}
	e := &Edge{URL: "http://" + addr, addr: addr, Admin: "http://" + admin, admin: admin, Log: filepath.Join(s.dir, "caddy-"+port(addr)+".log")}
	s.Edges = append(s.Edges, e)
	if e.Lines, err = s.connect(false); err != nil {
		return nil, err
	}
	return e, s.StartEdge(ctx, e)
}

// StartEdge starts an edge that has ended again, at its address, with further
// environment variables.
func (s *Stack) StartEdge(ctx context.Context, e *Edge, env ...string) (err error) {
	at := s.addressesOf(e.Lines)
	home := s.sub("home")
	cmd := exec.Command(s.caddy, "run", "--config", s.caddyfile(), "--adapter", "caddyfile")
	cmd.Env = append(os.Environ(), "HOME="+home, "XDG_DATA_HOME="+home, "XDG_CONFIG_HOME="+home,
		"SECKILL_REDIS_URL="+at.redis, "SECKILL_RABBITMQ_URL="+at.rabbitmq,
		"SECKILL_SITE="+e.URL, "SECKILL_BIND=127.0.0.1", "SECKILL_ADMIN="+e.admin, "SECKILL_LIMIT_IP=off", "SECKILL_LIMIT_USER=off", "SECKILL_SHOP_ROOT="+home,
		"SECKILL_IDENTITY=http.request.header.X-User-Id", "SECKILL_INSECURE_CLIENT_IDENTITY=on")
	cmd.Env = append(cmd.Env, env...)
	e.Process, err = servicetest.Start("caddy", cmd, e.Log)
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
	b := &Backend{URL: "http://" + addr, addr: addr, Log: filepath.Join(s.dir, "seckilld-"+port(addr)+".log")}
	s.Backends = append(s.Backends, b)
	if b.Lines, err = s.connect(true); err != nil {
		return nil, err
	}
	return b, s.StartBackend(ctx, b)
}

// StartBackend starts a backend that has ended again, at its address, with
// further environment variables.
func (s *Stack) StartBackend(ctx context.Context, b *Backend, env ...string) (err error) {
	cmd := exec.Command(s.seckilld, append([]string{"serve", "--listen", b.addr}, s.options.BackendArgs...)...)
	cmd.Env = backendEnv(s.addressesOf(b.Lines), env...)
	b.Process, err = servicetest.Start("seckilld", cmd, b.Log)
	if err != nil {
		return err
	}
	return waitAnswer(ctx, b.Process, b.URL+"/healthz")
}

func port(addr string) string { _, p, _ := net.SplitHostPort(addr); return p }

// waitAnswer asks until there is any HTTP answer or the process ends.
func waitAnswer(ctx context.Context, p *servicetest.Process, url string) error {
	ctx, cancel := context.WithTimeout(ctx, servicetest.Patience())
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
			errs = append(errs, e.Stop())
		}
		e.close()
	}
	for _, b := range s.Backends {
		if b.Process != nil {
			errs = append(errs, b.Stop())
		}
		b.close()
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
