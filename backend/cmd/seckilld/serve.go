package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/spf13/cobra"

	"github.com/seckill-edge/seckill/backend"
)

// stopWithin bounds a clean stop; what it leaves undone the next backend does.
const stopWithin = 20 * time.Second

func newServe(a *app) *cobra.Command {
	var listen string
	var migrate bool
	c := &cobra.Command{
		Use:   "serve",
		Short: "Store orders, relay what was left behind, and serve API and console",
		Long: `serve takes reserved orders from RabbitMQ, stores them in SQL and tells Redis. It
starts with any server away, tries for ever, and says on /readyz what is missing.

It serves the console on /, the JSON API under /api/ (described in
/api/openapi.json), /metrics, /healthz and /readyz. The API asks for the token in
SECKILL_API_TOKEN or SECKILL_API_TOKEN_FILE; without one it answers to this
machine only. SIGINT or SIGTERM ends it cleanly, a second one at once.`,
		Example: `  seckilld serve --database sqlite:seckill.db --migrate
  SECKILL_DATABASE_URL=mysql://seckill:secret@db:3306/seckill SECKILL_API_TOKEN_FILE=/run/secrets/token seckilld serve --listen 0.0.0.0:9680`,
		Args: usage(cobra.NoArgs),
		RunE: func(c *cobra.Command, _ []string) error {
			return a.serve(c.Context(), listen, migrate)
		},
	}
	c.Flags().StringVar(&listen, "listen", "127.0.0.1:9680", "`host:port` of API and console; port 0 lets the system choose")
	c.Flags().BoolVar(&migrate, "migrate", false, "bring the database schema up to date first")
	return c
}

func (a *app) serve(ctx context.Context, listen string, migrate bool) (err error) {
	log, err := a.log(slog.LevelInfo)
	if err != nil {
		return err
	}
	token, err := a.secret("SECKILL_API_TOKEN")
	if err != nil {
		return err
	}
	if err := backend.CheckListen(listen, token); err != nil {
		return fmt.Errorf("%w: --listen: %w", errUsage, err)
	}
	s, err := a.openServers(ctx, log, "seckilld")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.close()) }()
	b, err := backend.New(backend.Config{Listen: listen, Token: token, Migrate: migrate}, backend.Deps{
		Redis: s.redis, Broker: s.broker, Store: s.store, Now: time.Now, Random: rand.Reader, Log: log,
	})
	if err != nil {
		return err
	}
	if err := b.Start(ctx); err != nil {
		a.stop(b)
		return err
	}
	fmt.Fprintf(a.stdout, "console http://%s/\n", b.Addr())
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
