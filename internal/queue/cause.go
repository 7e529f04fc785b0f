package queue

import (
	"errors"

	amqp "github.com/rabbitmq/amqp091-go"
)

// Cause says in one word why a broker cannot be used. Operators' tools go by it.
type Cause string

// The causes. A new one also belongs into Causes and docs/operations.md.
const (
	// Away: no connection, or no answer.
	Away Cause = "away"
	// Blocked: connected, but the broker takes no messages: its memory or disk is short.
	Blocked Cause = "blocked"
	// Forbidden: user, password, virtual host or a right.
	Forbidden Cause = "forbidden"
	// Misconfigured: a queue or exchange is missing, or is another than ours.
	Misconfigured Cause = "misconfigured"
)

// Causes are all there are.
var Causes = []Cause{Away, Blocked, Forbidden, Misconfigured}

// ErrBlocked: the broker has said that it takes no messages now.
var ErrBlocked = errors.New("the broker takes no messages now")

// CauseOf names the cause of an error of this package, by the broker's code; empty
// for nil.
func CauseOf(err error) Cause {
	var refused *amqp.Error
	switch {
	case err == nil:
		return ""
	case errors.Is(err, ErrBlocked):
		return Blocked
	case !errors.As(err, &refused):
		return Away
	}
	switch refused.Code {
	case amqp.AccessRefused, amqp.NotAllowed:
		return Forbidden
	case amqp.NotFound, amqp.PreconditionFailed, amqp.ResourceLocked, amqp.NotImplemented:
		return Misconfigured
	}
	return Away
}
