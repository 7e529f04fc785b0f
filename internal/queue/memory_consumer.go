package queue

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"time"
)

var errNotConsuming = errors.New("not consuming")

type memoryConsumer struct {
	broker   *memory
	prefetch int
	sessions atomic.Int32
}

func (c *memoryConsumer) Ready() error {
	if c.sessions.Load() == 0 {
		return errNotConsuming
	}
	return nil
}

func (c *memoryConsumer) Consume(ctx context.Context, out chan<- Delivery) error {
	s := &memorySession{broker: c.broker, unacked: map[*memoryDelivery]struct{}{}}
	c.sessions.Add(1)
	defer c.sessions.Add(-1)
	defer s.end()
	for ctx.Err() == nil {
		d, changed, due := s.take(c.prefetch)
		if d == nil {
			await(ctx, changed, due)
			continue
		}
		select {
		case out <- d:
		case <-ctx.Done():
		}
	}
	return nil
}

// await returns when ctx ends, changed is closed or due has come (zero: never).
func await(ctx context.Context, changed <-chan struct{}, due time.Time) {
	var alarm <-chan time.Time
	if !due.IsZero() {
		timer := time.NewTimer(time.Until(due))
		defer timer.Stop()
		alarm = timer.C
	}
	select {
	case <-ctx.Done():
	case <-changed:
	case <-alarm:
	}
}

// memorySession is one call of Consume. Its fields are guarded by broker.mu.
type memorySession struct {
	broker  *memory
	unacked map[*memoryDelivery]struct{} // nil once it has ended
}

// take returns the next delivery, or what to wait for.
func (s *memorySession) take(prefetch int) (d *memoryDelivery, changed <-chan struct{}, due time.Time) {
	m := s.broker
	m.mu.Lock()
	defer m.mu.Unlock()
	m.promote(time.Now())
	if first := m.ready.Front(); first != nil && len(s.unacked) < prefetch {
		e := m.ready.Remove(first).(*entry)
		d = &memoryDelivery{session: s, entry: e, redelivered: e.redelivered}
		s.unacked[d] = struct{}{}
		return d, nil, time.Time{}
	}
	if m.changed == nil {
		m.changed = make(chan struct{})
	}
	if first := m.delayed.Front(); first != nil {
		due = first.Value.(*entry).due
	}
	return nil, m.changed, due
}

// end gives back what is unacknowledged, in its old order, before all others.
func (s *memorySession) end() {
	m := s.broker
	m.mu.Lock()
	defer m.mu.Unlock()
	back := make([]*entry, 0, len(s.unacked))
	for d := range s.unacked {
		back = append(back, d.entry)
	}
	slices.SortFunc(back, func(a, b *entry) int { return cmp.Compare(b.seq, a.seq) })
	for _, e := range back {
		e.redelivered = true
		m.ready.PushFront(e)
	}
	s.unacked = nil
	m.wake()
}

type memoryDelivery struct {
	session     *memorySession
	entry       *entry
	redelivered bool
}

// Message returns a copy: another delivery of the same message must not see
// what this one's taker did to it.
func (d *memoryDelivery) Message() Message  { return copyOf(d.entry.message) }
func (d *memoryDelivery) Redelivered() bool { return d.redelivered }

func (d *memoryDelivery) Ack() error {
	return d.settle(func(m *memory) { m.live.add(-1, -d.entry.size) })
}

func (d *memoryDelivery) Requeue() error {
	return d.settle(func(m *memory) {
		d.entry.redelivered = true
		m.ready.PushFront(d.entry)
	})
}

// settle does what under the broker's lock if the delivery is still out.
func (d *memoryDelivery) settle(what func(*memory)) error {
	m := d.session.broker
	m.mu.Lock()
	defer m.mu.Unlock()
	if _, out := d.session.unacked[d]; !out {
		return ErrStale
	}
	delete(d.session.unacked, d)
	what(m)
	m.wake()
	return nil
}
