package store

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"path"
	"slices"

	"github.com/pressly/goose/v3"
)

// sqlFiles holds one folder of migrations a dialect, in the format of goose. Add a
// file with the next number; never change one that was released. On MySQL every
// statement commits by itself, so a file there must survive being run again.
//
//go:embed migrations
var sqlFiles embed.FS

// versionTable is goose's, so that its command line can be used as well.
const versionTable = "goose_db_version"

// Migrate brings the schema to the newest version and names the files that it has
// applied, none if there was nothing to do. Any number of processes may call it at
// once: one works, the others wait and find it done. Only ctx bounds it, because
// changing a large table takes long. A schema that is newer than this program is
// ErrNewerSchema, wrapped.
func (s *Store) Migrate(ctx context.Context) (applied []string, err error) {
	if applied, err = s.migrateTo(ctx, math.MaxInt64); err != nil {
		return applied, err
	}
	return applied, s.SchemaReady(ctx)
}

func (s *Store) migrateTo(ctx context.Context, version int64) (applied []string, err error) {
	pool, release, err := s.dialect.forMigration(ctx)
	if err != nil {
		return nil, fmt.Errorf("migrating %s: %w", s.dialect.name(), err)
	}
	defer release()
	folder, dialect := s.dialect.migrations()
	files, err := fs.Sub(sqlFiles, folder)
	if err != nil {
		return nil, fmt.Errorf("reading the migrations: %w", err)
	}
	// On SQLite another process may win between our look and our writing. A version
	// is noted once, so ours is undone, and the next look starts behind it.
	for tries := s.newestVersion() + 1; ; tries-- {
		provider, err := goose.NewProvider(dialect, pool, files, goose.WithTableName(versionTable),
			goose.WithDisableGlobalRegistry(true))
		if err != nil {
			return applied, fmt.Errorf("reading the migrations: %w", err)
		}
		results, err := provider.UpTo(ctx, version)
		if partial, ok := errors.AsType[*goose.PartialError](err); ok {
			results = partial.Applied // the rest another process was faster with
		}
		for _, r := range results {
			applied = append(applied, path.Base(r.Source.Path))
		}
		if err == nil {
			return applied, nil
		}
		if tries == 0 || ctx.Err() != nil {
			return applied, fmt.Errorf("migrating %s: %w", s.dialect.name(), err)
		}
	}
}

// SchemaReady is nil if the schema is what this program needs; ErrSchema or
// ErrNewerSchema, wrapped, says what to do if it is older or newer. Under a newer one
// everything is tried all the same, so that the programs of a cluster can be replaced
// one after the other; but nothing that fails then is an order's fault.
func (s *Store) SchemaReady(ctx context.Context) error {
	db, cancel := s.session(ctx)
	defer cancel()
	newest := s.newestVersion()
	var version int64
	known, err := s.dialect.hasTable(db.Statement.Context, db, versionTable)
	if err == nil && known {
		err = db.Table(versionTable).Select("COALESCE(MAX(version_id), 0)").
			Where("is_applied = ?", true).Scan(&version).Error
	}
	switch {
	case err != nil:
		return fmt.Errorf("reading the schema's version: %w", err)
	case version < newest:
		return fmt.Errorf("%w: it is at version %d, this program needs %d; run `seckilld migrate`",
			ErrSchema, version, newest)
	case version > newest:
		return fmt.Errorf("%w: it is at version %d, this program knows %d; install the version of seckilld that has changed it, or a newer one",
			ErrNewerSchema, version, newest)
	}
	return nil
}

// newestVersion is that of the last embedded file.
func (s *Store) newestVersion() int64 {
	folder, _ := s.dialect.migrations()
	entries, err := sqlFiles.ReadDir(folder)
	if err != nil {
		panic(err) // the folder is embedded
	}
	return slices.Max(versions(entries))
}

func versions(entries []fs.DirEntry) []int64 {
	all := make([]int64, len(entries))
	for i, e := range entries {
		v, err := goose.NumericComponent(e.Name())
		if err != nil {
			panic(err) // the names are embedded
		}
		all[i] = v
	}
	return all
}
