package queue

import (
	"container/list"
	"context"
	"fmt"
	"sync"
	"time"
)

// memoryLimits bounds one broker in memory. Messages that are delivered and not
// acknowledged count until they are acknowledged.
type memoryLimits struct {
	messages, bytes         int
	deadMessages, deadBytes int
}

var defaultMemoryLimits = memoryLimits{
	messages: 65_536, bytes: 64 << 20,
	deadMessages: 4_096, deadBytes: 16 << 20,
}

// memories are the brokers of this process. They stay until it ends, as a broker
// outside would: what was confirmed must survive the edge that reloads.
var memories = struct {
	sync.Mutex
	byName map[string]*memory
}{byName: map[string]*memory{}}

func memoryNamed(name string) Broker {
	memories.Lock()
	defer memories.Unlock()
	m := memories.byName[name]
	if m == nil {
		m = newMemory(defaultMemoryLimits)
		memories.byName[name] = m
	}
	return m
}

// memory is a broker inside this process. It runs no goroutine: what is due is
// moved by whoever comes next, and a waiting consumer wakes for the earliest.
type memory struct {
	limits memoryLimits

	mu      sync.Mutex
	seq     uint64
	ready   list.List // *entry, next first
	delayed list.List // *entry by due: all wait equally long
	buried  list.List // *entry, oldest first
	live    tally     // ready, delayed and unacknowledged
	dead    tally
	// changed is closed when there may be something to do for a consumer; nil
	// while nobody waits.
	changed chan struct{}
}

type tally struct{ messages, bytes int }

func (t tally) fits(size, messages, bytes int) bool {
	return t.messages < messages && t.bytes+size <= bytes
}

func (t *tally) add(messages, bytes int) {
	t.messages += messages
	t.bytes += bytes
}

// entry is one message in the broker; seq is its place in the order of arrival.
type entry struct {
	message     Message
	size        int
	seq         uint64
	due         time.Time
	redelivered bool
}

func newMemory(limits memoryLimits) *memory {
	return &memory{limits: limits}
}

func (m *memory) Publisher(Options) Publisher {
	return &memoryPublisher{broker: m}
}

func (m *memory) Consumer(o Options) Consumer {
	return &memoryConsumer{broker: m, prefetch: o.withDefaults().Prefetch}
}

// Close does nothing: the broker belongs to the process.
func (m *memory) Close() error { return nil }

func (m *memory) Depth(context.Context) (waiting, dead int, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.ready.Len() + m.delayed.Len(), m.buried.Len(), nil
}

func (m *memory) put(to Target, msg Message) error {
	if to == probe {
		return fmt.Errorf("%w: target %q", ErrUnrouted, to)
	}
	e := &entry{message: copyOf(msg), size: sizeOf(msg)}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.promote(time.Now())
	m.seq++
	e.seq = m.seq
	if to == Dead {
		return m.bury(e)
	}
	if !m.live.fits(e.size, m.limits.messages, m.limits.bytes) {
		return full(to, m.live, m.limits.messages, m.limits.bytes)
	}
	switch to {
	case Orders:
		m.ready.PushBack(e)
	case Retry:
		e.due = time.Now().Add(RetryDelay)
		m.delayed.PushBack(e)
	default:
		return fmt.Errorf("%w: no target %q", ErrNotSent, to)
	}
	m.live.add(1, e.size)
	m.wake()
	return nil
}

func (m *memory) bury(e *entry) error {
	if !m.dead.fits(e.size, m.limits.deadMessages, m.limits.deadBytes) {
		return full(Dead, m.dead, m.limits.deadMessages, m.limits.deadBytes)
	}
	m.buried.PushBack(e)
	m.dead.add(1, e.size)
	return nil
}

func full(to Target, held tally, messages, bytes int) error {
	return fmt.Errorf("%w: %w: %s holds %d of %d messages, %d of %d bytes",
		ErrNotSent, ErrFull, to, held.messages, messages, held.bytes, bytes)
}

// promote moves what has waited long enough to the end of ready. The caller
// holds mu.
func (m *memory) promote(now time.Time) {
	for first := m.delayed.Front(); first != nil; first = m.delayed.Front() {
		e := first.Value.(*entry)
		if e.due.After(now) {
			return
		}
		m.delayed.Remove(first)
		m.ready.PushBack(e)
	}
}

// wake lets every waiting consumer look again. The caller holds mu.
func (m *memory) wake() {
	if m.changed != nil {
		close(m.changed)
		m.changed = nil
	}
}

func sizeOf(msg Message) int {
	size := len(msg.ID) + len(msg.Body)
	for k, v := range msg.Headers {
		size += len(k) + len(v)
	}
	return size
}
