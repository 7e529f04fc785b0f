package queue

import (
	"errors"
	"fmt"
)

// ErrUnfit: no broker can carry the message as it is, now or ever. It comes wrapped
// beside ErrNotSent; no other message and no session suffers.
var ErrUnfit = errors.New("message cannot be carried")

const (
	// MaxNameBytes bounds the id of a message and the name of a header: AMQP's short
	// strings have one byte for their length.
	MaxNameBytes = 255
	// defaultFrame is RabbitMQ's largest frame unless it is configured. Id and headers
	// travel in one frame, whatever their number; a body in as many as it needs.
	defaultFrame = 128 << 10
	// frameOverhead is what the frame of the properties holds beside id and headers:
	// its own bounds, class, flags, body size, content type, delivery mode,
	// correlation id, and the lengths of id and headers.
	frameOverhead = 96
	// fieldOverhead is the length of a header's name, its type and the length of its
	// value.
	fieldOverhead = 6
)

// carries says what of m does not fit through a connection with frames of this many
// bytes. The library or the broker would end the connection over it, and with that
// every other message that is on its way.
func carries(m Message, frame int) error {
	if len(m.ID) > MaxNameBytes {
		return unfit("its id has %d bytes, more than %d", len(m.ID), MaxNameBytes)
	}
	size := frameOverhead + len(m.ID)
	for name, value := range m.Headers {
		if name == "" || len(name) > MaxNameBytes {
			return unfit("the name of a header has %d bytes, allowed are 1 to %d", len(name), MaxNameBytes)
		}
		if Routing(name) {
			return unfit("its header %s is the broker's, which reads further destinations in it", name)
		}
		size += fieldOverhead + len(name) + len(value)
	}
	if size > frame {
		return unfit("id and headers need %d bytes, more than %d", size, frame)
	}
	return nil
}

// Routing says whether the broker takes a header of this name for a list of further
// destinations. It ends the channel over one that is text.
func Routing(name string) bool { return name == "CC" || name == "BCC" }

func unfit(format string, args ...any) error {
	return fmt.Errorf("%w: %w: %s", ErrNotSent, ErrUnfit, fmt.Sprintf(format, args...))
}
