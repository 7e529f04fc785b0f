package lua

import (
	"context"
	_ "embed"
	"errors"
	"fmt"

	"github.com/redis/go-redis/v9"

	"github.com/seckill-edge/seckill/internal/order"
)

// MaxPerCall is the most requests one Reserve call takes, and how many moves go
// into one script call. It bounds the time that Redis serves nobody else.
const MaxPerCall = 256

var (
	// ErrDamaged: keys of the product are missing, damaged or of a wrong type.
	// Nothing was changed; hold the activity and rebuild it.
	ErrDamaged = errors.New("stock in Redis is damaged")
	// ErrReply: a script answered what its Go function does not know. Two
	// versions of this package work on one Redis, or the script has a bug.
	ErrReply = errors.New("unexpected reply of a script")
)

var (
	//go:embed record.lua
	recordSource string
	//go:embed move.lua
	moveSource string
	//go:embed runid.lua
	runidSource string
	//go:embed changes.lua
	changesSource string
)

// run calls a script for a product with all its keys. EVALSHA falls back to EVAL
// when the server has forgotten the script.
func run(ctx context.Context, c redis.Scripter, s *redis.Script, product string, args ...any) (*redis.Cmd, error) {
	if !order.ValidProduct(product) {
		return nil, fmt.Errorf("product id %.80q: it must have 1 to %d of A-Z a-z 0-9 _ -", product, order.MaxProductBytes)
	}
	cmd := s.Run(ctx, c, KeysOf(product).list(), args...)
	return cmd, cmd.Err()
}

// Load puts the scripts of a product's stock into the server's script cache; those of
// limits and notes are not among them. It is not needed for
// correctness; but from Redis 7.4 on, scripts that came by EVAL may be evicted
// and loaded ones are not.
func Load(ctx context.Context, c redis.Scripter) error {
	for name, s := range scripts() {
		if err := s.Load(ctx, c).Err(); err != nil {
			return fmt.Errorf("loading script %s.lua: %w", name, err)
		}
	}
	return nil
}

func scripts() map[string]*redis.Script {
	return map[string]*redis.Script{
		"preheat": preheatScript,
		"reserve": reserveScript,
		"settle":  settleScript,
		"release": releaseScript,
		"state":   stateScript,
		"audit":   auditScript,
		"resize":  resizeScript,
		"expire":  expireScript,
		"hold":    holdScript,
		"rewrite": rewriteScript,
		"prove":   proveScript,
		"forget":  forgetScript,
		"tide":    tideScript,
		"probe":   probeScript,
	}
}
