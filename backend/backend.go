// Package backend stores what the edges reserve: a consumer that writes orders
// into SQL, a relay for what was left behind, a fence for a Redis that may have
// forgotten some of it, a reconciler, the operator's commands, and an API.
// cmd/seckilld runs it as a daemon, standalone inside its one process.
package backend

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/seckill-edge/seckill/backend/activities"
	"github.com/seckill-edge/seckill/backend/api"
	"github.com/seckill-edge/seckill/backend/consume"
	"github.com/seckill-edge/seckill/backend/dead"
	"github.com/seckill-edge/seckill/backend/duty"
	"github.com/seckill-edge/seckill/backend/fence"
	"github.com/seckill-edge/seckill/backend/lease"
	"github.com/seckill-edge/seckill/backend/metrics"
	"github.com/seckill-edge/seckill/backend/pay"
	"github.com/seckill-edge/seckill/backend/promise"
	"github.com/seckill-edge/seckill/backend/reconcile"
	"github.com/seckill-edge/seckill/backend/relay"
	"github.com/seckill-edge/seckill/backend/settle"
	"github.com/seckill-edge/seckill/backend/store"
	"github.com/seckill-edge/seckill/backend/tide"
	"github.com/seckill-edge/seckill/internal/listen"
	"github.com/seckill-edge/seckill/internal/order"
	"github.com/seckill-edge/seckill/internal/queue"
)

// Config of a backend. Zero values mean the defaults.
type Config struct {
	// Listen is the address of the API and console, host:port; port 0 lets the
	// system choose. Empty: none is served, see Handler. An address that others
	// can reach needs a Token.
	Listen string
	// Token is the bearer token the API asks for. Empty: none, and only requests
	// to a loopback name are answered.
	Token string
	// Migrate brings the schema up to date as soon as the database answers.
	Migrate bool
	// AcceptRedisRisk says that a Redis which may evict or forget is meant, as in
	// development: it is shown and not warned about.
	AcceptRedisRisk bool
	// PreheatAhead is how long before its start an activity is preheated and opened;
	// KeepKeys, how long Redis keeps the keys of one that is archived.
	PreheatAhead, KeepKeys time.Duration
	// HealthWithin is how long servers may take to answer a look at what a backend needs
	// before they count as not answering. Default 2 s.
	HealthWithin time.Duration
	// Consume bounds batches and prefetch.
	Consume consume.Config
	// Promise is what the edges promise, and how it is kept.
	Promise promise.Config
}

// Deps are what a backend works with. All are required, and stay the caller's to
// close after Stop.
type Deps struct {
	Redis  redis.UniversalClient
	Broker queue.Broker
	Store  *store.Store
	Now    func() time.Time
	Random io.Reader
	Log    *slog.Logger
}

// Backend is one running backend. Several may work on the same stores.
type Backend struct {
	config Config
	deps   Deps

	metrics    *metrics.Metrics
	passes     *duty.Log
	publisher  queue.Publisher
	settler    *settle.Settler
	consumer   *consume.Consumer
	relay      *relay.Relay
	promise    *promise.Keeper
	reconciler *reconcile.Reconciler
	// id names this backend among all; inHand is what it works on.
	id         string
	inHand     func() int
	follower   *activities.Follower
	activities *activities.Service
	guard      *guard
	health     *health
	tide       *tide.Watch
	lease      *lease.Lease
	pay        *pay.Service
	handler    http.Handler

	server   *http.Server
	listener net.Listener

	started  bool
	stopOnce sync.Once
	// endDuties and endSettling end what runs in the background at once.
	endDuties   context.CancelFunc
	endSettling context.CancelFunc
	duties      sync.WaitGroup
	settling    sync.WaitGroup
	serving     sync.WaitGroup
}

const (
	// leaseTime is how long relay, fence and reconciler rest when their backend dies.
	leaseTime = 6 * time.Second
	// scrapeTimeout bounds what one scrape asks of the stores.
	scrapeTimeout = 3 * time.Second
)

// New checks the config and wires a backend. Nothing runs and nothing is dialled
// before Start.
func New(c Config, d Deps) (*Backend, error) {
	if c.Listen != "" {
		if err := CheckListen(c.Listen, c.Token); err != nil {
			return nil, err
		}
	}
	if c.Token != "" && len(c.Token) < minToken {
		d.Log.Warn("the API token can be guessed; make a longer one", "characters", len(c.Token), "want", minToken)
	}
	b := &Backend{config: c, deps: d, metrics: metrics.New()}
	b.passes = duty.NewLog(d.Log, b.metrics, d.Now)
	b.publisher = d.Broker.Publisher(queue.Options{Name: "seckill backend", Log: d.Log})
	c.Promise = c.Promise.WithDefaults()
	b.settler = settle.New(d.Redis, b.metrics, d.Log)
	b.settler.Within = c.Promise.Within
	b.consumer = consume.New(c.Consume, consume.Deps{
		Store:     d.Store,
		Redis:     d.Redis,
		Consumer:  d.Broker.Consumer(queue.Options{Name: "seckill backend", Prefetch: c.Consume.Prefetch, Log: d.Log}),
		Publisher: b.publisher,
		Settler:   b.settler,
		Metrics:   b.metrics,
		Log:       d.Log,
	})
	b.promise = promise.New(c.Promise, promise.Deps{
		Redis: d.Redis, Store: d.Store, Queue: d.Broker, Settler: b.settler, Stalled: b.consumer.Paused, Metrics: b.metrics, Log: d.Log,
	})
	b.inHand = func() int { return b.consumer.InHand() + b.settler.Pending() + b.promise.InHand() }
	var err error
	if b.id, err = order.NewID(d.Now(), d.Random); err != nil {
		return nil, fmt.Errorf("naming a backend: %w", err)
	}
	b.activities = activities.New(activities.Deps{
		Store: d.Store, Redis: d.Redis, Queue: d.Broker, Now: d.Now, Random: d.Random, Log: d.Log, InHand: b.inHand, Self: b.id,
		Ahead: c.PreheatAhead, KeepKeys: c.KeepKeys, AcceptRedisRisk: c.AcceptRedisRisk,
	})
	b.follower = activities.NewFollower(b.activities)
	b.tide = tide.NewWatch(tide.Deps{Redis: d.Redis, Store: d.Store, Log: d.Log})
	b.guard = newGuard(b.activities, b.metrics, b.passes, d.Log, c.AcceptRedisRisk)
	b.health = newHealth(b.NotReady, cmp.Or(c.HealthWithin, 2*time.Second), b.passes, d.Log, d.Now)
	b.relay = relay.New(relay.Deps{Redis: d.Redis, Store: d.Store, Publisher: b.publisher, Metrics: b.metrics, Log: d.Log})
	b.reconciler = reconcile.New(reconcile.Deps{
		Redis: d.Redis, Store: d.Store, Queue: d.Broker, Relay: b.relay, Settler: b.settler, Metrics: b.metrics, Log: d.Log,
		Fence: fence.New(fence.Deps{
			Redis: d.Redis, Store: d.Store, Queue: d.Broker, Relay: b.relay, Metrics: b.metrics, Log: d.Log, Owner: b.id,
		}),
	})
	if b.lease, err = lease.New(d.Redis, "relay", leaseTime, d.Random, d.Log); err != nil {
		return nil, err
	}
	b.pay = pay.New(pay.Deps{Store: d.Store, Tell: b.tellRedis, Metrics: b.metrics, Log: d.Log})
	b.metrics.Behind(func() bool { return errors.Is(b.tide.Err(), store.ErrBehind) })
	b.metrics.Watch(&source{Backend: b, known: map[string]metrics.Stock{}}, scrapeTimeout)
	b.handler = api.New(api.Deps{
		Activities: b.activities, Reconcile: b.Reconcile, Store: d.Store,
		Dead:     dead.New(dead.Deps{Broker: d.Broker, Store: d.Store, Redis: d.Redis, Log: d.Log}),
		Pay:      b.pay,
		Registry: b.metrics.Registry, Ready: b.NotReady, Warnings: b.Warnings, Token: c.Token, Log: d.Log,
	})
	return b, nil
}

// minToken is how many characters a token has at least where others can try them.
const minToken = 16

// CheckListen refuses an address that cannot be listened on, and one that other
// machines can reach when there is no token, or one that can be guessed.
func CheckListen(listen, token string) error {
	_, port, err := net.SplitHostPort(listen)
	if err != nil {
		return fmt.Errorf("listen address %q: must be host:port, like 127.0.0.1:9680", listen)
	}
	if _, err := strconv.ParseUint(port, 10, 16); err != nil {
		return fmt.Errorf("listen address %q: its port must be 0 to 65535", listen)
	}
	if token == "" && !api.Loopback(listen) {
		return fmt.Errorf("listen address %q can be reached from other machines: set an API token (SECKILL_API_TOKEN or SECKILL_API_TOKEN_FILE), or listen on 127.0.0.1", listen)
	}
	if len(token) < minToken && !api.Loopback(listen) {
		return fmt.Errorf("listen address %q can be reached from other machines, and the API token has %d characters: it must have %d or more, such as `openssl rand -hex 16` makes; or listen on 127.0.0.1", listen, len(token), minToken)
	}
	return nil
}

// Handler is the API and console, for a caller that serves them himself.
func (b *Backend) Handler() http.Handler { return b.handler }

// Activities is what an operator does with a sale.
func (b *Backend) Activities() *activities.Service { return b.activities }

// Addr is the address that is listened on, after Start; empty if none.
func (b *Backend) Addr() string {
	if b.listener == nil {
		return ""
	}
	return b.listener.Addr().String()
}

// Start begins to work and returns. Servers that are away are no error: they are
// tried for ever, and NotReady names them. It is called once; ctx bounds the
// start only.
func (b *Backend) Start(ctx context.Context) error {
	if b.config.Listen != "" {
		listener, err := listen.TCP(ctx, "--listen", b.config.Listen)
		if err != nil {
			return err
		}
		b.listener = listener
		b.serve()
	}
	b.started = true
	b.deps.Store.Wary()
	_ = b.publisher.Ready() // it begins to connect now, not with the first message
	settling, endSettling := context.WithCancel(context.Background())
	duties, endDuties := context.WithCancel(context.Background())
	b.endSettling, b.endDuties = endSettling, endDuties
	b.settling.Go(func() { b.settler.Run(settling) })
	if b.config.Migrate {
		b.duties.Go(func() { b.migrate(duties) })
	}
	b.duties.Go(func() { b.present(duties) })
	b.duties.Go(func() { b.guard.run(duties) })
	b.duties.Go(func() { b.health.run(duties) })
	b.duties.Go(func() { b.tide.Run(duties, b.teller(duties, duty.Tide)) })
	b.duties.Go(func() {
		b.lease.Run(duties, func(ctx context.Context, _ int64) { b.tide.While(ctx, b.work) })
	})
	b.consumer.Start()
	return nil
}

func (b *Backend) serve() {
	b.server = &http.Server{
		Handler:           b.handler,
		ReadHeaderTimeout: 5 * time.Second,
		ReadTimeout:       15 * time.Second,
		WriteTimeout:      30 * time.Second,
		IdleTimeout:       time.Minute,
		MaxHeaderBytes:    16 << 10,
		ErrorLog:          slog.NewLogLogger(b.deps.Log.Handler(), slog.LevelWarn),
	}
	b.serving.Go(func() {
		if err := b.server.Serve(b.listener); !errors.Is(err, http.ErrServerClosed) {
			b.deps.Log.Error("api: stopped serving", "error", err)
		}
	})
}

// settleWait is how long Stop waits for Redis to take what is stored. The
// reconciler of the next backend settles the rest.
const settleWait = 3 * time.Second

// Stop ends the backend in the order in which work flows, so that nothing is
// taken that cannot be finished:
//
//  1. the consumer takes nothing more, stores its batch and acknowledges it;
//  2. the settler tells Redis of it;
//  3. relay, fence and reconciler end their passes, and the lease is given back;
//  4. the publisher closes;
//  5. HTTP answers what it was asked, last, so that /metrics and /readyz can be
//     watched until the end.
//
// What ctx leaves no time for is delivered again, or settled by the next
// backend: nothing is lost. Stop returns when all has ended; it may be called
// twice, also at once, and without Start.
func (b *Backend) Stop(ctx context.Context) {
	b.stopOnce.Do(func() { b.stop(ctx) })
}

func (b *Backend) stop(ctx context.Context) {
	if b.started {
		b.consumer.Stop(ctx)
		b.settler.Close()
		b.endAfter(ctx, &b.settling, b.endSettling)
		b.endDuties()
		b.duties.Wait()
	}
	if err := b.publisher.Close(ctx); err != nil {
		b.deps.Log.Warn("closing the publisher", "error", err)
	}
	if b.server != nil {
		if err := b.server.Shutdown(ctx); err != nil {
			_ = b.server.Close() // the requests' fault, not the listener's
		}
		b.serving.Wait()
	}
}

// endAfter waits for the settler, at most settleWait and ctx, then ends it.
func (b *Backend) endAfter(ctx context.Context, running *sync.WaitGroup, end context.CancelFunc) {
	ctx, cancel := context.WithTimeout(ctx, settleWait)
	defer cancel()
	unbind := context.AfterFunc(ctx, end)
	running.Wait()
	unbind()
	end()
}
