package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/spf13/cobra"
)

const migrateWithin = 10 * time.Minute

func newMigrate(a *app) *cobra.Command {
	c := &cobra.Command{
		Use:   "migrate",
		Short: "Bring the database schema up to date",
		Long: `migrate applies what is missing of the schema. It may run while backends work, and twice at once.
A schema that a newer seckilld has changed is left as it is: exit code 3.`,
		Example: "  seckilld migrate --database mysql://seckill:secret@127.0.0.1:3306/seckill",
		Args:    usage(cobra.NoArgs),
		RunE: func(c *cobra.Command, _ []string) error {
			return a.migrate(c.Context())
		},
	}
	a.jsonFlag(c)
	return c
}

func (a *app) migrate(ctx context.Context) (err error) {
	ctx, cancel := context.WithTimeout(ctx, migrateWithin)
	defer cancel()
	log, err := a.log(slog.LevelWarn)
	if err != nil {
		return err
	}
	s, err := a.openStore(ctx, log)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	applied, err := s.Migrate(ctx)
	if err != nil {
		return fmt.Errorf("bringing the schema up to date: %w", err)
	}
	if a.json {
		return a.printJSON(map[string]any{"applied": append([]string{}, applied...)})
	}
	for _, name := range applied {
		fmt.Fprintln(a.stdout, "applied", name)
	}
	fmt.Fprintln(a.stdout, "the schema is up to date")
	return nil
}
