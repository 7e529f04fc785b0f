package lua

import (
	"context"
	_ "embed"
	"fmt"

	"github.com/redis/go-redis/v9"
)

var (
	//go:embed settle.lua
	settleSource string
	settleScript = redis.NewScript(recordSource + changesSource + moveSource + settleSource)
)

// Settle tells Redis that orders are stored. With MarkCreated, which starts from
// queued, their units stay frozen until the payment; with MarkSettled and
// MarkPaid, which start from queued and created, they are sold. The orders leave
// the outbox, whatever the answer. It works in every state of the activity and
// does not look at the epoch.
//
// There is one answer a move, in their order, as if they came one after the
// other. MarkCreated answers Already to an order that is settled or paid.
//
// Edges hear through Moves which orders those are.
//
// moves may have any length; MaxPerCall of them are one atomic step. After an
// error (ErrDamaged or of the connection) some may have been made: repeat them
// all.
func Settle(ctx context.Context, c redis.Scripter, product string, to Mark, moves []Move) ([]Moved, error) {
	if to != MarkCreated && to != MarkSettled && to != MarkPaid {
		return nil, fmt.Errorf("settling orders of product %s: mark %c, want %c, %c or %c",
			product, to, MarkCreated, MarkSettled, MarkPaid)
	}
	moved, err := move(ctx, c, settleScript, product, to, moves)
	if err != nil {
		return nil, fmt.Errorf("settling %d orders of product %s: %w", len(moves), product, err)
	}
	return moved, nil
}
