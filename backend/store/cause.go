package store

import (
	"errors"
	"regexp"

	mysqldriver "github.com/go-sql-driver/mysql"
	modernc "modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"
)

// Cause says in one word why a database cannot be used. Operators' tools go by it.
type Cause string

// The causes. A new one also belongs into Causes and docs/operations.md.
const (
	// Away: not reached, or no answer in time.
	Away Cause = "away"
	// ReadOnly: it answers and takes no writes: a replica, or read_only is set.
	ReadOnly Cause = "read_only"
	// Full: its disk has no room.
	Full Cause = "full"
	// Forbidden: user, password or a right.
	Forbidden Cause = "forbidden"
	// Outdated: the schema is missing, or older than this program.
	Outdated Cause = "outdated"
	// Newer: the schema is one that this program does not know, see ErrNewerSchema.
	Newer Cause = "newer"
	// Misconfigured: its configuration, such as that of its binary log, rules out what
	// this program does.
	Misconfigured Cause = "misconfigured"
	// Busy: it is locked, or takes no more connections.
	Busy Cause = "busy"
	// RolledBack: it has lost what it had confirmed, see ErrBehind.
	RolledBack Cause = "rolled_back"
	// Unverified: nobody could say yet whether it has, see ErrUnsure.
	Unverified Cause = "unverified"
	// Failed: another error; its text says which.
	Failed Cause = "failed"
)

// Causes are all there are.
var Causes = []Cause{Away, ReadOnly, Full, Forbidden, Outdated, Newer, Misconfigured, Busy, RolledBack, Unverified, Failed}

// causesByNumber is the only table of the error numbers of MySQL and MariaDB that say
// what is wrong with the whole database.
var causesByNumber = map[uint16]Cause{
	1290: ReadOnly, 1792: ReadOnly, 1836: ReadOnly, 1874: ReadOnly,
	1021: Full, 1114: Full,
	1044: Forbidden, 1045: Forbidden, 1130: Forbidden, 1142: Forbidden, 1143: Forbidden, 1227: Forbidden,
	1370: Forbidden, 1698: Forbidden, 1820: Forbidden, 1862: Forbidden, 3118: Forbidden, 4151: Forbidden,
	1049: Misconfigured, 1598: Misconfigured, 1661: Misconfigured, 1662: Misconfigured, 1663: Misconfigured,
	1665: Misconfigured, 1666: Misconfigured, 1667: Misconfigured,
	1040: Busy, 1129: Busy, 1203: Busy, 1205: Busy, 1213: Busy, 1226: Busy,
	1053: Away, 1077: Away,
}

// noSpace is the operating system's "no space left on device" as storage engines pass
// it on: the error's own number says only that there was one.
var noSpace = regexp.MustCompile(`(?i)\b(?:error|errno:?|errcode:?) 28\b`)

// CauseOf names the cause of an error of this package by the server's error number;
// empty for nil.
func CauseOf(err error) Cause {
	switch {
	case err == nil:
		return ""
	case errors.Is(err, ErrBehind):
		return RolledBack
	case errors.Is(err, ErrUnsure):
		return Unverified
	case errors.Is(err, ErrNewerSchema):
		return Newer
	case LacksSchema(err):
		return Outdated
	}
	if my, ok := errors.AsType[*mysqldriver.MySQLError](err); ok {
		if cause, known := causesByNumber[my.Number]; known {
			return cause
		}
		if noSpace.MatchString(my.Message) {
			return Full
		}
		return Failed
	}
	if lite, ok := errors.AsType[*modernc.Error](err); ok {
		switch lite.Code() & 0xff {
		case sqlite3.SQLITE_READONLY:
			return ReadOnly
		case sqlite3.SQLITE_FULL:
			return Full
		case sqlite3.SQLITE_PERM, sqlite3.SQLITE_AUTH, sqlite3.SQLITE_CANTOPEN:
			return Forbidden
		case sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED:
			return Busy
		}
		return Failed
	}
	if silent(err) {
		return Away
	}
	return Failed
}
