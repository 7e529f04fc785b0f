package lua

import (
	"context"
	_ "embed"
	"fmt"

	"github.com/redis/go-redis/v9"
)

var (
	//go:embed probe.lua
	probeSource string
	probeScript = redis.NewScript(recordSource + probeSource)
)

// Probe is nil if a purchase of the product would not fail for want of an answer, of
// memory, disk, replicas or rights. It writes as a purchase does and changes nothing.
// Keys that are missing or damaged are no failure: Audit tells of those.
func Probe(ctx context.Context, c redis.Scripter, product string) error {
	if _, err := run(ctx, c, probeScript, product); err != nil {
		return fmt.Errorf("trying what a purchase of product %s needs: %w", product, err)
	}
	return nil
}
