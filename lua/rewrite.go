package lua

import (
	"context"
	_ "embed"
	"fmt"
	"strconv"

	"github.com/redis/go-redis/v9"
)

var (
	//go:embed rewrite.lua
	rewriteSource string
	rewriteScript = redis.NewScript(rewriteSource)
)

// Rewriting is one buyer's record that is to be replaced.
type Rewriting struct {
	UserID string
	// Was is the record as it was read, To as it is to be; empty for none.
	Was, To string
}

// Rewrite replaces records of buyers in an activity that Hold has shut under
// this epoch, and says of each, in their order, whether it was done: a record
// that is another by now than Was is left alone. The counters stay as they are
// until Prove. ErrOvertaken if the activity is not, or no longer, being proven
// under this epoch.
//
// records may have any length; MaxPerCall of them are one atomic step. After an
// error some may have been replaced.
func Rewrite(ctx context.Context, c redis.Scripter, product, activityID string, epoch int64, records []Rewriting) ([]bool, error) {
	done := make([]bool, 0, len(records))
	for len(records) > 0 {
		n := min(len(records), MaxPerCall)
		part, err := rewrite(ctx, c, product, activityID, epoch, records[:n])
		if err != nil {
			return nil, fmt.Errorf("rewriting %d records of product %s: %w", n, product, err)
		}
		done = append(done, part...)
		records = records[n:]
	}
	return done, nil
}

func rewrite(ctx context.Context, c redis.Scripter, product, activityID string, epoch int64, records []Rewriting) ([]bool, error) {
	n := len(records)
	args := make([]any, 2+3*n)
	args[0], args[1] = activityID, strconv.FormatInt(epoch, 10)
	for i, r := range records {
		args[2+i], args[2+n+i], args[2+2*n+i] = r.UserID, r.Was, r.To
	}
	cmd, err := run(ctx, c, rewriteScript, product, args...)
	if err != nil {
		return nil, err
	}
	reply, err := cmd.Int64Slice()
	switch {
	case err != nil:
		return nil, fmt.Errorf("%w: %w", ErrReply, err)
	case len(reply) == 1 && Outcome(reply[0]) == Unavailable:
		return nil, ErrOvertaken
	case len(reply) != 1+n || reply[0] != 0:
		return nil, fmt.Errorf("%w: %d values for %d records", ErrReply, len(reply), n)
	}
	done := make([]bool, n)
	for i, answer := range reply[1:] {
		done[i] = answer == 1
	}
	return done, nil
}
