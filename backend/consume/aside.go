package consume

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/seckill-edge/seckill/backend/duty"
	"github.com/seckill-edge/seckill/backend/metrics"
	"github.com/seckill-edge/seckill/internal/killpoint"
	"github.com/seckill-edge/seckill/internal/order"
	"github.com/seckill-edge/seckill/internal/queue"
)

const (
	// attempts is how often an order that the database refuses is tried, with
	// queue.RetryDelay in between.
	attempts = 5
	// asideTries bounds how often a message is offered to the dead letters before
	// its delivery goes back to the queue.
	asideTries = 4
	asidePause = 250 * time.Millisecond
	// reasonBytes bounds the reason in a dead letter's header.
	reasonBytes = 500
)

// sortSafely is sort. A panic over one message must not come back for ever with
// it: the second try goes on behind what the first has put aside, and is the last.
func (c *Consumer) sortSafely(ctx context.Context, m *message) error {
	for {
		err := duty.Safely(func() error { return c.sort(ctx, m) })
		if !c.passes.Panicked(duty.Consume, err, "message", m.delivery.Message().ID) || m.fell {
			return err
		}
		m.fell = true
	}
}

// sort puts aside what is wrong in m: the message as a whole, entries, orders that
// nobody has reserved, orders that cannot be stored. When it returns nil the message
// can be acknowledged.
//
// A bad entry decides nothing about the order that it names: whoever has written it
// need not have reserved anything. If Redis has that order, it is stored by its
// deadline from there (package promise), or by the reconciler.
func (c *Consumer) sort(ctx context.Context, m *message) error {
	in := m.delivery.Message()
	if m.wrong != nil {
		return c.bury(ctx, metrics.DeadMessage, in, m.wrong)
	}
	for i := m.buried; i < len(m.bad); i++ {
		entry := m.bad[i]
		// The id is made from the original's, so that a repeat is seen as one.
		alone := queue.Message{ID: fmt.Sprintf("%s/%d", nameOf(in), i), Body: withHeader(in.Body, entry.Raw), Headers: in.Headers}
		if err := c.bury(ctx, metrics.DeadEntry, alone, entry.Err); err != nil {
			return err
		}
		m.buried = i + 1
	}
	for len(m.unknown) > 0 {
		o := m.unknown[0]
		alone := queue.Message{ID: o.ID, Body: order.AppendMessage(nil, []order.Order{o}), Headers: in.Headers}
		if err := c.bury(ctx, metrics.DeadUnknown, alone, errUnknown); err != nil {
			return err
		}
		m.unknown = m.unknown[1:]
	}
	for _, f := range m.failed {
		if err := c.putOff(ctx, m, f); err != nil {
			return err
		}
	}
	return nil
}

// putOff sends an order that the database refused to the delayed retry, or to
// the dead letters when it has been there often enough.
func (c *Consumer) putOff(ctx context.Context, m *message, f failure) error {
	in := m.delivery.Message()
	before, _ := strconv.Atoi(in.Headers[queue.HeaderAttempt])
	attempt := max(0, min(before, attempts)) + 1
	alone, _ := portable(queue.Message{
		ID:      f.order.ID,
		Body:    order.AppendMessage(nil, []order.Order{f.order}),
		Headers: in.Headers,
	})
	alone.Headers[queue.HeaderAttempt] = strconv.Itoa(attempt)
	if attempt < attempts {
		if err := c.write(ctx, queue.Retry, alone); err != nil {
			return fmt.Errorf("putting off order %s: %w", f.order.ID, err)
		}
		c.Metrics.Retried()
		c.Log.Warn("consume: order cannot be stored; it comes again", "order", f.order.ID, "attempt", attempt, "error", f.err)
		return nil
	}
	if err := c.bury(ctx, metrics.DeadOrder, alone, f.err); err != nil {
		return err
	}
	return c.refuse(ctx, m, f.order)
}

// bury sends a message to the dead letters, with its reason, confirmed.
func (c *Consumer) bury(ctx context.Context, kind metrics.DeadKind, m queue.Message, reason error) error {
	m, note := portable(m)
	m.Headers[queue.HeaderReason] = cut(reason.Error(), reasonBytes) + note
	if err := c.write(ctx, queue.Dead, m); err != nil {
		return fmt.Errorf("sending %s to the dead letters: %w", kind, err)
	}
	killpoint.Here(killpoint.AfterBury)
	c.Metrics.Dead(kind)
	c.Log.Error("consume: dead letter", "kind", string(kind), "message", m.ID, "reason", reason)
	return nil
}

// publish offers m a few times. A broker that refuses for longer would hold up
// every good order behind it.
func (c *Consumer) publish(ctx context.Context, to queue.Target, m queue.Message) error {
	var err error
	for range asideTries {
		if err = c.Publisher.Publish(ctx, to, m); err == nil || errors.Is(err, queue.ErrUnfit) {
			return err
		}
		timer := time.NewTimer(asidePause)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return errors.Join(err, ctx.Err())
		}
	}
	return err
}

// withHeader is a message with the header line of body and one entry.
func withHeader(body, entry []byte) []byte {
	header, _, _ := bytes.Cut(body, []byte{'\n'})
	out := make([]byte, 0, len(header)+1+len(entry))
	return append(append(append(out, header...), '\n'), entry...)
}
