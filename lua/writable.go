package lua

import (
	"context"
	_ "embed"
	"fmt"

	"github.com/redis/go-redis/v9"
)

var (
	//go:embed writable.lua
	writableSource string
	writableScript = redis.NewScript(writableSource)
)

// writableKeys belong to no product. The first goes by itself, the others are gone
// when the script ends.
var writableKeys = []string{"seckill:{probe}", "seckill:{probe}:hash", "seckill:{probe}:set"}

// Writable runs a script that writes, with the rights of this user: a full memory, a
// failed save, missing replicas and a missing right to a command of the stock's scripts
// refuse it. A PING, and every read, is answered all the same then. On a cluster it
// asks one node. FaultOf names the kind of the error, which says what right is missing.
func Writable(ctx context.Context, c redis.UniversalClient) error {
	err := writableScript.Run(ctx, c, writableKeys).Err()
	switch FaultOf(err) {
	case FaultNone:
		return nil
	case FaultRefused:
		return fmt.Errorf("Redis refuses writes: %w", err) //nolint:staticcheck // a name
	default:
		return fmt.Errorf("writing to Redis: %w", Forbidden(ctx, c, err))
	}
}
