package lua

import (
	"context"
	_ "embed"
	"fmt"
	"strconv"

	"github.com/redis/go-redis/v9"

	"github.com/seckill-edge/seckill/internal/order"
)

var (
	//go:embed resize.lua
	resizeSource string
	resizeScript = redis.NewScript(recordSource + changesSource + runidSource + resizeSource)
)

// Resized is what became of a Resize.
type Resized struct {
	// Done says that the total is what it was to be, by this call or an earlier one.
	// If not, the change was refused for good: fewer units are available than it
	// withdraws, or were when it was asked for first.
	Done bool
	// Total and Available are the activity's after the call.
	Total, Available int64
}

// Resize changes how many units an activity sells in all: the units that are
// available rise or fall by the difference. Changes are numbered by the caller,
// from 1 on, each one above the last; one that was made or refused before has no
// second effect, however late it comes. Edges hear of it on Changes.
//
// Errors beside those of the connection: ErrNoActivity, ErrOtherActivity,
// ErrDamaged, and ErrUnproven while the stock has to be proven. After those the
// change may be tried again.
func Resize(ctx context.Context, c redis.Scripter, product, activityID string, change, total int64) (Resized, error) {
	r, err := resize(ctx, c, product, activityID, change, total)
	if err != nil {
		return Resized{}, fmt.Errorf("changing the total of activity %.80q of product %.80q to %d, change %d: %w", activityID, product, total, change, err)
	}
	return r, nil
}

func resize(ctx context.Context, c redis.Scripter, product, activityID string, change, total int64) (Resized, error) {
	if total < 1 || total > order.MaxUnits || change < 1 || change > latest {
		return Resized{}, fmt.Errorf("want a total of 1 to %d and a change of 1 or more", order.MaxUnits)
	}
	cmd, err := run(ctx, c, resizeScript, product, activityID, strconv.FormatInt(change, 10), strconv.FormatInt(total, 10))
	if err != nil {
		return Resized{}, err
	}
	reply, err := cmd.Int64Slice()
	if err != nil || len(reply) != 3 {
		return Resized{}, fmt.Errorf("%w: %v", ErrReply, cmd.Val())
	}
	r := Resized{Done: reply[1] == total, Total: reply[1], Available: reply[2]}
	switch reply[0] {
	case 1, 0, int64(SoldOut):
		return r, nil
	case -1:
		return Resized{}, ErrNoActivity
	case -2:
		return Resized{}, ErrOtherActivity
	case -4:
		return Resized{}, ErrUnproven
	case int64(Unavailable):
		return Resized{}, ErrDamaged
	}
	return Resized{}, fmt.Errorf("%w: %v", ErrReply, reply)
}
