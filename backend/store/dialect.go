package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"strings"

	"github.com/pressly/goose/v3"
	"gorm.io/gorm"
	"gorm.io/gorm/clause"
)

// dialect is what MySQL and SQLite do differently.
type dialect interface {
	// name is for errors and logs: "MySQL host:3306/database", "SQLite PATH".
	name() string
	// open makes the pool that all calls but Migrate use.
	open(ctx context.Context) (*sql.DB, error)
	gorm(pool *sql.DB) gorm.Dialector
	// leave gives up the connections to a server that has become read-only.
	leave(pool *sql.DB)
	// clock is an expression for the server's time in milliseconds since 1970.
	clock() string
	// txOptions of a transaction that writes.
	txOptions() *sql.TxOptions
	// ordersBy names the table orders in a FROM clause, read through an index.
	ordersBy(index string) string
	// passing locks the rows that a read finds and leaves out those that others
	// have locked.
	passing() clause.Locking
	// conflict says that err ends when the whole transaction is tried again.
	conflict(err error) bool
	// duplicate says that err is a violated unique index.
	duplicate(err error) bool

	// migrations names the folder of the SQL files and goose's word for the dialect.
	migrations() (folder string, d goose.Dialect)
	// forMigration makes a pool that may wait long for one statement, and keeps
	// other processes from migrating until release is called.
	forMigration(ctx context.Context) (pool *sql.DB, release func(), err error)
	// hasTable says whether the database has a table of this name.
	hasTable(ctx context.Context, db *gorm.DB, table string) (bool, error)
}

// The indices that reads are tied to.
const (
	indexPrimary = "PRIMARY"
	indexClaim   = "orders_claim"
	indexDue     = "orders_due"
)

func parse(address string, log *slog.Logger) (dialect, error) {
	// A path is taken as it is; it need not be a URL.
	if path, ok := strings.CutPrefix(address, "sqlite:"); ok {
		return newSQLite(path)
	}
	u, err := url.Parse(address)
	if err != nil {
		// The error of url.Parse repeats the address, and with it a password.
		return nil, errors.New("database address is not a URL; use mysql://user:password@host:3306/database " +
			"(with special characters of the password percent-encoded) or sqlite:PATH")
	}
	if u.Scheme != "mysql" {
		return nil, fmt.Errorf("database address has scheme %q; use mysql://user:password@host:3306/database or sqlite:PATH",
			u.Scheme)
	}
	return newMySQL(u, log)
}
