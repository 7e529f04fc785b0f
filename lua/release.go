package lua

import (
	"context"
	_ "embed"
	"fmt"

	"github.com/redis/go-redis/v9"
)

var (
	//go:embed release.lua
	releaseSource string
	releaseScript = redis.NewScript(recordSource + changesSource + moveSource + releaseSource)
)

// Release gives the units of queued or created orders back to the stock, and
// their buyers the right to buy. to is MarkRejected, MarkCancelled or
// MarkExpired. The orders leave the outbox, whatever the answer. It works in
// every state of the activity and does not look at the epoch.
//
// The edges hear of returned units through Changes, and of the orders through Moves. With MarkRejected each move's
// Reason goes into the buyer's record.
//
// There is one answer a move, in their order, as if they came one after the
// other: Already for an order given back before, under any of the three marks,
// and Conflict for one that is sold. Of a buyer's orders given back, his record
// remembers the eight with the greatest ids; others are Unknown.
//
// moves may have any length; MaxPerCall of them are one atomic step. After an
// error (ErrDamaged or of the connection) some may have been made: repeat them
// all.
func Release(ctx context.Context, c redis.Scripter, product string, to Mark, moves []Move) ([]Moved, error) {
	if to != MarkRejected && to != MarkCancelled && to != MarkExpired {
		return nil, fmt.Errorf("releasing orders of product %s: mark %c, want %c, %c or %c",
			product, to, MarkRejected, MarkCancelled, MarkExpired)
	}
	moved, err := move(ctx, c, releaseScript, product, to, moves)
	if err != nil {
		return nil, fmt.Errorf("releasing %d orders of product %s: %w", len(moves), product, err)
	}
	return moved, nil
}
