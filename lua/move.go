package lua

import (
	"context"
	"fmt"

	"github.com/redis/go-redis/v9"
)

// move runs settle.lua or release.lua for any number of moves, MaxPerCall in a
// script call.
func move(ctx context.Context, c redis.Scripter, s *redis.Script, product string, to Mark, moves []Move) ([]Moved, error) {
	moved := make([]Moved, 0, len(moves))
	for len(moves) > 0 {
		n := min(len(moves), MaxPerCall)
		answers, err := moveOnce(ctx, c, s, product, to, moves[:n])
		if err != nil {
			return nil, err
		}
		moved = append(moved, answers...)
		moves = moves[n:]
	}
	return moved, nil
}

func moveOnce(ctx context.Context, c redis.Scripter, s *redis.Script, product string, to Mark, moves []Move) ([]Moved, error) {
	n := len(moves)
	args := make([]any, 1+2*n)
	args[0] = string(to) + reasonLetters(to, moves)
	for i := range moves {
		args[1+i] = moves[i].UserID
		args[1+n+i] = moves[i].OrderID
	}
	cmd, err := run(ctx, c, s, product, args...)
	if err != nil {
		return nil, err
	}
	reply, err := cmd.Int64Slice()
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrReply, err)
	}
	switch {
	case len(reply) == 1 && Outcome(reply[0]) == Unavailable:
		return nil, ErrDamaged
	case len(reply) != 1+n || reply[0] != 0:
		return nil, fmt.Errorf("%w: %d values, the first %v, for %d moves", ErrReply, len(reply), reply[:min(1, len(reply))], n)
	}
	moved := make([]Moved, n)
	for i, a := range reply[1:] {
		if moved[i] = Moved(a); moved[i] < Conflict || moved[i] > Done {
			return nil, fmt.Errorf("%w: %d for order %.40q", ErrReply, a, moves[i].OrderID)
		}
	}
	return moved, nil
}

// reasonLetters is what release.lua is told of why orders are rejected.
func reasonLetters(to Mark, moves []Move) string {
	if to != MarkRejected {
		return ""
	}
	letters, any := make([]byte, len(moves)), false
	for i := range moves {
		letters[i] = '-'
		if letter, ok := letterOf(moves[i].Reason); ok {
			letters[i], any = letter, true
		}
	}
	if !any {
		return ""
	}
	return string(letters)
}
