// Package store keeps activities and orders in SQL: MySQL or MariaDB in
// production, SQLite inside a single process. It is the only place that knows
// GORM and SQL.
//
// Its centre is SaveOrders, which stores a batch of orders in one transaction,
// exactly once however often and by however many backends it is delivered, and
// never beyond the total of the activity.
package store

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"gorm.io/gorm"
	"gorm.io/gorm/logger"
)

// callTimeout bounds every call except Migrate, retries included. A caller's
// context may end it sooner.
const callTimeout = 30 * time.Second

// Store is an open database. All methods are safe for concurrent use, also by
// several processes on one database.
type Store struct {
	db      *gorm.DB
	dialect dialect
	log     *slog.Logger
	tide    tide
	// now, unless it is nil, is believed in place of all clocks.
	now func() time.Time
}

// Option changes a Store that New makes.
type Option func(*Store)

// WithClock sets a clock in place of the database's, which orders go by, and of this
// machine's.
func WithClock(now func() time.Time) Option {
	return func(s *Store) { s.now = now }
}

// New reads address and prepares a pool of connections:
//
//	mysql://user:password@host:3306/database   MySQL 8 or MariaDB 10.6 and newer;
//	                                           ?tls=true, skip-verify or preferred
//	sqlite:PATH                                a file, made when it is missing
//
// A MySQL server need not be up: the first call that needs it dials. A SQLite
// file is opened at once, within ctx. No error repeats the address, which may
// hold a password. log may be nil.
func New(ctx context.Context, address string, log *slog.Logger, options ...Option) (*Store, error) {
	s := &Store{
		log: cmp.Or(log, slog.New(slog.DiscardHandler)),
	}
	for _, o := range options {
		o(s)
	}
	var err error
	if s.dialect, err = parse(address, s.log); err != nil {
		return nil, err
	}
	pool, err := s.dialect.open(ctx)
	if err != nil {
		return nil, fmt.Errorf("opening %s: %w", s.dialect.name(), err)
	}
	s.db, err = gorm.Open(worded{s.dialect.gorm(pool).(dialector), s.dialect.name()}, &gorm.Config{
		TranslateError: true,
		// What must be atomic here says so itself.
		SkipDefaultTransaction: true,
		DisableAutomaticPing:   true,
		// Errors are returned, and statements hold user ids.
		Logger: logger.Discard,
	})
	if err != nil {
		return nil, errors.Join(fmt.Errorf("opening %s: %w", s.dialect.name(), err), pool.Close())
	}
	return s, nil
}

// Ping says whether the database answers.
func (s *Store) Ping(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	pool, err := s.db.DB()
	if err == nil {
		err = pool.PingContext(ctx)
	}
	if err != nil {
		return fmt.Errorf("asking the database: %w", s.word(err))
	}
	return nil
}

// word is err, worded as those that GORM returns.
func (s *Store) word(err error) error { return worded{name: s.dialect.name()}.Translate(err) }

// closeWithin bounds the last word on the tide.
const closeWithin = time.Second

// Close lets the tide rise if it has to, and closes the connections. Calls under way
// fail.
func (s *Store) Close() error {
	if s.tide.wrote.Load() {
		ctx, cancel := context.WithTimeout(context.Background(), closeWithin)
		defer cancel()
		_, _ = s.Rise(ctx) // without it a restore may go unnoticed; all else does its part
	}
	pool, err := s.db.DB()
	if err == nil {
		err = pool.Close()
	}
	if err != nil {
		return fmt.Errorf("closing %s: %w", s.dialect.name(), err)
	}
	return nil
}

// session is a GORM session bound to ctx and the time-out of one call.
func (s *Store) session(ctx context.Context) (*gorm.DB, context.CancelFunc) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	return s.db.WithContext(ctx), cancel
}

// stamp is the time for what nothing is decided by.
func (s *Store) stamp() time.Time {
	if s.now != nil {
		return s.now()
	}
	return time.Now()
}
