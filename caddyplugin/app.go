package caddyplugin

import (
	"errors"
	"fmt"
	"time"

	"github.com/caddyserver/caddy/v2"
	"go.uber.org/zap"

	"github.com/seckill-edge/seckill/caddyplugin/gate"
	"github.com/seckill-edge/seckill/caddyplugin/limit"
	"github.com/seckill-edge/seckill/internal/secret"
)

// The servers of a development machine, for who names none.
const (
	defaultRedis    = "redis://127.0.0.1:6379/0"
	defaultRabbitMQ = "amqp://guest:guest@127.0.0.1:5672/"
)

// App is the app seckill: it owns what all seckill handlers of a config share,
// the connections to Redis and RabbitMQ and the gate between them. A reload
// that does not change these settings keeps the same gate, so that no
// connection is opened anew, no limit starts afresh and no order waits twice.
//
// Nothing is dialled while a config is loaded or validated; until both servers
// answer, buyers are told 503 with Retry-After.
type App struct {
	// Redis is the URL of the Redis that holds the stock:
	// redis://user:password@host:6379/0, rediss:// for TLS. Placeholders such as
	// {env.SECKILL_REDIS_URL} and {file./run/secrets/redis} are resolved when the
	// config is loaded, so that no password is in the config itself. Default
	// redis://127.0.0.1:6379/0.
	Redis string `json:"redis,omitempty"`
	// RabbitMQ is the URL of the broker that takes the orders:
	// amqp://user:password@host:5672/vhost, amqps:// for TLS. Placeholders as
	// with redis. Default amqp://guest:guest@127.0.0.1:5672/.
	RabbitMQ string `json:"rabbitmq,omitempty"`
	// Backend is the base URL of a seckilld, such as http://127.0.0.1:9680, which
	// is asked about orders that Redis no longer has. Placeholders as with redis.
	// Default: nobody is asked, such orders are answered 404.
	Backend string `json:"backend,omitempty"`
	// BackendToken is the bearer token for it; give a placeholder, such as
	// {env.SECKILL_API_TOKEN}. Default: none.
	BackendToken string `json:"backend_token,omitempty"`
	// Limits say how many calls are let in. Default: all. They may be changed at any
	// time: whoever has spent his tokens has spent them under the new limits too.
	Limits *Limits `json:"limits,omitempty"`
	// Surplus is how many units may be asked for at once for each unit that is left,
	// by the edge's knowledge; beyond it purchases are answered 503, to come again.
	// What one call to Redis takes, 128 units, is let in in any case. 1 to 1000, or
	// -1 for no such bound. Default 8.
	Surplus int `json:"surplus,omitempty"`
	// ReserveTimeout is how long a buyer waits for Redis before he is told
	// "queued" and learns the outcome by asking. Default 250ms.
	ReserveTimeout caddy.Duration `json:"reserve_timeout,omitempty"`
	// ResolveWithin is when the fate of a queued order is known at the latest.
	// Default 30s.
	ResolveWithin caddy.Duration `json:"resolve_within,omitempty"`
	// Linger is how long a message waits for more orders. Default 10ms.
	Linger caddy.Duration `json:"linger,omitempty"`
	// OrdersPerMessage bounds a message, 1 to 256. Default 256.
	OrdersPerMessage int `json:"orders_per_message,omitempty"`
	// Waiting bounds the requests that wait for Redis, per product; one more is
	// answered 503. Default 8192.
	Waiting int `json:"waiting,omitempty"`
	// Streams bounds the open event streams of orders, StreamsPerBuyer those of one
	// buyer; one more is answered 503, or 429. Defaults 50000 and 4.
	Streams         int `json:"streams,omitempty"`
	StreamsPerBuyer int `json:"streams_per_buyer,omitempty"`
	// Buffer bounds the reserved orders that wait to be published; what does not
	// fit stays in Redis for the backend to publish. Default 65536.
	Buffer int `json:"buffer,omitempty"`

	// TicketKeys are where the secrets of tickets are, {env.NAME} or
	// {file./path}, 1 to 4 of at least 32 bytes each: the first one signs, all
	// verify, so that a key can be replaced on one edge after the other. Default:
	// no tickets are given, and none are asked for.
	TicketKeys []string `json:"ticket_keys,omitempty"`
	// TicketLife is how long a ticket may be used, 1s to 10m. Default 1m.
	TicketLife caddy.Duration `json:"ticket_life,omitempty"`

	settings settings
	tickets  *tickets // nil: none
	limits   limit.Config
	engine   *engine // nil before Provision; stays, for requests still on their way
	log      *zap.Logger
}

// CaddyModule returns the Caddy module information.
func (*App) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{ID: appName, New: func() caddy.Module { return new(App) }}
}

// Provision takes the engine that these settings describe, or makes it. The app
// is usable from here on: Caddy starts apps in any order.
func (a *App) Provision(ctx caddy.Context) error {
	a.log = ctx.Logger()
	var err error
	if a.settings, err = a.resolve(); err != nil {
		return err
	}
	if a.tickets, err = newTickets(a.TicketKeys, time.Duration(a.TicketLife)); err != nil {
		return err
	}
	if a.tickets != nil {
		a.settings.gate.TicketLife = a.tickets.life
		if err = a.tickets.register(ctx.GetMetricsRegistry()); err != nil {
			return err
		}
	}
	if a.engine, err = acquire(a.settings, a.log); err != nil {
		return err
	}
	if a.engine.archive != nil {
		if err = a.engine.archive.register(ctx.GetMetricsRegistry()); err != nil {
			return err
		}
	}
	return registerMetrics(ctx.GetMetricsRegistry(), a.engine.gate)
}

// resolve replaces placeholders and translates the rest, whose bounds the gate
// checks.
func (a *App) resolve() (settings, error) {
	s := settings{gate: gate.Config{
		ReserveTimeout:   time.Duration(a.ReserveTimeout),
		ResolveWithin:    time.Duration(a.ResolveWithin),
		Linger:           time.Duration(a.Linger),
		OrdersPerMessage: a.OrdersPerMessage,
		Waiting:          a.Waiting,
		Surplus:          a.Surplus,
		Streams:          a.Streams,
		StreamsPerBuyer:  a.StreamsPerBuyer,
		Buffer:           a.Buffer,
	}}
	var errs []error
	var err error
	if s.redis, err = address("redis", a.Redis, defaultRedis); err != nil {
		errs = append(errs, err)
	}
	if s.rabbitmq, err = address("rabbitmq", a.RabbitMQ, defaultRabbitMQ); err != nil {
		errs = append(errs, err)
	}
	if s.backend, err = address("backend", a.Backend, ""); err != nil {
		errs = append(errs, err)
	}
	if s.backendToken, err = address("backend_token", a.BackendToken, ""); err != nil {
		errs = append(errs, err)
	}
	if s.backendToken != "" && s.backend == "" {
		errs = append(errs, errors.New("backend_token: there is no backend to send it to"))
	}
	if a.limits, err = a.Limits.resolve(); err != nil {
		errs = append(errs, err)
	}
	return s, errors.Join(errs...)
}

// address resolves the placeholders of a URL or a token. Its errors show the placeholders
// and never what they stand for.
func address(option, value, fallback string) (string, error) {
	if value == "" {
		return fallback, nil
	}
	resolved, err := resolvePlaceholders(value)
	if err != nil {
		return "", fmt.Errorf("%s: %w; set what the placeholder names, or write the value itself", option, err)
	}
	return secret.Named(option+": what stands at "+value, resolved)
}

// Start hands the log and the limits of the config that now runs to the engine,
// which may have been made under an earlier one.
func (a *App) Start() error {
	a.engine.log.use(a.log)
	limits.begin(a, a.limits)
	a.engine.gate.Connect()
	return nil
}

// Stop does nothing: requests of this config may still be on their way, and the
// next one may use the same engine. Cleanup lets go of it.
func (*App) Stop() error { return nil }

// Cleanup lets go of the engine, if it was acquired; the last one to do so
// drains and closes it.
func (a *App) Cleanup() error {
	limits.end(a)
	if a.engine == nil {
		return nil
	}
	return release(a.settings)
}

// Interface guards
var (
	_ caddy.App          = (*App)(nil)
	_ caddy.Provisioner  = (*App)(nil)
	_ caddy.CleanerUpper = (*App)(nil)
)
