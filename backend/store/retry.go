package store

import (
	"context"
	"math/rand/v2"
	"time"

	"gorm.io/gorm"
)

// Bounds of the retries of one transaction; together about a second and a half.
const (
	maxTries   = 10
	firstPause = 5 * time.Millisecond
	maxPause   = 500 * time.Millisecond
)

// write runs do in a transaction, and runs all of it again when the database
// says that it lost against another one. do must start from nothing each time.
//
// A violated unique index is such a loss, too: do looks before it inserts, so
// somebody has inserted in between, and the next look sees it.
//
// now is the database's clock. While the tide is not right nothing is done, see
// Mind and Wary.
func (s *Store) write(ctx context.Context, do func(tx *gorm.DB, now time.Time) error) error {
	if err := s.tide.wait(ctx); err != nil {
		return err
	}
	return s.writeUnsure(ctx, do)
}

// writeUnsure is write that does not wait for the first word on the tide: for what
// would not be wrong if the database had forgotten something.
func (s *Store) writeUnsure(ctx context.Context, do func(tx *gorm.DB, now time.Time) error) error {
	err := s.transact(ctx, func(tx *gorm.DB) error {
		now, err := s.begin(tx)
		if err != nil {
			return err
		}
		return do(tx, now)
	})
	if err == nil {
		s.tide.wrote.Store(true)
	}
	return err
}

func (s *Store) transact(ctx context.Context, do func(tx *gorm.DB) error) error {
	db, cancel := s.session(ctx)
	defer cancel()
	for try := 1; ; try++ {
		err := db.Transaction(do, s.dialect.txOptions())
		if CauseOf(err) == ReadOnly {
			if pool, failed := s.db.DB(); failed == nil {
				s.dialect.leave(pool)
			}
		}
		if err == nil || try == maxTries || !s.dialect.conflict(err) && !s.dialect.duplicate(err) {
			return s.word(err)
		}
		s.log.DebugContext(ctx, "transaction lost against another one, trying again", "try", try, "error", err)
		if !pause(db.Statement.Context, try) {
			return s.word(err)
		}
	}
}

// pause waits before the next try, longer each time and at random, so that two
// losers do not meet again. False if ctx ended first.
func pause(ctx context.Context, try int) bool {
	longest := min(maxPause, firstPause<<try)
	timer := time.NewTimer(rand.N(longest))
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
