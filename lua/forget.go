package lua

import (
	"context"
	_ "embed"
	"fmt"

	"github.com/redis/go-redis/v9"
)

var (
	//go:embed forget.lua
	forgetSource string
	forgetScript = redis.NewScript(recordSource + runidSource + forgetSource)
)

// Stranger is an order of the outbox that its buyer does not have.
type Stranger struct {
	UserID, OrderID string
	// Record is the buyer's record as it was read, empty for none. It can be read,
	// and the order is not in it.
	Record string
}

// Forget takes strangers out of the outbox, and returns how many were. It leaves
// those alone whose buyers' records are others by now, and all of them unless the
// stock is proven, which is what ok says: until then the outbox may be all that is
// left of them. strangers may have any length; MaxPerCall are one atomic step.
func Forget(ctx context.Context, c redis.Scripter, product string, strangers []Stranger) (gone int, ok bool, err error) {
	for len(strangers) > 0 {
		n := min(len(strangers), MaxPerCall)
		args := make([]any, 3*n)
		for i, s := range strangers[:n] {
			args[i], args[n+i], args[2*n+i] = s.UserID, s.OrderID, s.Record
		}
		strangers = strangers[n:]
		cmd, err := run(ctx, c, forgetScript, product, args...)
		if err != nil {
			return gone, false, fmt.Errorf("forgetting %d orders of the outbox of product %.80q: %w", n, product, err)
		}
		some, err := cmd.Int()
		switch {
		case err != nil || some < 0 && Outcome(some) != Unavailable:
			return gone, false, fmt.Errorf("forgetting %d orders of the outbox of product %s: %w: %v", n, product, ErrReply, cmd.Val())
		case some < 0:
			return gone, false, nil
		}
		gone += some
	}
	return gone, true, nil
}
