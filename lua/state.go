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
	//go:embed state.lua
	stateSource string
	stateScript = redis.NewScript(recordSource + changesSource + runidSource + stateSource)
)

// Errors of SetState, beside ErrDamaged.
var (
	ErrNoActivity    = errors.New("redis has no activity of this product")
	ErrOtherActivity = errors.New("redis has another activity of this product")
	ErrClosed        = errors.New("the activity is closed, which is final")
	// ErrUnproven: Hold has shut it, or has to, because the server is another one
	// than it was opened on; Prove opens it.
	ErrUnproven = errors.New("its stock is being proven")
)

// SetState opens, holds or closes an activity and returns its epoch. Every
// change raises the epoch, and opening notes the run id of the server that the
// script runs on; the same state again changes nothing but the epoch of a held
// one, which refuses every OpenAt that began before.
func SetState(ctx context.Context, c redis.Scripter, product, activityID string, to ActivityState) (epoch int64, changed bool, err error) {
	epoch, changed, err = setState(ctx, c, product, activityID, to, "")
	if err != nil {
		return 0, false, fmt.Errorf("setting activity %.80q of product %.80q to %q: %w", activityID, product, to, err)
	}
	return epoch, changed, nil
}

// OpenAt opens an activity that stands at this epoch. ErrOvertaken if somebody
// has held it since the epoch was read; one that is open already stays so.
func OpenAt(ctx context.Context, c redis.Scripter, product, activityID string, at int64) (epoch int64, changed bool, err error) {
	epoch, changed, err = setState(ctx, c, product, activityID, Open, strconv.FormatInt(at, 10))
	if err != nil {
		return 0, false, fmt.Errorf("opening activity %.80q of product %.80q at epoch %d: %w", activityID, product, at, err)
	}
	return epoch, changed, nil
}

func setState(ctx context.Context, c redis.Scripter, product, activityID string, to ActivityState, at string) (int64, bool, error) {
	if !to.valid() {
		return 0, false, fmt.Errorf("want %q, %q or %q", Open, OnHold, Closed)
	}
	cmd, err := run(ctx, c, stateScript, product, activityID, string(to), at)
	if err != nil {
		return 0, false, err
	}
	reply, err := cmd.Int64Slice()
	if err != nil || len(reply) != 2 {
		return 0, false, fmt.Errorf("%w: %v", ErrReply, cmd.Val())
	}
	switch reply[0] {
	case 1:
		return reply[1], true, nil
	case 0:
		return reply[1], false, nil
	case -1:
		return 0, false, ErrNoActivity
	case -2:
		return 0, false, ErrOtherActivity
	case -3:
		return 0, false, ErrClosed
	case -4:
		return 0, false, ErrUnproven
	case -5:
		return 0, false, ErrOvertaken
	case int64(Unavailable):
		return 0, false, ErrDamaged
	}
	return 0, false, fmt.Errorf("%w: %v", ErrReply, reply)
}

func (s ActivityState) valid() bool {
	return s == Open || s == OnHold || s == Closed
}
