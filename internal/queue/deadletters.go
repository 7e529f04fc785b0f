package queue

import (
	"context"
	"maps"
)

// Verdict is what becomes of a dead letter.
type Verdict int

const (
	// Keep leaves it where it is.
	Keep Verdict = iota
	// Replay sends it to Orders again, without HeaderAttempt and HeaderReason.
	Replay
	// Drop removes it for good.
	Drop
)

// DeadLetters lets people look after what was sent to Dead.
type DeadLetters interface {
	// Judge shows up to limit dead letters to verdict, oldest first, and does what
	// it says. It returns how many it did that to. They are hidden from other
	// calls meanwhile. After an error a letter may be in Orders and still among
	// the dead, but never in neither.
	Judge(ctx context.Context, limit int, verdict func(Message) Verdict) (judged int, err error)
}

// revived is m as it was before it failed.
func revived(m Message) Message {
	m.Headers = maps.Clone(m.Headers)
	delete(m.Headers, HeaderAttempt)
	delete(m.Headers, HeaderReason)
	return m
}
