package lua

import (
	"context"
	_ "embed"
	"fmt"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/seckill-edge/seckill/internal/order"
)

var (
	//go:embed tokens.lua
	tokensSource string
	tokensScript = redis.NewScript(tokensSource)
)

// Quota is a limit that all edges share: Events tokens come back every Per, and up
// to Burst lie in the bucket. All must be positive, Per at least a microsecond.
type Quota struct {
	Events int
	Per    time.Duration
	Burst  int
}

// Tokens is what TakeTokens has got.
type Tokens struct {
	// Taken is 0 to as many as were wanted.
	Taken int
	// Wait is when one more is there; 0 if all wanted were taken.
	Wait time.Duration
}

// TakeTokens takes up to n tokens of the limit of a product, or of that of all
// products if product is empty. Redis counts by its own clock. Edges that name
// different quotas share one bucket all the same. An error means that it is not
// known whether tokens were taken; they come back by themselves.
func TakeTokens(ctx context.Context, c redis.Scripter, product string, q Quota, n int) (Tokens, error) {
	if q.Events < 1 || q.Per < time.Microsecond || q.Burst < 1 || n < 1 {
		return Tokens{}, fmt.Errorf("taking %d tokens of %d per %v, burst %d: all must be positive", n, q.Events, q.Per, q.Burst)
	}
	key := limitKey
	if product != "" {
		if !order.ValidProduct(product) {
			return Tokens{}, fmt.Errorf("taking tokens of product %.80q: no product id", product)
		}
		key = KeysOf(product).Limit
	}
	reply, err := tokensScript.Run(ctx, c, []string{key}, strconv.Itoa(q.Events),
		strconv.FormatInt(q.Per.Microseconds(), 10), strconv.Itoa(q.Burst), strconv.Itoa(n)).Int64Slice()
	if err == nil && (len(reply) != 2 || reply[0] < 0 || reply[0] > int64(n) || reply[1] < 0) {
		err = fmt.Errorf("%w: tokens.lua says %v", ErrReply, reply)
	}
	if err != nil {
		return Tokens{}, fmt.Errorf("taking %d tokens of %s: %w", n, key, err)
	}
	return Tokens{Taken: int(reply[0]), Wait: time.Duration(reply[1]) * time.Microsecond}, nil
}
