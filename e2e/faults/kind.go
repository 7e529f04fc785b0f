package faults

import (
	"context"
	"math/rand/v2"
	"time"
)

// Fault is something to break and to heal.
type Fault struct {
	// Prepare sets up what the fault needs, before the sale begins; nil if nothing.
	Prepare func(ctx context.Context) error
	// Inject breaks it; it returns when it is broken.
	Inject func(ctx context.Context) error
	// Heal does what an operator or a supervisor would: start what has ended, let
	// go on what is frozen. It does nothing to the product itself. nil if nothing
	// is to be done.
	Heal func(ctx context.Context) error
}

// Kind is one kind of fault.
type Kind struct {
	Name string
	// Fsync is Redis's appendfsync; empty means everysec.
	Fsync string
	// Last bounds how long the fault lasts.
	Last [2]time.Duration
	// Forgetful: see history.History.
	Forgetful bool
	// DeadLetters says that the fault itself makes dead letters.
	DeadLetters bool
	// Promise: see history.History.
	Promise bool
	// Make chooses a victim.
	Make func(f *Field, r *rand.Rand) Fault
}

// The lengths of faults. A moment is what nobody would notice but a client; short
// is below the time-outs and patience of the product, long beyond.
var (
	moment = [2]time.Duration{50 * time.Millisecond, 400 * time.Millisecond}
	short  = [2]time.Duration{200 * time.Millisecond, 1500 * time.Millisecond}
	long   = [2]time.Duration{800 * time.Millisecond, 4 * time.Second}
	// beyond the promise: orders of the whole fault are due before it heals.
	beyond = [2]time.Duration{resolveWithin + 4*time.Second, resolveWithin + 8*time.Second}
)

// unheard is a little below the edges' reserve_timeout: who has his answer sooner
// has it from Redis.
const unheard = 240 * time.Millisecond

// between draws a duration.
func between(r *rand.Rand, bounds [2]time.Duration) time.Duration {
	return bounds[0] + time.Duration(r.Int64N(int64(bounds[1]-bounds[0])))
}

// Kinds are all kinds of fault there are, in the order of the table.
func Kinds() []Kind {
	var all []Kind
	all = append(all, processKinds()...)
	all = append(all, networkKinds()...)
	all = append(all, redisKinds()...)
	all = append(all, rabbitKinds()...)
	all = append(all, databaseKinds()...)
	all = append(all, spoiltKinds()...)
	return append(all, killKinds()...)
}
