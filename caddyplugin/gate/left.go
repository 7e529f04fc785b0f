package gate

import (
	"log/slog"
	"sync"
	"time"
)

const (
	// leftTellEvery is how often the log tells of orders that are left behind.
	leftTellEvery = time.Minute
	// leftCalm is how long none may have been before that is over.
	leftCalm = 5 * time.Second
)

// leftBehind tells of orders that stay in the outbox: of the first at once, of those
// that follow once a minute and all together, and of the end. It is safe for
// concurrent use.
type leftBehind struct {
	log *slog.Logger
	now func() time.Time

	mu                 sync.Mutex
	orders             int // since the outage began; 0: there is none
	since, told, later time.Time
}

// add notes that a message of so many orders could not be published.
func (l *leftBehind) add(orders int, product string, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.now()
	begins := l.orders == 0
	l.orders += orders
	l.later = now
	switch {
	case begins:
		l.since, l.told = now, now
		l.log.Warn("orders stay in the outbox, the backend will publish them", "product", product, "orders", orders, "error", err)
	case now.Sub(l.told) >= leftTellEvery:
		l.told = now
		l.log.Warn("orders still stay in the outbox", "product", product, "orders", l.orders, "for", now.Sub(l.since).Round(time.Second), "error", err)
	}
}

// over notes that a message was published.
func (l *leftBehind) over() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.orders == 0 || l.now().Sub(l.later) < leftCalm {
		return
	}
	l.log.Info("orders are published again", "left_behind", l.orders, "after", l.now().Sub(l.since).Round(time.Second))
	l.orders = 0
}
