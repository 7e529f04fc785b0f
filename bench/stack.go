package main

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/seckill-edge/seckill/backend/store"
	"github.com/seckill-edge/seckill/internal/servicetest"
	"github.com/seckill-edge/seckill/lua"
)

// stack is everything a sale runs on, as real processes on this machine.
type stack struct {
	redis    *servicetest.Redis
	rabbit   *servicetest.RabbitMQ
	mariadb  *servicetest.MariaDB
	edge     *servicetest.Process
	backend  *servicetest.Process
	rdb      redis.UniversalClient
	database string // URL of a fresh database for the sale
	store    *store.Store
	bare     string // address of the bare respond
	shop     string // address of the plugin
	proved   string // the same, where buyers need signed tokens and tickets
}

// caddyfile has both sites in one process, so that the options are the same. The
// bare one sends what a refusal sends. Every limit is on, and none is reached.
const caddyfile = `{
	admin off
	default_bind 127.0.0.1
	persist_config off
	auto_https off
	servers {
		protocols h1
		timeouts {
			read_header 5s
			read_body_idle -1s
			write_idle -1s
		}
	}
	seckill {
		redis %s
		rabbitmq %s
		limit ip 1000000/1s
		limit user 1000000/1s
		limit activity 1000000/1s
		limit total 1000000/1s
		limit shared activity 1000000/1s
		limit shared total 1000000/1s
		deny 198.18.0.0/15 2001:db8::/32
		ticket_keys {env.SECKILL_PROOF}
	}
}
http://%s {
	respond 410 {
		body "{\"type\":\"about:blank\",\"title\":\"sold out\",\"status\":410,\"code\":-6,\"detail\":\"every unit is taken; look again\"}"
	}
}
http://%s {
	seckill_limit
	seckill {
		identity http.request.header.X-User-Id
		insecure_client_identity on
	}
}
http://%s {
	seckill_limit
	seckill_jwt {
		key bench HS256 {env.SECKILL_PROOF}
		issuer %s
		audience shop
	}
	seckill {
		require_ticket on
	}
}
`

func startStack(ctx context.Context, dir string) (_ *stack, err error) {
	s := &stack{}
	defer func() {
		if err != nil {
			s.stop()
		}
	}()
	sub := func(name string) string {
		d := filepath.Join(dir, name)
		_ = os.MkdirAll(d, 0o755)
		return d
	}
	if s.redis, err = servicetest.StartRedis(ctx, sub("redis")); err != nil {
		return s, err
	}
	if s.rabbit, err = servicetest.StartRabbitMQ(ctx, sub("rabbitmq")); err != nil {
		return s, err
	}
	if s.mariadb, err = servicetest.StartMariaDB(ctx, sub("mariadb")); err != nil {
		return s, err
	}
	if s.rdb, err = lua.NewClient(s.redis.URL(), "bench"); err != nil {
		return s, err
	}
	if err = s.mariadb.CreateDatabase(ctx, "seckill"); err != nil {
		return s, err
	}
	s.database = "mysql://root@" + s.mariadb.Addr() + "/seckill"
	if s.store, err = openStore(ctx, s.database); err != nil {
		return s, err
	}
	if err = s.startBackend(ctx, dir); err != nil {
		return s, err
	}
	return s, s.startEdge(ctx, dir)
}

func (s *stack) startBackend(ctx context.Context, dir string) error {
	program, err := servicetest.Build(ctx, dir, "backend/cmd/seckilld")
	if err != nil {
		return err
	}
	address, err := servicetest.FreeAddr()
	if err != nil {
		return err
	}
	cmd := exec.Command(program, "serve", "--listen", address)
	cmd.Env = append(os.Environ(), "GOGC=400", "SECKILL_REDIS_URL="+s.redis.URL(),
		"SECKILL_RABBITMQ_URL="+s.rabbit.URL(), "SECKILL_DATABASE_URL="+s.database)
	if s.backend, err = servicetest.Start("seckilld", cmd, filepath.Join(dir, "seckilld.log")); err != nil {
		return err
	}
	return waitListening(ctx, s.backend, address)
}

func (s *stack) startEdge(ctx context.Context, dir string) error {
	program, err := servicetest.Build(ctx, dir, "caddyplugin/cmd/caddy")
	if err != nil {
		return err
	}
	if s.bare, err = servicetest.FreeAddr(); err != nil {
		return err
	}
	if s.shop, err = servicetest.FreeAddr(); err != nil {
		return err
	}
	if s.proved, err = servicetest.FreeAddr(); err != nil {
		return err
	}
	config := filepath.Join(dir, "Caddyfile")
	text := fmt.Sprintf(caddyfile, s.redis.URL(), s.rabbit.URL(), s.bare, s.shop, s.proved, provedIssuer)
	if err := os.WriteFile(config, []byte(text), 0o644); err != nil {
		return err
	}
	cmd := exec.Command(program, "run", "--config", config)
	cmd.Env = append(os.Environ(), "GOGC=400", "SECKILL_PROOF="+provedSecret, "HOME="+dir, "XDG_DATA_HOME="+dir, "XDG_CONFIG_HOME="+dir)
	if s.edge, err = servicetest.Start("caddy", cmd, filepath.Join(dir, "caddy.log")); err != nil {
		return err
	}
	if err := waitListening(ctx, s.edge, s.bare); err != nil {
		return err
	}
	return waitListening(ctx, s.edge, s.shop)
}

// waitListening tries until the process accepts connections or ends.
func waitListening(ctx context.Context, p *servicetest.Process, address string) error {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	for {
		conn, err := net.DialTimeout("tcp", address, time.Second)
		if err == nil {
			return conn.Close()
		}
		select {
		case <-p.Done():
			return fmt.Errorf("%s: %w", address, p.Wait())
		case <-ctx.Done():
			return fmt.Errorf("nothing listens on %s: %w", address, err)
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// stop ends what was started, in the order of a clean shutdown.
func (s *stack) stop() {
	for _, p := range []*servicetest.Process{s.edge, s.backend} {
		if p != nil {
			_ = p.Stop()
		}
	}
	if s.store != nil {
		_ = s.store.Close()
	}
	if s.rdb != nil {
		_ = s.rdb.Close()
	}
	if s.rabbit != nil {
		_ = s.rabbit.Kill()
	}
	if s.redis != nil {
		_ = s.redis.Kill()
	}
	if s.mariadb != nil {
		_ = s.mariadb.Kill()
	}
}
