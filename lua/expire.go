package lua

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/seckill-edge/seckill/internal/order"
)

var (
	//go:embed expire.lua
	expireSource string
	expireScript = redis.NewScript(expireSource)
)

// ErrNotClosed: the activity is open or held in Redis.
var ErrNotClosed = errors.New("the activity is not closed in redis")

// Expire lets all keys of an activity expire after keep, or removes them at once
// if keep is 0. It does not ask whether anything of it is still on its way: its
// caller knows. False if they expire already, from an earlier call; keep changes
// nothing then.
//
// Errors beside those of the connection: ErrNoActivity, ErrOtherActivity,
// ErrNotClosed.
func Expire(ctx context.Context, c redis.Scripter, product, activityID string, keep time.Duration) (bool, error) {
	expires, err := expire(ctx, c, product, activityID, keep)
	if err != nil {
		return false, fmt.Errorf("letting activity %.80q of product %.80q expire: %w", activityID, product, err)
	}
	return expires, nil
}

func expire(ctx context.Context, c redis.Scripter, product, activityID string, keep time.Duration) (bool, error) {
	if !order.ValidProduct(product) || keep < 0 || keep != 0 && keep < time.Millisecond {
		return false, fmt.Errorf("want a product id and a time of 0 or at least a millisecond, not %v", keep)
	}
	k := KeysOf(product)
	code, err := expireScript.Run(ctx, c, append(k.list(), k.Edges), activityID, strconv.FormatInt(keep.Milliseconds(), 10)).Int64()
	if err != nil {
		return false, err
	}
	switch code {
	case 1:
		return true, nil
	case 0:
		return false, nil
	case -1:
		return false, ErrNoActivity
	case -2:
		return false, ErrOtherActivity
	case -3:
		return false, ErrNotClosed
	}
	return false, fmt.Errorf("%w: %d", ErrReply, code)
}
