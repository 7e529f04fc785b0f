package store

import (
	"context"
	"fmt"

	"gorm.io/gorm"
)

// Writable asks the database for a write to the orders that changes none: a database
// that is read-only, or whose user lacks the right, answers every read all the same.
// CauseOf names the kind of the error.
func (s *Store) Writable(ctx context.Context) error {
	err := s.transact(ctx, func(tx *gorm.DB) error {
		return tx.Exec("UPDATE orders SET state = state WHERE id = ''").Error
	})
	if err != nil {
		return fmt.Errorf("writing to the database: %w", err)
	}
	return nil
}
