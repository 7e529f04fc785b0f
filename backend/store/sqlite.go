package store

import (
	"context"
	"database/sql"
	"errors"
	"net/url"
	"strings"

	gormsqlite "github.com/libtnb/sqlite"
	"github.com/pressly/goose/v3"
	"gorm.io/gorm"
	"gorm.io/gorm/clause"
	modernc "modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"
)

// sqliteDialect is SQLite in a file.
type sqliteDialect struct {
	path string
}

func newSQLite(path string) (*sqliteDialect, error) {
	if path == "" || strings.HasPrefix(path, ":memory:") {
		return nil, errors.New("sqlite address lacks a file; use sqlite:PATH")
	}
	return &sqliteDialect{path: path}, nil
}

func (d *sqliteDialect) name() string {
	return "SQLite " + d.path
}

// open makes a pool of one connection, so that writers of this process queue in
// the pool, in order. Other processes are waited for by busy_timeout. IMMEDIATE
// takes the write lock at the start: one that is taken after a read fails at once
// when somebody else has written meanwhile. Commits are synced (the default).
func (d *sqliteDialect) open(ctx context.Context) (*sql.DB, error) {
	file := (&url.URL{Path: d.path}).EscapedPath()
	pool, err := sql.Open("sqlite", "file:"+file+
		"?_txlock=immediate&_busy_timeout=5000&_pragma=journal_mode(WAL)")
	if err != nil {
		return nil, err
	}
	pool.SetMaxOpenConns(1)
	if err := pool.PingContext(ctx); err != nil {
		return nil, errors.Join(err, pool.Close())
	}
	return pool, nil
}

func (d *sqliteDialect) gorm(pool *sql.DB) gorm.Dialector {
	return gormsqlite.New(gormsqlite.Config{Conn: pool})
}

// leave: a file has no other primary.
func (d *sqliteDialect) leave(*sql.DB) {}

func (d *sqliteDialect) clock() string {
	return "CAST(ROUND((julianday('now') - 2440587.5) * 86400000) AS INTEGER)"
}

func (d *sqliteDialect) txOptions() *sql.TxOptions { return nil }

func (d *sqliteDialect) ordersBy(string) string { return "orders" }

// passing asks for nothing: a transaction that writes has the whole file.
func (d *sqliteDialect) passing() clause.Locking {
	return clause.Locking{Strength: clause.LockingStrengthUpdate}
}

func (d *sqliteDialect) conflict(err error) bool {
	e, ok := errors.AsType[*modernc.Error](err)
	if !ok {
		return false
	}
	// The low byte is the primary code.
	switch e.Code() & 0xff {
	case sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED:
		return true
	}
	return false
}

func (d *sqliteDialect) duplicate(err error) bool {
	e, ok := errors.AsType[*modernc.Error](err)
	if !ok {
		return false
	}
	switch e.Code() {
	case sqlite3.SQLITE_CONSTRAINT_UNIQUE, sqlite3.SQLITE_CONSTRAINT_PRIMARYKEY, sqlite3.SQLITE_CONSTRAINT_ROWID:
		return true
	}
	return false
}

func (d *sqliteDialect) migrations() (string, goose.Dialect) {
	return "migrations/sqlite", goose.DialectSQLite3
}

// forMigration takes no lock: each migration is one transaction, and Migrate
// looks again when another process was faster.
func (d *sqliteDialect) forMigration(ctx context.Context) (*sql.DB, func(), error) {
	pool, err := d.open(ctx)
	if err != nil {
		return nil, nil, err
	}
	return pool, func() { _ = pool.Close() }, nil
}

func (d *sqliteDialect) hasTable(ctx context.Context, db *gorm.DB, table string) (bool, error) {
	var n int64
	err := db.WithContext(ctx).Raw("SELECT COUNT(*) FROM sqlite_master WHERE type = 'table' AND name = ?", table).
		Scan(&n).Error
	return n > 0, err
}
