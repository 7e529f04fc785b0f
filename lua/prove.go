package lua

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"strconv"

	"github.com/redis/go-redis/v9"
)

var (
	//go:embed prove.lua
	proveSource string
	proveScript = redis.NewScript(recordSource + changesSource + runidSource + proveSource)
)

// Errors of proving a stock, beside those of the connection.
var (
	// ErrOvertaken: the activity is not, or no longer, being proven under this
	// epoch, or no longer at the one it was to be opened from: somebody else has
	// held it since, or Redis has been restarted.
	ErrOvertaken = errors.New("somebody else has taken over")
	// ErrMoved: an order has moved since the counters were read.
	ErrMoved = errors.New("an order has moved meanwhile")
	// ErrUnits: the units to be are not the activity's total.
	ErrUnits = errors.New("the units are not the total")
)

// Units are an activity's counters.
type Units struct{ Available, Frozen, Sold int64 }

// Counters are the counters as they are stored; empty if missing or of a wrong
// type.
type Counters [3]string

// ReadCounters reads available, frozen and sold as they are stored.
func ReadCounters(ctx context.Context, c redis.Cmdable, product string) (Counters, error) {
	k := KeysOf(product)
	values, err := c.MGet(ctx, k.Stock, k.Frozen, k.Sold).Result()
	if err != nil || len(values) != len(Counters{}) {
		return Counters{}, fmt.Errorf("reading the counters of product %s: %w", product, err)
	}
	var out Counters
	for i, v := range values {
		out[i], _ = v.(string)
	}
	return out, nil
}

// Prove ends what Hold began: it sets the counters to what the records say, notes
// the server that the script runs on, and opens the activity or leaves it held,
// under a new epoch. was is what ReadCounters said before the records were read;
// ErrMoved if it is not so any more, because then the records may have changed.
// server is the run id of the server they were read from; ErrOvertaken if it has
// been restarted since, and may have forgotten them again.
func Prove(ctx context.Context, c redis.Scripter, product, activityID string, epoch int64, to ActivityState, was Counters, units Units, server string) (int64, error) {
	next, err := prove(ctx, c, product, activityID, epoch, to, was, units, server)
	if err != nil {
		return 0, fmt.Errorf("proving activity %.80q of product %.80q: %w", activityID, product, err)
	}
	return next, nil
}

func prove(ctx context.Context, c redis.Scripter, product, activityID string, epoch int64, to ActivityState, was Counters, units Units, server string) (int64, error) {
	if to != Open && to != OnHold {
		return 0, fmt.Errorf("state %q, want %q or %q", to, Open, OnHold)
	}
	number := func(n int64) string { return strconv.FormatInt(n, 10) }
	cmd, err := run(ctx, c, proveScript, product, activityID, number(epoch), string(to), was[0], was[1], was[2],
		number(units.Available), number(units.Frozen), number(units.Sold), server)
	if err != nil {
		return 0, err
	}
	reply, err := cmd.Int64Slice()
	if err != nil || len(reply) != 2 {
		return 0, fmt.Errorf("%w: %v", ErrReply, cmd.Val())
	}
	switch reply[0] {
	case 1:
		return reply[1], nil
	case 0:
		return 0, ErrMoved
	case -1:
		return 0, fmt.Errorf("%w: %+v", ErrUnits, units)
	case int64(Unavailable):
		return 0, ErrOvertaken
	}
	return 0, fmt.Errorf("%w: %v", ErrReply, reply)
}
