package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"time"

	"github.com/spf13/cobra"

	"github.com/seckill-edge/seckill/backend"
	"github.com/seckill-edge/seckill/backend/activities"
	"github.com/seckill-edge/seckill/backend/promise"
)

// stopWithin bounds a clean stop; what it leaves undone the next backend does.
const stopWithin = 20 * time.Second

func newServe(a *app) *cobra.Command {
	var listen string
	var migrate, acceptRisk bool
	var ahead, keepKeys time.Duration
	var keep promise.Config
	c := &cobra.Command{
		Use:   "serve",
		Short: "Store orders, relay what was left behind, and serve API and console",
		Long: `serve takes reserved orders from RabbitMQ, stores them in SQL and tells Redis. It
starts with any server away, tries for ever, and says on /readyz what is missing.

It preheats and opens activities ahead of their start, closes them after their end,
and archives them when every order is settled.

It serves the console on /, the JSON API under /api/ (described in
/api/openapi.json), /metrics, /healthz and /readyz. The API asks for the token in
SECKILL_API_TOKEN or SECKILL_API_TOKEN_FILE; without one it answers to this
machine only. SIGINT or SIGTERM ends it cleanly, a second one at once.`,
		Example: `  seckilld serve --database sqlite:seckill.db --migrate
  SECKILL_DATABASE_URL=mysql://seckill:secret@db:3306/seckill SECKILL_API_TOKEN_FILE=/run/secrets/token seckilld serve --listen 0.0.0.0:9680`,
		Args: usage(cobra.NoArgs),
		RunE: func(c *cobra.Command, _ []string) error {
			if err := keep.Validate(); err != nil {
				return fmt.Errorf("%w: %w", errUsage, err)
			}
			for name, d := range map[string]time.Duration{"preheat-ahead": ahead, "keep-keys": keepKeys} {
				if d < time.Second {
					return fmt.Errorf("%w: --%s %s: must be 1s or more", errUsage, name, d)
				}
			}
			return a.serve(c.Context(), backend.Config{
				Listen: listen, Migrate: migrate, Promise: keep, PreheatAhead: ahead, KeepKeys: keepKeys, AcceptRedisRisk: acceptRisk,
			})
		},
	}
	c.Flags().StringVar(&listen, "listen", "127.0.0.1:9680", "`host:port` of API and console; port 0 lets the system choose")
	c.Flags().BoolVar(&migrate, "migrate", false, "bring the database schema up to date first")
	c.Flags().DurationVar(&keep.Within, "resolve-within", 30*time.Second, "what the edges promise (their resolve_within), 5s to 1h")
	c.Flags().DurationVar(&keep.After, "store-directly-after", 0, "age at which an order the broker has not delivered is stored straight from Redis (0: half of --resolve-within)")
	c.Flags().DurationVar(&ahead, "preheat-ahead", activities.DefaultAhead, "how long before its start an activity is preheated and opened; it sells nothing before its start")
	c.Flags().DurationVar(&keepKeys, "keep-keys", activities.DefaultKeepKeys, "how long Redis keeps what it knows of an activity that is archived; edges without a backend tell orders' states from it")
	c.Flags().BoolVar(&acceptRisk, "accept-redis-risk", false, "open activities though Redis evicts keys, does not persist or is too small; for development")
	return c
}

// serve runs a backend until ctx ends. The token is the environment's.
func (a *app) serve(ctx context.Context, config backend.Config) (err error) {
	log, err := a.log(slog.LevelInfo)
	if err != nil {
		return err
	}
	if config.Token, err = a.secret("SECKILL_API_TOKEN"); err != nil {
		return err
	}
	if err := backend.CheckListen(config.Listen, config.Token); err != nil {
		return fmt.Errorf("%w: --listen: %w", errUsage, err)
	}
	s, err := a.openServers(ctx, log, "seckilld")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.close()) }()
	b, err := backend.New(config, backend.Deps{
		Redis: s.redis, Broker: s.broker, Store: s.store, Now: time.Now, Random: rand.Reader, Log: log,
	})
	if err != nil {
		return err
	}
	if err := b.Start(ctx); err != nil {
		a.stop(b)
		return err
	}
	fmt.Fprintf(a.stdout, "console http://%s/\n", reachable(b.Addr()))
	<-ctx.Done()
	log.Info("stopping; a second signal ends it at once")
	a.stop(b)
	return nil
}

func (a *app) stop(b *backend.Backend) {
	ctx, cancel := context.WithTimeout(context.Background(), stopWithin)
	defer cancel()
	b.Stop(ctx)
}

// reachable is an address that a browser on this machine can open: one that is
// listened on everywhere is none.
func reachable(addr string) string {
	at, err := netip.ParseAddrPort(addr)
	if err != nil || !at.Addr().IsUnspecified() {
		return addr
	}
	return netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 0, 0, 1}), at.Port()).String()
}
