package store

import (
	"errors"
	"strings"

	mysqldriver "github.com/go-sql-driver/mysql"
	modernc "modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"
)

// None is an ErrNotFound in words of its own.
func None(words string) error { return none(words) }

type none string

func (n none) Error() string        { return string(n) }
func (n none) Is(target error) bool { return target == ErrNotFound }

// IsTransient says that err is nobody's fault but the database's: it is down,
// slow, read-only, full, locked or not migrated yet. Pause, then try the same
// again, for as long as it takes. False means that the data of the call itself is
// to blame (a value that is too long, a constraint it violates): cut the batch in
// halves to find the order.
//
// An error that nobody has foreseen counts as transient, because to pause loses
// nothing, while to blame an order loses it. A context that has ended is
// transient, too. IsTransient(nil) is false.
func IsTransient(err error) bool {
	if err == nil {
		return false
	}
	for _, answer := range []error{ErrNotFound, ErrExists, ErrState} {
		if errors.Is(err, answer) {
			return false
		}
	}
	return !blamesData(err)
}

// LacksSchema says that err is a table or column that is not there: the schema was
// never made, or is older than this program. See Migrate.
func LacksSchema(err error) bool {
	if errors.Is(err, ErrSchema) {
		return true
	}
	if my, ok := errors.AsType[*mysqldriver.MySQLError](err); ok {
		return my.Number == 1146 || my.Number == 1054
	}
	if lite, ok := errors.AsType[*modernc.Error](err); ok {
		return strings.Contains(lite.Error(), "no such table") || strings.Contains(lite.Error(), "no such column")
	}
	return false
}

func blamesData(err error) bool {
	if errors.Is(err, mysqldriver.ErrPktTooLarge) {
		return true // half of the batch may fit
	}
	if my, ok := errors.AsType[*mysqldriver.MySQLError](err); ok {
		switch my.Number {
		case 1048, // NULL in a column that has none
			1062,       // duplicate key
			1153, 1301, // larger than max_allowed_packet
			1264, 1690, // number out of range
			1265, 1406, // value cut off
			1292, 1366, 1367, 1411, 3854, // value of another type or character set
			1364,       // no value, no default
			3819, 4025: // CHECK violated, in MySQL and in MariaDB
			return true
		}
	}
	if lite, ok := errors.AsType[*modernc.Error](err); ok {
		switch lite.Code() & 0xff {
		case sqlite3.SQLITE_CONSTRAINT, sqlite3.SQLITE_MISMATCH, sqlite3.SQLITE_TOOBIG, sqlite3.SQLITE_RANGE:
			return true
		}
	}
	return false
}
