package store

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/seckill-edge/seckill/internal/servicetest"
)

var allMigrations = []string{"00001_activities.sql", "00002_orders.sql", "00003_payments.sql", "00004_life.sql", "00005_tide.sql"}

func TestMigrate(t *testing.T) {
	for _, d := range databases() {
		t.Run(d.name, func(t *testing.T) {
			s := open(t, d.fresh(t))
			err := s.SchemaReady(t.Context())
			require.ErrorIs(t, err, ErrSchema)
			require.ErrorContains(t, err, "seckilld migrate")
			require.True(t, IsTransient(err), "somebody will migrate")
			known, err := s.dialect.hasTable(t.Context(), s.db, versionTable)
			require.NoError(t, err)
			require.False(t, known, "asking changes nothing")

			applied, err := s.Migrate(t.Context())
			require.NoError(t, err)
			require.Equal(t, allMigrations, applied)
			require.NoError(t, s.SchemaReady(t.Context()))

			applied, err = s.Migrate(t.Context())
			require.NoError(t, err)
			require.Empty(t, applied)
		})
	}
}

func TestMigrateAnOlderSchema(t *testing.T) {
	for _, d := range databases() {
		t.Run(d.name, func(t *testing.T) {
			s := open(t, d.fresh(t))
			applied, err := s.migrateTo(t.Context(), 1)
			require.NoError(t, err)
			require.Equal(t, allMigrations[:1], applied)
			a := Activity{ID: "old", ProductID: "P_old"}
			require.NoError(t, s.db.Exec(`INSERT INTO activities (id, product_id, live, title, start_ms, end_ms, total, limit_per_user,
				pay_window_ms, reserved, state, created_ms) VALUES ('old', 'P_old', 'P_old', '', 0, 1, 10, 1, 0, 0, 'open', 0)`).Error)
			err = s.SchemaReady(t.Context())
			require.ErrorIs(t, err, ErrSchema)
			require.ErrorContains(t, err, "at version 1")

			applied, err = s.Migrate(t.Context())
			require.NoError(t, err)
			require.Equal(t, allMigrations[1:], applied)
			require.NoError(t, s.SchemaReady(t.Context()))
			_, err = s.SaveOrders(t.Context(), a.crowd(1))
			require.NoError(t, err)
			require.EqualValues(t, 1, requireExact(t, s, a.ID))
		})
	}
}

// Neither migrating nor being ready is what it looks like under a newer schema.
func TestANewerSchemaIsNamed(t *testing.T) {
	onEach(t, func(t *testing.T, address string) {
		s := open(t, address)
		require.NoError(t, s.db.Exec("INSERT INTO "+versionTable+" (version_id, is_applied) VALUES (99, true)").Error)
		err := s.SchemaReady(t.Context())
		require.ErrorIs(t, err, ErrNewerSchema)
		require.ErrorContains(t, err, fmt.Sprintf("at version 99, this program knows %d", s.newestVersion()))
		applied, err := s.Migrate(t.Context())
		require.ErrorIs(t, err, ErrNewerSchema)
		require.Empty(t, applied)
	})
}

// A crash may come between the tables and the note of their version where every
// statement commits by itself.
func TestMigrateAgainAfterACrash(t *testing.T) {
	onEachServer(t, func(t *testing.T, _ *servicetest.MariaDB, address string) {
		s := open(t, address)
		require.NoError(t, s.db.Exec("DELETE FROM "+versionTable+" WHERE version_id > 0").Error)
		applied, err := s.Migrate(t.Context())
		require.NoError(t, err)
		require.Equal(t, allMigrations, applied)
	})
}

func TestManyMigrateAtOnce(t *testing.T) {
	for _, d := range databases() {
		t.Run(d.name, func(t *testing.T) {
			address := d.fresh(t)
			const backends = 6
			applied := make([][]string, backends)
			group, ctx := errgroup.WithContext(t.Context())
			for i := range backends {
				s := open(t, address)
				group.Go(func() (err error) {
					if applied[i], err = s.Migrate(ctx); err != nil {
						return err
					}
					return s.SchemaReady(ctx)
				})
			}
			require.NoError(t, group.Wait())
			var all []string
			for _, names := range applied {
				all = append(all, names...)
			}
			require.ElementsMatch(t, allMigrations, all, "each once")
		})
	}
}

func TestMigrateEndsWithItsContext(t *testing.T) {
	for _, d := range databases() {
		t.Run(d.name, func(t *testing.T) {
			s := open(t, d.fresh(t))
			ctx, cancel := context.WithCancel(t.Context())
			cancel()
			_, err := s.Migrate(ctx)
			require.ErrorIs(t, err, context.Canceled)
		})
	}
}
