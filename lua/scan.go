package lua

import (
	"context"
	"errors"
	"sync"

	"github.com/redis/go-redis/v9"
)

// errEnough ends a scan.
var errEnough = errors.New("enough")

// scan shows found all keys of all masters that fit to pattern, one call at a time,
// some perhaps twice, until it has enough. Masters of a cluster are visited at once.
func scan(ctx context.Context, c redis.UniversalClient, pattern string, found func(key string) (enough bool)) error {
	var one sync.Mutex
	visit := func(ctx context.Context, node redis.Cmdable) error {
		keys := node.Scan(ctx, 0, pattern, 1000).Iterator()
		for keys.Next(ctx) {
			one.Lock()
			enough := found(keys.Val())
			one.Unlock()
			if enough {
				return errEnough
			}
		}
		return keys.Err()
	}
	var err error
	if cluster, ok := c.(*redis.ClusterClient); ok {
		err = cluster.ForEachMaster(ctx, func(ctx context.Context, node *redis.Client) error { return visit(ctx, node) })
	} else {
		err = visit(ctx, c)
	}
	if errors.Is(err, errEnough) {
		return nil
	}
	return err
}
