package lua

import (
	"context"
	_ "embed"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/seckill-edge/seckill/internal/order"
)

var (
	//go:embed tide.lua
	tideSource string
	tideScript = redis.NewScript(recordSource + tideSource)
)

// tideKey, string: how high the database's tide has been. It belongs to no product.
const tideKey = "seckill:tide"

// HighTide tells Redis how high the tide of the database is, and returns how high it
// has ever been: more says that the database has forgotten something.
func HighTide(ctx context.Context, c redis.Scripter, height int64) (int64, error) {
	if height < 0 || height > latest {
		return 0, fmt.Errorf("noting the tide: %d is no height", height)
	}
	known, err := tideScript.Run(ctx, c, []string{tideKey}, strconv.FormatInt(height, 10)).Int64()
	if err != nil {
		return 0, fmt.Errorf("noting the tide: %w", err)
	}
	return known, nil
}

// maxProducts bounds what Products returns.
const maxProducts = 100_000

// Products are all products of which Redis has an activity, sorted. It goes through
// all keys of the server, and is for emergencies.
func Products(ctx context.Context, c redis.UniversalClient) ([]string, error) {
	const before, behind = "seckill:activity:{", "}"
	var found []string
	err := scan(ctx, c, before+"*"+behind, func(key string) (enough bool) {
		product := strings.TrimSuffix(strings.TrimPrefix(key, before), behind)
		if order.ValidProduct(product) {
			found = append(found, product)
		}
		return len(found) > maxProducts
	})
	if err != nil {
		return nil, fmt.Errorf("listing the products of Redis: %w", err)
	}
	if len(found) > maxProducts {
		return nil, fmt.Errorf("listing the products of Redis: there are more than %d", maxProducts)
	}
	slices.Sort(found)
	return slices.Compact(found), nil
}
