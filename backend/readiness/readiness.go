// Package readiness names what keeps a backend from storing orders: the part that is
// missing and its cause, each in a word from a fixed list. /readyz, the metrics, the
// heartbeat, `activity show` and the log all say these words; operators' tools go
// by them.
package readiness

import (
	"errors"
	"slices"

	"github.com/seckill-edge/seckill/backend/store"
	"github.com/seckill-edge/seckill/internal/queue"
	"github.com/seckill-edge/seckill/lua"
)

// The parts.
const (
	// Redis takes this user's reads and writes.
	Redis = "redis"
	// Database takes reads and writes and has lost nothing.
	Database = "database"
	// Schema is at least what this program needs.
	Schema = "schema"
	// Queue takes messages.
	Queue = "queue"
	// Consumer gets messages and stores them.
	Consumer = "consumer"
	// Backend is the program itself: a look has panicked.
	Backend = "backend"
)

// Parts are all there are.
var Parts = []string{Redis, Database, Schema, Queue, Consumer, Backend}

// Bug is the cause of a part that could not be looked at because of a mistake of this
// program.
const Bug = "bug"

// ErrStoring marks an error of the consumer that is the database's.
var ErrStoring = errors.New("storing waits for the database")

// CauseOf names the cause of what a look at a part has found; empty for nil.
func CauseOf(part string, err error) string {
	switch {
	case err == nil:
		return ""
	case part == Backend:
		return Bug
	case part == Redis:
		return lua.FaultOf(err).String()
	case part == Database, part == Schema, errors.Is(err, ErrStoring):
		return string(store.CauseOf(err))
	}
	return string(queue.CauseOf(err))
}

// CausesOf is part → cause.
func CausesOf(missing map[string]error) map[string]string {
	causes := make(map[string]string, len(missing))
	for part, err := range missing {
		causes[part] = CauseOf(part, err)
	}
	return causes
}

// Causes are all that a part can have.
func Causes(part string) []string {
	var all []string
	switch part {
	case Redis:
		for fault := lua.FaultNotSent; fault <= lua.FaultPermanent; fault++ {
			all = append(all, fault.String())
		}
	case Backend:
		all = append(all, Bug)
	case Schema:
		all = append(all, string(store.Outdated), string(store.Newer))
	case Queue:
		all = words(all, queue.Causes)
	case Database:
		all = words(all, store.Causes)
	case Consumer:
		all = words(words(all, store.Causes), queue.Causes)
	}
	return all
}

// words adds those that are not there yet.
func words[C ~string](to []string, causes []C) []string {
	for _, c := range causes {
		if !slices.Contains(to, string(c)) {
			to = append(to, string(c))
		}
	}
	return to
}
