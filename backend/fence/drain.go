package fence

import (
	"context"
	"fmt"
	"time"

	"github.com/seckill-edge/seckill/lua"
)

const (
	pollEvery = 30 * time.Millisecond
	// edgesSpeak is how long an edge nobody has heard of yet may take to speak: it
	// looks at each of its products once a second.
	edgesSpeak = 1200 * time.Millisecond
	// remembered is how long before the hold a dead edge may have spoken last and
	// still be waited for, until lastWords after the hold: what it carries is
	// published or in the outbox by then (linger, tries and confirm time-out).
	remembered = time.Minute
	lastWords  = 9 * time.Second
	// gone is when the word of a dead edge or backend is removed.
	gone = 10 * time.Minute
	// onTheWire is how long a message may be between broker and consumer, where
	// neither counts it.
	onTheWire = 100 * time.Millisecond
	// publishWithin bounds one try to publish.
	publishWithin = 5 * time.Second
)

// drain waits until SQL can know every order that anybody knows: no edge carries
// one, the outbox and the queue are empty, and no backend has one in hand.
func (r *rebuild) drain(ctx context.Context) error {
	for {
		s, err := r.look(ctx)
		if err != nil {
			return err
		}
		waiting := ""
		for _, part := range []func(context.Context, lua.Snapshot) (string, error){r.edges, r.outbox, r.queue} {
			if waiting, err = part(ctx, s); waiting != "" || err != nil {
				break
			}
		}
		if err != nil {
			return err
		}
		if waiting == "" {
			return nil
		}
		if time.Now().After(r.deadline) {
			r.Log.Warn("fence: goes on without waiting any longer; SQL judges what comes late", "product", r.activity.ProductID, "waiting", waiting)
			return nil
		}
		if err := r.say(ctx, waiting); err != nil {
			return err
		}
		if !wait(ctx, pollEvery) {
			return ctx.Err()
		}
	}
}

// edges says which edges may still carry orders.
func (r *rebuild) edges(ctx context.Context, s lua.Snapshot) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	all, err := lua.Presence(ctx, r.Redis, r.activity.ProductID)
	if err != nil {
		return "", err
	}
	carrying, dead := 0, 0
	for _, e := range all {
		// How long before the hold it spoke last; a word from after now is from before
		// the server's clock went back.
		before := max(r.heldAt.Sub(e.At), e.At.Sub(s.Now))
		switch {
		case before > gone:
			if err := lua.Absent(ctx, r.Redis, r.activity.ProductID, e.ID); err != nil {
				return "", err
			}
		case e.Epoch >= r.epoch && e.Carried == 0, before > remembered:
		case !e.Silent(s.Now):
			carrying++
		case s.Now.Sub(r.heldAt) < lastWords:
			dead++
		}
	}
	if carrying > 0 || dead > 0 {
		r.quietSince = time.Time{}
	}
	switch {
	case carrying > 0:
		return fmt.Sprintf("waiting for %d edges that carry orders or have not spoken yet", carrying), nil
	case dead > 0:
		return fmt.Sprintf("waiting for the last orders of %d edges that have gone silent", dead), nil
	case s.Now.Sub(r.heldAt) < edgesSpeak:
		return "waiting for edges to speak", nil
	}
	return "", nil
}

// outbox publishes what nobody carries any more.
func (r *rebuild) outbox(ctx context.Context, s lua.Snapshot) (string, error) {
	if s.Outbox == 0 {
		return "", nil
	}
	waiting := fmt.Sprintf("publishing the %d orders of the outbox", s.Outbox)
	if err := r.say(ctx, waiting); err != nil {
		return "", err
	}
	ctx, cancel := context.WithTimeout(ctx, publishWithin)
	defer cancel()
	if err := r.Relay.PublishOutbox(ctx, s, 0); err != nil {
		r.Log.Debug("fence: the outbox is not published yet", "product", r.activity.ProductID, "error", err)
		return waiting, nil
	}
	// What is left has no order that could be published.
	after, err := r.look(ctx)
	if err == nil && after.Outbox == s.Outbox {
		return "", nil
	}
	r.quietSince = time.Time{}
	return waiting, err
}

// queue says what the broker and the backends still have.
func (r *rebuild) queue(ctx context.Context, s lua.Snapshot) (string, error) {
	asking, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	depth, _, err := r.Queue.Depth(asking)
	if err != nil || depth > 0 {
		r.quietSince = time.Time{}
		if err != nil {
			return "waiting for the broker, which does not answer", nil
		}
		return fmt.Sprintf("waiting for %d messages of the queue to be stored", depth), nil
	}
	if r.quietSince.IsZero() {
		r.quietSince = s.Now
	}
	backends, err := lua.Backends(asking, r.Redis)
	if err != nil {
		return "", err
	}
	busy := 0
	for _, b := range backends {
		switch {
		case s.Now.Sub(b.At).Abs() > gone:
			if err := lua.AbsentBackends(asking, r.Redis, b.ID); err != nil {
				return "", err
			}
		case b.Silent(s.Now):
		case b.InHand > 0 || b.At.Sub(r.quietSince) < onTheWire:
			busy++
		}
	}
	if busy > 0 {
		return fmt.Sprintf("waiting for %d backends to store what they have in hand", busy), nil
	}
	return "", nil
}

func wait(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}
