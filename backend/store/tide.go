package store

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"
)

// Errors of everything that moves orders or units, while the tide is not right.
var (
	// ErrBehind: the database has forgotten what it had confirmed. Whatever is decided
	// on what is left of it may be wrong.
	ErrBehind = errors.New("the database has forgotten what it had confirmed: it was restored from a backup, or has lost its last moments; nothing is decided until `seckilld recover` has run")
	// ErrUnsure: nobody has said yet how high the tide was, see Wary.
	ErrUnsure = errors.New("it is not known yet whether the database remembers all: Redis has not been asked")
)

// sureWithin is how long a write waits for the first word on the tide.
const sureWithin = time.Second

// tide is what this process knows of the height that SQL must have.
type tide struct {
	known atomic.Int64
	wrote atomic.Bool
	// sure is closed with the first Mind; nil if nobody is wary.
	sure  atomic.Pointer[chan struct{}]
	first sync.Once
}

// tideRow is the one row of tide.
type tideRow struct {
	ID     int   `gorm:"column:id;primaryKey"`
	Height int64 `gorm:"column:height"`
}

// TableName tells GORM where the tide is.
func (tideRow) TableName() string { return "tide" }

// Wary lets everything that moves orders or units, but for the creation of orders, wait
// for the first Mind, a second each, and fail with ErrUnsure then. It may be called
// again.
func (s *Store) Wary() {
	unsure := make(chan struct{})
	s.tide.sure.CompareAndSwap(nil, &unsure)
}

// Mind says how high the tide has been, as somebody else remembers. From now on
// everything that moves orders or units fails with ErrBehind while it is lower,
// without having changed anything.
func (s *Store) Mind(height int64) {
	s.tide.learn(height)
	if sure := s.tide.sure.Load(); sure != nil {
		s.tide.first.Do(func() { close(*sure) })
	}
}

// learn notes a height that the database has had.
func (t *tide) learn(height int64) {
	for {
		known := t.known.Load()
		if height <= known || t.known.CompareAndSwap(known, height) {
			return
		}
	}
}

// Rise lets the tide rise by one if this process has moved anything since the last
// call, and returns how high it is. A tide that is lower than it was stays there: what
// was moved before may be what the database has forgotten.
func (s *Store) Rise(ctx context.Context) (height int64, err error) {
	db, cancel := s.session(ctx)
	defer cancel()
	wrote, risen := s.tide.wrote.Swap(false), false
	// One transaction, so that whatever stands between asks the server that writes.
	err = db.Transaction(func(tx *gorm.DB) error {
		if wrote {
			done := tx.Model(&tideRow{}).Where("id = 1 AND height >= ?", s.tide.known.Load()).Update("height", gorm.Expr("height + 1"))
			if done.Error != nil {
				return fmt.Errorf("letting the tide rise: %w", done.Error)
			}
			risen = done.RowsAffected == 1
		}
		_, height, err = s.readTide(tx)
		return err
	}, s.dialect.txOptions())
	if wrote && (err != nil || !risen) {
		s.tide.wrote.Store(true)
	}
	if err != nil {
		return 0, fmt.Errorf("asking how high the tide is: %w", err)
	}
	s.tide.learn(height)
	return height, nil
}

// Lift sets the tide to a height, because what was forgotten is there again or given
// up. It never falls.
func (s *Store) Lift(ctx context.Context, height int64) error {
	db, cancel := s.session(ctx)
	defer cancel()
	err := db.Clauses(clause.OnConflict{DoNothing: true}).Create(&tideRow{ID: 1}).Error
	if err == nil {
		err = db.Model(&tideRow{}).Where("id = 1 AND height < ?", height).Update("height", height).Error
	}
	if err != nil {
		return fmt.Errorf("lifting the tide to %d: %w", height, err)
	}
	return nil
}

// Now is the database's clock, which all who work on it share, unless WithClock has
// set another.
func (s *Store) Now(ctx context.Context) (time.Time, error) {
	db, cancel := s.session(ctx)
	defer cancel()
	now, _, err := s.readTide(db)
	if err != nil {
		return now, fmt.Errorf("asking the database for the time: %w", err)
	}
	return now, nil
}

// readTide reads clock and tide; 0 where there is no tide.
func (s *Store) readTide(db *gorm.DB) (now time.Time, height int64, err error) {
	var row struct{ Now, Height int64 }
	err = db.Raw("SELECT " + s.dialect.clock() + " AS now, (SELECT height FROM tide WHERE id = 1) AS height").Scan(&row).Error
	if err != nil {
		return now, 0, s.word(err) // GORM translates no error of a raw query
	}
	now = instant(row.Now)
	if s.now != nil {
		now = s.now()
	}
	return now, row.Height, nil
}

// begin says, in a transaction, what time it is, and whether anything may be decided.
func (s *Store) begin(tx *gorm.DB) (time.Time, error) {
	known := s.tide.known.Load() // before the look: it may rise meanwhile
	now, height, err := s.readTide(tx)
	switch {
	case err != nil:
		return now, fmt.Errorf("asking for the tide: %w", err)
	case height < known:
		return now, ErrBehind
	}
	return now, nil
}

// unsure says that somebody is wary, and has not been told of the tide yet.
func (t *tide) unsure() bool {
	sure := t.sure.Load()
	if sure == nil {
		return false
	}
	select {
	case <-*sure:
		return false
	default:
		return true
	}
}

// wait returns when the tide is known, or has not become known for a while.
func (t *tide) wait(ctx context.Context) error {
	if !t.unsure() {
		return nil
	}
	sure := *t.sure.Load()
	timer := time.NewTimer(sureWithin)
	defer timer.Stop()
	select {
	case <-sure:
		return nil
	case <-timer.C:
		return ErrUnsure
	case <-ctx.Done():
		return cmp.Or(context.Cause(ctx), ErrUnsure)
	}
}
