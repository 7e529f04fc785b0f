package queue

import (
	"context"
	"fmt"
	"sync"
)

type memoryPublisher struct {
	broker *memory
	// calls is held for reading by a Publish, for writing by Close: no message
	// gets in after Close has returned.
	calls  sync.RWMutex
	closed bool
}

func (p *memoryPublisher) Publish(ctx context.Context, to Target, m Message) error {
	p.calls.RLock()
	defer p.calls.RUnlock()
	if p.closed {
		return fmt.Errorf("%w: %w", ErrNotSent, ErrClosed)
	}
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("%w: %w", ErrNotSent, err)
	}
	if err := carries(m, defaultFrame); err != nil {
		return err
	}
	return p.broker.put(to, m)
}

func (p *memoryPublisher) Ready() error {
	p.calls.RLock()
	defer p.calls.RUnlock()
	if p.closed {
		return ErrClosed
	}
	return nil
}

// Close has nothing to wait for: a Publish into memory does not block.
func (p *memoryPublisher) Close(context.Context) error {
	p.calls.Lock()
	defer p.calls.Unlock()
	p.closed = true
	return nil
}
