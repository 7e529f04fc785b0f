package queue

import (
	"context"
	"fmt"
	"slices"
)

func (m *memory) Judge(ctx context.Context, limit int, verdict func(Message) Verdict) (judged int, err error) {
	var kept []*entry
	defer func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		for _, k := range slices.Backward(kept) {
			m.buried.PushFront(k)
		}
	}()
	for ; judged < limit; judged++ {
		if err := ctx.Err(); err != nil {
			return judged, fmt.Errorf("judging dead letters: %w", err)
		}
		e := m.exhume()
		if e == nil {
			return judged, nil
		}
		switch verdict(copyOf(e.message)) {
		case Replay:
			if err := m.put(Orders, revived(e.message)); err != nil {
				kept = append(kept, e)
				return judged, fmt.Errorf("replaying dead letter %s: %w", e.message.ID, err)
			}
			m.forget(e)
		case Drop:
			m.forget(e)
		default:
			kept = append(kept, e)
		}
	}
	return judged, nil
}

// exhume takes the oldest dead letter, which still counts, or nil.
func (m *memory) exhume() *entry {
	m.mu.Lock()
	defer m.mu.Unlock()
	first := m.buried.Front()
	if first == nil {
		return nil
	}
	return m.buried.Remove(first).(*entry)
}

func (m *memory) forget(e *entry) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.dead.add(-1, -e.size)
}
