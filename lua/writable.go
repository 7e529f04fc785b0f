package lua

import (
	"context"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"
)

const (
	// probeKey, string: written by whoever asks whether Redis takes writes. It belongs to
	// no product and goes by itself.
	probeKey = "seckill:probe"
	probeFor = 10 * time.Second
)

// Writable asks Redis, with the rights of this user, for a write that a full memory,
// a failed save and missing replicas refuse. A PING, and every read, is answered all
// the same then. On a cluster it asks one node. FaultOf names the kind of the
// error.
func Writable(ctx context.Context, c redis.Cmdable) error {
	if err := c.Set(ctx, probeKey, "1", probeFor).Err(); err != nil {
		if FaultOf(err) == FaultRefused {
			return fmt.Errorf("Redis refuses writes: %w", err) //nolint:staticcheck // a name
		}
		return fmt.Errorf("writing to Redis: %w", err)
	}
	return nil
}
