package lua

import (
	"context"
	_ "embed"
	"fmt"
	"strconv"

	"github.com/redis/go-redis/v9"
)

var (
	//go:embed hold.lua
	holdSource string
	holdScript = redis.NewScript(recordSource + changesSource + holdSource)
)

// Unproven is the run id of an activity that Hold has shut: no server's.
const Unproven = "unproven"

// Hold shuts an activity until its stock is proven (see Prove) and returns the
// epoch under which that is done: above every epoch before. Whatever Redis has
// lost or damaged of the activity itself is written again from a, whose State,
// Epoch and RunID are not read; made says that Redis had nothing readable of it.
//
// An activity that is there already under another id is ErrOtherActivity, unless
// its id is over: one that is over for good in SQL and makes room with all its
// keys. A closed activity is ErrClosed.
//
// Calling it again shuts out whoever proves the stock under the epoch before.
func Hold(ctx context.Context, c redis.Scripter, a Activity, over string) (epoch int64, made bool, err error) {
	return hold(ctx, c, a, over, "0")
}

// HoldChanging is Hold for an activity whose total is being changed: the total that
// is there stays if a later change than a.Changes made it.
func HoldChanging(ctx context.Context, c redis.Scripter, a Activity, over string) (epoch int64, made bool, err error) {
	return hold(ctx, c, a, over, "1")
}

func hold(ctx context.Context, c redis.Scripter, a Activity, over, changing string) (epoch int64, made bool, err error) {
	if epoch, made, err = callHold(ctx, c, a, over, changing); err != nil {
		return 0, false, fmt.Errorf("holding activity %.80q of product %.80q: %w", a.ID, a.ProductID, err)
	}
	return epoch, made, nil
}

func callHold(ctx context.Context, c redis.Scripter, a Activity, over, changing string) (int64, bool, error) {
	a.State = OnHold
	if err := checkActivity(a); err != nil {
		return 0, false, err
	}
	cmd, err := run(ctx, c, holdScript, a.ProductID, append(activityArgs(a), over, changing)...)
	if err != nil {
		return 0, false, err
	}
	reply, err := cmd.Int64Slice()
	if err != nil || len(reply) != 2 {
		return 0, false, fmt.Errorf("%w: %v", ErrReply, cmd.Val())
	}
	switch reply[0] {
	case 1, 2:
		return reply[1], reply[0] == 2, nil
	case -2:
		return 0, false, ErrOtherActivity
	case -3:
		return 0, false, ErrClosed
	}
	return 0, false, fmt.Errorf("%w: %v", ErrReply, reply)
}

// activityArgs are id, title, start, end, total, limit, pay window and changes, as
// the scripts take them.
func activityArgs(a Activity) []any {
	number := func(n int64) string { return strconv.FormatInt(n, 10) }
	return []any{
		a.ID, a.Title, number(a.Start.UnixMilli()), number(a.End.UnixMilli()), number(a.Total),
		number(int64(a.Limit)), number(a.PayWindow.Milliseconds()), number(a.Changes),
	}
}
