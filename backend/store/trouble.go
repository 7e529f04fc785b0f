package store

import (
	"context"
	"database/sql/driver"
	"errors"
	"net"

	mysqldriver "github.com/go-sql-driver/mysql"
	"gorm.io/gorm"
)

// trouble is an error of the whole database in words that say what to do. The
// driver's own comes last.
type trouble struct {
	words string
	err   error
}

func (t *trouble) Error() string { return t.words + ": " + t.err.Error() }
func (t *trouble) Unwrap() error { return t.err }

// worded is a dialector that words what is wrong with the whole database, wherever
// an error comes from.
type worded struct {
	dialector
	name string
}

// dialector is what GORM asks of ours, transactions in transactions included.
// Both have them.
type dialector interface {
	gorm.Dialector
	gorm.SavePointerDialectorInterface
}

// Apply lets the wrapped dialector set its defaults, which GORM asks for where it is.
func (w worded) Apply(c *gorm.Config) error {
	if d, ok := w.dialector.(interface{ Apply(c *gorm.Config) error }); ok {
		return d.Apply(c)
	}
	return nil
}

// Translate implements gorm.ErrorTranslator.
func (w worded) Translate(err error) error {
	if _, done := errors.AsType[*trouble](err); done {
		return err
	}
	switch CauseOf(err) {
	case Outdated:
		return &trouble{"the database has no schema yet, or an older one: run `seckilld migrate`", err}
	case ReadOnly:
		return &trouble{"the database " + w.name + " is read-only", err}
	case Full:
		return &trouble{"the database " + w.name + " has no room left", err}
	case Forbidden:
		return &trouble{"the database " + w.name + " refuses this user, or one of its rights is missing", err}
	case Misconfigured:
		return &trouble{"the database " + w.name + " is not configured for this program", err}
	case Away:
		return &trouble{"the database " + w.name + " does not answer", err}
	case Newer, Busy, RolledBack, Unverified, Failed: // they say it themselves
	}
	return err
}

// silent says that a server gave no answer: not reached, gone, or not in time.
func silent(err error) bool {
	_, network := errors.AsType[net.Error](err)
	return network || errors.Is(err, mysqldriver.ErrInvalidConn) || errors.Is(err, driver.ErrBadConn) || errors.Is(err, context.DeadlineExceeded)
}
