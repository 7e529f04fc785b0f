package queue

import (
	"context"
	"errors"
)

// probe is bound to no queue: what is sent there the broker gives back.
const probe Target = "probe"

// Probe tries whether messages can be sent, within ctx. A broker whose memory is short
// tells only those who send, so Ready of a publisher that has nothing to send does not
// know. CauseOf names the kind of the error.
func Probe(ctx context.Context, p Publisher) error {
	if err := p.Ready(); err != nil {
		return err
	}
	err := p.Publish(ctx, probe, Message{ID: string(probe)})
	if err == nil || errors.Is(err, ErrUnrouted) {
		return nil
	}
	if why := p.Ready(); why != nil { // it says more than that nothing was confirmed
		return why
	}
	return err
}
