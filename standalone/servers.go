package main

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/seckill-edge/seckill/backend/store"
	"github.com/seckill-edge/seckill/internal/queue"
	"github.com/seckill-edge/seckill/lua"
)

// servers are what edge and backend stand on, embedded or real.
type servers struct {
	folder              string // temporary
	redisURL, brokerURL string
	redis               redis.UniversalClient
	broker              queue.Broker
	store               *store.Store
	// parts says in words what stands where.
	parts []string
}

func (w *works) openServers(ctx context.Context, s settings) (err error) {
	if w.folder, err = os.MkdirTemp("", "seckill-standalone-"); err != nil {
		return fmt.Errorf("making a temporary folder: %w", err)
	}
	w.onStop("the temporary folder", func(context.Context) error { return os.RemoveAll(w.folder) })
	// What is wrong in itself first, before anybody is waited for.
	if err := w.openRedis(s); err != nil {
		return err
	}
	if err := w.openBroker(s); err != nil {
		return err
	}
	if err := w.openStore(ctx, s); err != nil {
		return err
	}
	if err := w.redis.Ping(ctx).Err(); err != nil {
		return fmt.Errorf("--redis %s does not answer: %w; %s", part(s.redis, "(embedded)"), err, wayOut)
	}
	if _, err := w.store.Migrate(ctx); err != nil {
		return fmt.Errorf("--database cannot be prepared: %w; %s", err, wayOut)
	}
	return nil
}

// errUsage reports a flag whose value is wrong in itself.
var errUsage = errors.New("wrong usage")

// patient lets the embedded Redis answer late: it shares the process with all that
// asks it, so that its silence says that the machine is busy, and not that it is away.
const patient = "?dial_timeout=10s&read_timeout=10s&write_timeout=10s&pool_timeout=10s"

func (w *works) openRedis(s settings) (err error) {
	w.redisURL = s.redis
	if s.redis == "" {
		// Over a socket and not in memory, so that the edge uses the same client
		// and the same scripts as with a real one.
		m := miniredis.NewMiniRedis()
		m.ClockTTL(true)
		if err := m.StartAddr("127.0.0.1:0"); err != nil {
			return fmt.Errorf("starting the embedded Redis: %w", err)
		}
		w.onStop("the embedded Redis", func(context.Context) error {
			m.Close()
			return nil
		})
		w.redisURL = "redis://" + m.Addr() + "/0" + patient
	}
	w.parts = append(w.parts, "Redis "+part(s.redis, "embedded"))
	if w.redis, err = lua.NewClient(w.redisURL, "standalone"); err != nil {
		return fmt.Errorf("%w: --redis: %w", errUsage, err)
	}
	w.onStop("the Redis client", func(context.Context) error { return w.redis.Close() })
	return nil
}

// wayOut is what helps when a server is away.
const wayOut = "start it, correct the flag, or leave the flag out for the embedded one"

func (w *works) openBroker(s settings) (err error) {
	w.brokerURL = s.rabbitmq
	if s.rabbitmq == "" {
		w.brokerURL = "memory:" + filepath.Base(w.folder)
	}
	w.parts = append(w.parts, "queue "+part(s.rabbitmq, "embedded"))
	if w.broker, err = queue.Open(w.brokerURL); err != nil {
		return fmt.Errorf("%w: --rabbitmq: %w", errUsage, err)
	}
	w.onStop("the queue", func(context.Context) error { return w.broker.Close() })
	return nil
}

func (w *works) openStore(ctx context.Context, s settings) (err error) {
	address, where := s.database, part(s.database, "")
	if s.database == "" {
		folder := w.folder
		if where = "SQLite in a temporary folder"; s.data != "" {
			folder, where = s.data, "SQLite in "+s.data
			if err := os.MkdirAll(folder, 0o750); err != nil {
				return fmt.Errorf("--data %s cannot be used: %w; name a folder that can be written to", s.data, err)
			}
		}
		address = "sqlite:" + filepath.Join(folder, "seckill.db")
	}
	w.parts = append(w.parts, "database "+where)
	if w.store, err = store.New(ctx, address, w.log); err != nil {
		return fmt.Errorf("%w: --database: %w", errUsage, err)
	}
	w.onStop("the database", func(context.Context) error { return w.store.Close() })
	return nil
}

// part names a server without the password and parameters of its URL.
func part(address, embedded string) string {
	if address == "" {
		return embedded
	}
	u, err := url.Parse(address)
	if err != nil {
		return "given"
	}
	return (&url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path, Opaque: u.Opaque}).String()
}
