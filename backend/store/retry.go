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
func (s *Store) write(ctx context.Context, do func(tx *gorm.DB) error) error {
	db, cancel := s.session(ctx)
	defer cancel()
	for try := 1; ; try++ {
		err := db.Transaction(do, s.dialect.txOptions())
		if err == nil || try == maxTries || !s.dialect.conflict(err) && !s.dialect.duplicate(err) {
			return err
		}
		s.log.DebugContext(ctx, "transaction lost against another one, trying again", "try", try, "error", err)
		if !pause(db.Statement.Context, try) {
			return err
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
