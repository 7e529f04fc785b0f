package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/spf13/pflag"

	"github.com/seckill-edge/seckill/backend/store"
	"github.com/seckill-edge/seckill/backend/tide"
	"github.com/seckill-edge/seckill/internal/queue"
	"github.com/seckill-edge/seckill/internal/secret"
	"github.com/seckill-edge/seckill/lua"
)

// options are the addresses of the servers and how to log. An option beats the
// environment, the environment the default.
type options struct {
	redis, rabbitmq, database string
	logFormat                 string
}

const (
	defaultRedis    = "redis://127.0.0.1:6379/0"
	defaultRabbitMQ = "amqp://guest:guest@127.0.0.1:5672/"
)

func (o *options) register(flags *pflag.FlagSet) {
	flags.StringVar(&o.redis, "redis", "", "Redis `URL`; better by SECKILL_REDIS_URL or SECKILL_REDIS_URL_FILE, which ps does not show (default "+defaultRedis+")")
	flags.StringVar(&o.rabbitmq, "rabbitmq", "", "RabbitMQ `URL`; or SECKILL_RABBITMQ_URL, SECKILL_RABBITMQ_URL_FILE (default on 127.0.0.1:5672)")
	flags.StringVar(&o.database, "database", "", "database `URL`, mysql://user:password@host:3306/name or sqlite:PATH; or SECKILL_DATABASE_URL, SECKILL_DATABASE_URL_FILE")
	flags.StringVar(&o.logFormat, "log-format", "text", "`text` or json, on standard error")
}

// secret reads what must not be on a command line: the variable, or the file
// that the variable with _FILE names. Empty if neither is set.
func (a *app) secret(name string) (string, error) {
	value, err := secret.Environment(a.env, name)
	if err != nil {
		return "", fmt.Errorf("%w: %w", errUsage, err)
	}
	return value, nil
}

func (a *app) address(option, flag, variable, otherwise string) (string, error) {
	if flag != "" {
		value, err := secret.Named("--"+option, flag)
		if err != nil {
			return "", fmt.Errorf("%w: %w", errUsage, err)
		}
		return value, nil
	}
	value, err := a.secret(variable)
	if err != nil || value != "" {
		return value, err
	}
	if otherwise == "" {
		return "", fmt.Errorf("%w: --%s is not set, nor %s; it must be mysql://user:password@host:3306/name or sqlite:PATH", errUsage, option, variable)
	}
	return otherwise, nil
}

// log is the log of a command, from level on.
func (a *app) log(level slog.Level) (*slog.Logger, error) {
	o := &slog.HandlerOptions{Level: level}
	var handler slog.Handler
	switch a.options.logFormat {
	case "text":
		handler = slog.NewTextHandler(a.stderr, o)
	case "json":
		handler = slog.NewJSONHandler(a.stderr, o)
	default:
		return nil, fmt.Errorf("%w: --log-format %q: must be text or json", errUsage, a.options.logFormat)
	}
	log := slog.New(handler)
	lua.LogTo(log)
	return log, nil
}

// servers are open clients of all servers. None need be up.
type servers struct {
	redis  redis.UniversalClient
	broker queue.Broker
	store  *store.Store
	// tide is what tide.Check has said of a command's; store minds it.
	tide error
}

// The errors of the three parsers do not repeat the address: it may hold a
// password. So the option's name has to say which one it is.
func (a *app) openStore(ctx context.Context, log *slog.Logger) (*store.Store, error) {
	address, err := a.address("database", a.options.database, "SECKILL_DATABASE_URL", "")
	if err != nil {
		return nil, err
	}
	s, err := store.New(ctx, address, log)
	if err != nil {
		return nil, fmt.Errorf("%w: --database (SECKILL_DATABASE_URL): %w", errUsage, err)
	}
	return s, nil
}

func (a *app) openServers(ctx context.Context, log *slog.Logger, name string) (s servers, err error) {
	defer func() {
		if err != nil {
			err = errors.Join(err, s.close())
		}
	}()
	address, err := a.address("redis", a.options.redis, "SECKILL_REDIS_URL", defaultRedis)
	if err != nil {
		return s, err
	}
	if s.redis, err = lua.NewClient(address, name); err != nil {
		s.redis = nil
		return s, fmt.Errorf("%w: --redis (SECKILL_REDIS_URL): %w", errUsage, err)
	}
	if address, err = a.address("rabbitmq", a.options.rabbitmq, "SECKILL_RABBITMQ_URL", defaultRabbitMQ); err != nil {
		return s, err
	}
	if s.broker, err = queue.Open(address); err != nil {
		s.broker = nil
		return s, fmt.Errorf("%w: --rabbitmq (SECKILL_RABBITMQ_URL): %w", errUsage, err)
	}
	s.store, err = a.openStore(ctx, log)
	return s, err
}

// databaseWithin is how long a command waits for the database's first word: a
// server that hangs is told of soon, whatever the command would have done.
const databaseWithin = 3 * time.Second

// openAnswering is openServers for a command, which is nothing without the database.
func (a *app) openAnswering(ctx context.Context, log *slog.Logger, name string) (servers, error) {
	s, err := a.openServers(ctx, log, name)
	if err != nil {
		return s, err
	}
	if err := answers(ctx, s.store); err != nil {
		return servers{}, errors.Join(err, s.close())
	}
	checking, cancel := context.WithTimeout(ctx, tideWithin)
	defer cancel()
	s.tide = tide.Check(checking, s.tideDeps(log))
	return s, nil
}

// tideWithin is how long a command waits for word on the tide. Without it, it goes on:
// to hold a sale, say, is possible with any store away.
const tideWithin = time.Second

func (s *servers) tideDeps(log *slog.Logger) tide.Deps {
	return tide.Deps{Redis: s.redis, Store: s.store, Log: log}
}

func answers(ctx context.Context, s *store.Store) error {
	ctx, cancel := context.WithTimeout(ctx, databaseWithin)
	defer cancel()
	return s.Ping(ctx)
}

func (s *servers) close() error {
	var errs []error
	if s.store != nil {
		errs = append(errs, s.store.Close())
	}
	if s.broker != nil {
		errs = append(errs, s.broker.Close())
	}
	if s.redis != nil {
		errs = append(errs, s.redis.Close())
	}
	return errors.Join(errs...)
}
