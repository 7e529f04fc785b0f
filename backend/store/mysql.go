package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"net/url"
	"slices"
	"strings"
	"time"

	mysqldriver "github.com/go-sql-driver/mysql"
	"github.com/pressly/goose/v3"
	gormmysql "gorm.io/driver/mysql"
	"gorm.io/gorm"
	"gorm.io/gorm/clause"
)

// Bounds of a MySQL pool. A server's default is 151 connections for everybody.
const (
	mysqlConns       = 16
	mysqlDialTimeout = 3 * time.Second
	// mysqlIOTimeout is longer than mysqlLockWait, so that a wait for a lock ends
	// with an answer of the server, not with a lost connection.
	mysqlIOTimeout = 10 * time.Second
	mysqlLockWait  = 5 * time.Second
)

// mysqlDialect is MySQL and MariaDB.
type mysqlDialect struct {
	config *mysqldriver.Config
}

func newMySQL(u *url.URL, log *slog.Logger) (*mysqlDialect, error) {
	database := strings.TrimPrefix(u.Path, "/")
	if u.Hostname() == "" || database == "" || strings.Contains(database, "/") {
		return nil, errors.New("mysql address lacks host or database; use mysql://user:password@host:3306/database")
	}
	c := mysqldriver.NewConfig()
	c.Net = "tcp"
	c.Addr = u.Host
	if u.Port() == "" {
		c.Addr = net.JoinHostPort(u.Hostname(), "3306")
	}
	c.DBName = database
	c.User = u.User.Username()
	c.Passwd, _ = u.User.Password()
	for _, key := range slices.Sorted(maps.Keys(u.Query())) {
		if key != "tls" {
			return nil, fmt.Errorf("mysql address has parameter %q; only tls is known", key)
		}
		switch c.TLSConfig = u.Query().Get(key); c.TLSConfig {
		case "true", "false", "skip-verify", "preferred":
		default:
			return nil, fmt.Errorf("mysql address has tls=%q; use true, false, skip-verify or preferred", c.TLSConfig)
		}
	}
	c.Timeout, c.ReadTimeout, c.WriteTimeout = mysqlDialTimeout, mysqlIOTimeout, mysqlIOTimeout
	// One round trip a statement instead of three.
	c.InterpolateParams = true
	c.Params = map[string]string{
		// A server that is not strict would cut values that are too long.
		"sql_mode":                 "'STRICT_ALL_TABLES,NO_ENGINE_SUBSTITUTION'",
		"innodb_lock_wait_timeout": fmt.Sprint(int(mysqlLockWait.Seconds())),
	}
	if err := c.Apply(mysqldriver.Charset("utf8mb4", "")); err != nil {
		return nil, fmt.Errorf("setting the character set: %w", err)
	}
	c.Logger = driverLog{log}
	return &mysqlDialect{config: c}, nil
}

// driverLog takes what the driver would print to stderr. It only repeats errors
// that the calls return.
type driverLog struct{ log *slog.Logger }

func (l driverLog) Print(v ...any) {
	l.log.Debug("mysql driver", "message", fmt.Sprint(v...))
}

func (d *mysqlDialect) name() string {
	return "MySQL " + d.config.Addr + "/" + d.config.DBName
}

func (d *mysqlDialect) open(context.Context) (*sql.DB, error) {
	connector, err := mysqldriver.NewConnector(d.config)
	if err != nil {
		return nil, err
	}
	pool := sql.OpenDB(connector)
	pool.SetMaxOpenConns(mysqlConns)
	pool.SetMaxIdleConns(mysqlConns)
	pool.SetConnMaxIdleTime(time.Minute)
	// A proxy or a failover in front of the server is noticed within this time.
	pool.SetConnMaxLifetime(5 * time.Minute)
	return pool, nil
}

// leave closes the idle connections to a server that has become read-only, as after a
// failover: the next ones go to the new primary. The driver could do so itself, but would
// tell of a lost connection then.
func (d *mysqlDialect) leave(pool *sql.DB) {
	pool.SetMaxIdleConns(0)
	pool.SetMaxIdleConns(mysqlConns)
}

func (d *mysqlDialect) gorm(pool *sql.DB) gorm.Dialector {
	return gormmysql.New(gormmysql.Config{
		Conn: pool,
		// GORM would ask the server for its version, and fail while it is down.
		// What it learns from it is used by its migrator and for RETURNING only.
		SkipInitializeWithVersion: true,
		DisableWithReturning:      true,
	})
}

// clock is the time of the statement, whatever the server's time zone: UNIX_TIMESTAMP
// of a local time is an hour off when the clocks are put back.
func (d *mysqlDialect) clock() string {
	return "TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(3)) DIV 1000"
}

func (d *mysqlDialect) txOptions() *sql.TxOptions {
	return &sql.TxOptions{Isolation: sql.LevelReadCommitted}
}

// ordersBy ties the read to an index: the statistics of a table that has just
// grown from nothing to millions let the optimiser believe in a full scan.
func (d *mysqlDialect) ordersBy(index string) string {
	return "orders FORCE INDEX (" + index + ")"
}

func (d *mysqlDialect) passing() clause.Locking {
	return clause.Locking{Strength: clause.LockingStrengthUpdate, Options: clause.LockingOptionsSkipLocked}
}

func (d *mysqlDialect) conflict(err error) bool {
	e, ok := errors.AsType[*mysqldriver.MySQLError](err)
	if !ok {
		return false
	}
	switch e.Number {
	case 1213, // deadlock, or a certification failure of a Galera cluster
		1205, // lock wait timed out; the server has undone the statement only
		1020: // the row has changed since it was read
		return true
	}
	return false
}

func (d *mysqlDialect) duplicate(err error) bool {
	e, ok := errors.AsType[*mysqldriver.MySQLError](err)
	return ok && e.Number == 1062
}

func (d *mysqlDialect) migrations() (string, goose.Dialect) {
	return "migrations/mysql", goose.DialectMySQL
}

// forMigration takes a named lock that ends with its connection: a process that
// dies while migrating stands in nobody's way.
func (d *mysqlDialect) forMigration(ctx context.Context) (*sql.DB, func(), error) {
	patient := d.config.Clone()
	patient.ReadTimeout = 0
	patient.ParseTime = true // goose reads time stamps
	connector, err := mysqldriver.NewConnector(patient)
	if err != nil {
		return nil, nil, err
	}
	pool := sql.OpenDB(connector)
	holder, err := pool.Conn(ctx)
	if err != nil {
		return nil, nil, errors.Join(err, pool.Close())
	}
	release := func() {
		_ = holder.Close()
		_ = pool.Close()
	}
	// Lock names belong to the whole server and have at most 64 characters.
	const take = "SELECT COALESCE(GET_LOCK(CONCAT('seckill.migrate.', SHA1(DATABASE())), 60), 0)"
	var taken int
	if err := holder.QueryRowContext(ctx, take).Scan(&taken); err != nil {
		release()
		return nil, nil, fmt.Errorf("taking the migration lock: %w", err)
	}
	if taken != 1 {
		release()
		return nil, nil, errors.New("another process has been migrating for a minute; try again when it has finished")
	}
	return pool, release, nil
}

func (d *mysqlDialect) hasTable(ctx context.Context, db *gorm.DB, table string) (bool, error) {
	var n int64
	err := db.WithContext(ctx).Raw("SELECT COUNT(*) FROM information_schema.tables "+
		"WHERE table_schema = DATABASE() AND table_name = ?", table).Scan(&n).Error
	return n > 0, err
}
