package faults

import (
	"context"
	"time"

	"github.com/seckill-edge/seckill/e2e/history"
)

// market is one product in a round, and who buys there.
type market struct {
	sale
	client  *client
	crowd   *crowd
	history *history.History
}

// judge asks for the fate of every order of a market that is at rest, and judges it.
func (f *Field) judge(ctx context.Context, k Kind, m *market, deadBefore int, out *Result) error {
	h := m.history
	out.Settled = max(out.Settled, h.End.At.Sub(h.Healed))
	h.Told = append(h.Told, lastWords(ctx, m.client, h.Clicks, func(click history.Click) time.Time {
		if last := h.Healed.Add(h.Bound); last.After(click.ResolveBy) {
			return last
		}
		return click.ResolveBy
	})...)
	if err := f.awaitAsking(ctx, k, h); err != nil {
		return err
	}
	h.Told = append(h.Told, askEverywhere(ctx, m.client, h)...)
	// Copies of orders that are stored may still have come.
	if err := f.await(ctx, m.sale, h); err != nil {
		return err
	}
	var err error
	if h.End.Drift, err = f.drift(ctx, m.sale); err != nil {
		return err
	}
	h.End.Selling = !h.SellsAgain.IsZero()
	h.End.Dead -= deadBefore
	if k.DeadLetters {
		h.End.Dead = 0
	}
	out.count(h.Clicks)
	out.add(history.Check(h))
	return nil
}

// awaitAsking waits until every edge is to be asked once more.
func (f *Field) awaitAsking(ctx context.Context, k Kind, h *history.History) error {
	if k.AskAgain == 0 {
		return nil
	}
	var last time.Time
	for i := range h.Clicks {
		if by := h.Clicks[i].ResolveBy; by.After(last) {
			last = by
		}
	}
	return pause(ctx, time.Until(last.Add(k.AskAgain)))
}

// await reads the stores until they are at rest, or have had their time.
func (f *Field) await(ctx context.Context, s sale, h *history.History) (err error) {
	for end := h.Healed.Add(h.Bound); ; {
		if h.End, err = f.read(ctx, s); err == nil && atRest(&h.End) {
			return nil
		}
		if time.Now().After(end) {
			return err
		}
		if err := pause(ctx, 200*time.Millisecond); err != nil {
			return err
		}
	}
}
