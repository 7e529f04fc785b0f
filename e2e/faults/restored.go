package faults

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/seckill-edge/seckill/e2e/history"
)

// sqlTables are what a backup of the database holds. The activities come first: who
// stores orders locks his, so that nothing is stored between two of the copies.
var sqlTables = []string{"activities", "orders", "payments", "tide"}

// restored puts the database back to where it was a second or two ago, in the middle of
// the sale and under running backends. The heal is an operator who has read the log.
func restored(f *Field, r *rand.Rand) Fault {
	older := between(r, [2]time.Duration{time.Second, 2 * time.Second})
	return Fault{
		Breaks: []history.Outage{breaks(history.Database, history.Forgets)},
		Inject: func(ctx context.Context) error {
			for _, name := range sqlTables {
				if _, err := f.db.ExecContext(ctx, "CREATE OR REPLACE TABLE saved_"+name+" LIKE "+name); err != nil {
					return fmt.Errorf("making a backup: %w", err)
				}
			}
			if err := f.together(ctx, "INSERT INTO saved_%[1]s SELECT * FROM %[1]s"); err != nil {
				return fmt.Errorf("making a backup: %w", err)
			}
			if err := pause(ctx, older); err != nil {
				return err
			}
			if err := f.together(ctx, "DELETE FROM %[1]s", "INSERT INTO %[1]s SELECT * FROM saved_%[1]s"); err != nil {
				return fmt.Errorf("restoring the backup: %w", err)
			}
			return nil
		},
		Heal: func(ctx context.Context) error {
			_, err := f.Seckilld(ctx, "recover")
			return err
		},
	}
}

// together runs statements for all tables in one transaction, again if it loses
// against the backends'.
func (f *Field) together(ctx context.Context, statements ...string) error {
	for try := 0; ; try++ {
		err := f.allAtOnce(ctx, statements)
		if err == nil || try == 20 || pause(ctx, 50*time.Millisecond) != nil {
			return err
		}
	}
}

func (f *Field) allAtOnce(ctx context.Context, statements []string) error {
	tx, err := f.db.BeginTx(ctx, &sql.TxOptions{Isolation: sql.LevelRepeatableRead})
	if err != nil {
		return err
	}
	for _, name := range sqlTables {
		for _, s := range statements {
			if _, err := tx.ExecContext(ctx, fmt.Sprintf(s, name)); err != nil {
				return errors.Join(err, tx.Rollback())
			}
		}
	}
	return tx.Commit()
}
