package faults

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/seckill-edge/seckill/e2e/history"
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
	// Breaks is what it breaks, for the judge. Its times are filled in by the round.
	Breaks []history.Outage
}

// Kind is one kind of fault.
type Kind struct {
	Name string
	// Fsync is Redis's appendfsync; empty means everysec.
	Fsync string
	// Before bounds how long the sale goes on until it begins, by default 0.2 to 1.5 s;
	// Last how long the fault lasts.
	Before, Last [2]time.Duration
	// Forgetful: see history.History.
	Forgetful bool
	// DeadLetters says that the fault itself makes dead letters.
	DeadLetters bool
	// Holds and Plenty: see history.History. Plenty needs a Total to be it.
	Holds, Plenty bool
	// Products is how many are sold at once, 1 if it is 0, and Total how many units
	// of each; 0 draws it.
	Products int
	Total    int64
	// Clicks is how many a second all buyers of a product make together before the
	// rush, 0 for as many as they can. Rare purchases make a sale last.
	Clicks int
	// AskAgain is how long after the last promise every edge is asked for every
	// order once more; 0 for at once.
	AskAgain time.Duration
	// Make chooses a victim.
	Make func(f *Field, r *rand.Rand) Fault
}

// The lengths of faults, and soon a beginning before all is sold. A moment is what nobody would notice but a client; short
// is below the time-outs and patience of the product, long beyond.
var (
	soon   = [2]time.Duration{10 * time.Millisecond, 60 * time.Millisecond}
	moment = [2]time.Duration{50 * time.Millisecond, 400 * time.Millisecond}
	short  = [2]time.Duration{200 * time.Millisecond, 1500 * time.Millisecond}
	long   = [2]time.Duration{800 * time.Millisecond, 4 * time.Second}
	// plain is long enough that programs must have noticed, and said it some times.
	plain = [2]time.Duration{5 * time.Second, 8 * time.Second}
)

// beyond the promise: orders of the whole fault are due before it heals.
func beyond(promise time.Duration) [2]time.Duration {
	return [2]time.Duration{promise + 4*time.Second, promise + 8*time.Second}
}

// unheard is a little below the edges' reserve_timeout: who has his answer sooner
// has it from Redis.
const unheard = 240 * time.Millisecond

func (k *Kind) before() [2]time.Duration {
	if k.Before == [2]time.Duration{} {
		return [2]time.Duration{200 * time.Millisecond, 1500 * time.Millisecond}
	}
	return k.Before
}

// between draws a duration.
func between(r *rand.Rand, bounds [2]time.Duration) time.Duration {
	return bounds[0] + time.Duration(r.Int64N(int64(bounds[1]-bounds[0])))
}

// Kinds are all kinds of fault there are, in the order of the table, for edges that
// promise a fate within so long.
func Kinds(within time.Duration) []Kind {
	var all []Kind
	all = append(all, processKinds(within)...)
	all = append(all, networkKinds()...)
	all = append(all, redisKinds()...)
	all = append(all, refusingKinds()...)
	all = append(all, rabbitKinds(within)...)
	all = append(all, databaseKinds()...)
	all = append(all, spoiltKinds()...)
	return append(all, killKinds()...)
}
