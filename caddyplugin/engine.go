package caddyplugin

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/redis/go-redis/v9"
	"go.uber.org/zap"

	"github.com/seckill-edge/seckill/caddyplugin/gate"
	"github.com/seckill-edge/seckill/internal/queue"
	"github.com/seckill-edge/seckill/lua"
)

// drainWithin bounds how long an engine that nobody uses any more may publish
// what it carries. What is left then is in the outbox, for the backend.
const drainWithin = 5 * time.Second

// settings are all that an engine is made of, its key in the pool. Two configs
// with equal settings share one engine.
type settings struct {
	redis, rabbitmq string // with the passwords, never to be logged
	backend         string
	backendToken    string // never to be logged
	gate            gate.Config
}

// engine is a gate with its connections.
type engine struct {
	gate      *gate.Gate
	redis     redis.UniversalClient
	publisher queue.Publisher
	broker    queue.Broker
	archive   *archive // nil for none
	log       *liveLog
}

// engines counts who uses which engine: on a reload Caddy makes the new config
// before it lets go of the old one.
var engines = caddy.NewUsagePool()

// acquire returns the engine of s. Whoever got one must release it once.
func acquire(s settings, log *zap.Logger) (*engine, error) {
	e, _, err := engines.LoadOrNew(s, func() (caddy.Destructor, error) { return newEngine(s, log) })
	if err != nil {
		return nil, err
	}
	return e.(*engine), nil
}

func release(s settings) error {
	_, err := engines.Delete(s)
	return err
}

// newEngine dials nothing.
func newEngine(s settings, log *zap.Logger) (_ *engine, err error) {
	e := &engine{log: newLiveLog(log)}
	defer func() {
		if err != nil {
			err = errors.Join(err, e.Destruct())
		}
	}()
	logger := e.log.logger()
	if e.redis, err = lua.NewClient(s.redis, "caddy"); err != nil {
		return nil, fmt.Errorf("redis: %w", err)
	}
	if e.broker, err = queue.Open(s.rabbitmq); err != nil {
		return nil, fmt.Errorf("rabbitmq: %w", err)
	}
	e.publisher = e.broker.Publisher(queue.Options{Name: "caddy", Log: logger.With("part", "publisher")})
	deps := gate.Deps{
		Redis:     e.redis,
		Publisher: e.publisher,
		Now:       time.Now,
		Random:    rand.Reader,
		Log:       logger,
		Limits:    limits.Limits,
	}
	if s.backend != "" {
		if e.archive, err = newArchive(s.backend, s.backendToken, logger); err != nil {
			return nil, fmt.Errorf("backend: %w", err)
		}
		deps.Archive = e.archive
	}
	e.gate, err = gate.New(s.gate, deps)
	if err != nil {
		return nil, fmt.Errorf("gate: %w", err)
	}
	return e, nil
}

// Destruct drains and closes in the order of an order's way: the gate publishes
// what it carries, the publisher waits for its confirms, and only then nobody
// needs Redis any more to take the confirmed orders out of the outbox.
func (e *engine) Destruct() error {
	ctx, cancel := context.WithTimeout(context.Background(), drainWithin)
	defer cancel()
	var errs []error
	if e.gate != nil {
		e.gate.Close(ctx)
	}
	if e.publisher != nil {
		errs = append(errs, e.publisher.Close(ctx))
	}
	if e.broker != nil {
		errs = append(errs, e.broker.Close())
	}
	if e.archive != nil {
		e.archive.close()
	}
	if e.redis != nil {
		errs = append(errs, e.redis.Close())
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("closing the gate: %w", err)
	}
	return nil
}
