package activities

import (
	"context"
	"fmt"
	"time"

	"github.com/seckill-edge/seckill/lua"
)

const (
	// queueWithin bounds the look at a broker that may hang.
	queueWithin = time.Second
	// noticed is how long after a backend's last word the broker has noticed its death,
	// at the latest. Until then it shows nobody the messages that the backend had taken.
	noticed = 20 * time.Second
	// onTheWire is how long a message may be between broker and backend, where
	// neither counts it.
	onTheWire = 100 * time.Millisecond
)

// traffic looks at what is on its way between broker and SQL, again and again.
type traffic struct {
	*Service
	// away says that the broker did not answer; it is not asked again.
	away bool
	// quietSince is when, by Redis's clock, nothing was on its way first and ever
	// since; zero while something is.
	quietSince time.Time
	// last is what Redis had of the activity when it was read last.
	last *lua.Snapshot
}

// forget begins with another activity.
func (t *traffic) forget() { t.quietSince, t.last = time.Time{}, nil }

// saw notes whether Redis has moved: then orders may have come since the last look.
func (t *traffic) saw(now *lua.Snapshot) {
	if !same(t.last, now) {
		t.quietSince = time.Time{}
	}
	t.last = now
}

// way is one look at the traffic.
type way struct {
	// messages counts what waits in the broker and what backends have in hand.
	messages   int
	queueKnown bool
	// unheard says that a backend has not spoken since the queue was seen empty: it
	// may have taken a message then.
	unheard bool
}

func (t *traffic) look(ctx context.Context) (way, error) {
	ctx, cancel := context.WithTimeout(ctx, 3*time.Second)
	defer cancel()
	now, err := t.Redis.Time(ctx).Result()
	if err != nil {
		return way{}, fmt.Errorf("asking Redis for the time: %w", err)
	}
	var w way
	if !t.away {
		w.messages, w.queueKnown = t.depth(ctx)
		t.away = !w.queueKnown
	}
	if w.messages > 0 {
		t.quietSince = time.Time{}
	} else if t.quietSince.IsZero() {
		t.quietSince = now
	}
	// The own count is exact; the others' words are as old as they say.
	w.messages += t.InHand()
	backends, err := lua.Backends(ctx, t.Redis)
	if err != nil {
		return way{}, err
	}
	for _, b := range backends {
		age := now.Sub(b.At)
		switch {
		case b.ID == t.Self || age > noticed:
		case b.InHand > 0 && !b.Silent(now):
			w.messages += int(b.InHand)
		case b.Silent(now), b.At.Before(t.quietSince.Add(onTheWire)):
			w.unheard = true
		}
	}
	return w, nil
}

// depth is false if the broker does not answer.
func (t *traffic) depth(ctx context.Context) (waiting int, known bool) {
	ctx, cancel := context.WithTimeout(ctx, queueWithin)
	defer cancel()
	waiting, _, err := t.Queue.Depth(ctx)
	if err != nil {
		t.Log.Debug("audit: the broker cannot be asked for its depth", "error", err)
	}
	return waiting, err == nil
}
