package faults

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"net/http"
	"time"

	"github.com/seckill-edge/seckill/e2e/history"
)

const (
	// sellWithin is how soon after the heal every edge must sell again.
	sellWithin = 40 * time.Second
	// bound is how long after the heal all must be at rest and every fate known.
	bound = 45 * time.Second
	// rushFor bounds the final rush on what is left.
	rushFor = 3 * time.Second
	// roundFor bounds a whole round.
	roundFor = 3 * time.Minute
)

// Result is what one round showed.
type Result struct {
	Kind string
	Seed uint64
	history.Verdict
	// Clicks is all clicks, Unanswered those without an answer, Shut those that were
	// told to come again.
	Clicks, Unanswered, Shut int
	// Recovery is from the heal until every edge sold again; Settled until
	// everything was at rest.
	Recovery, Settled time.Duration
	Took              time.Duration
	// Err says that the round itself could not be played to its end.
	Err error
}

// Failed says whether anything is wrong.
func (r *Result) Failed() bool { return r.Err != nil || len(r.Violations) > 0 }

// plan is everything a seed chooses beside the fault itself.
type plan struct {
	total        int64
	limit        int
	before, last time.Duration
	crowd        uint64
	r            *rand.Rand // for the fault
}

func makePlan(k Kind, seed uint64) plan {
	name := fnv.New64a()
	_, _ = name.Write([]byte(k.Name))
	r := rand.New(rand.NewPCG(seed, name.Sum64()))
	p := plan{total: 300 + r.Int64N(1200), limit: 1 + r.IntN(3), crowd: r.Uint64()}
	p.before = between(r, [2]time.Duration{200 * time.Millisecond, 1500 * time.Millisecond})
	p.last = between(r, k.Last)
	p.r = r
	return p
}

// Play plays one round of a kind: a sale, a fault in the middle, its heal, a rush
// on what is left, and the judgement.
func (f *Field) Play(ctx context.Context, k Kind, seed uint64) Result {
	ctx, cancel := context.WithTimeout(ctx, roundFor)
	defer cancel()
	begun := time.Now()
	out := Result{Kind: k.Name, Seed: seed}
	out.Err = f.play(ctx, k, makePlan(k, seed), &out)
	out.Took = time.Since(begun)
	return out
}

func (f *Field) play(ctx context.Context, k Kind, p plan, out *Result) (err error) {
	fsync := k.Fsync
	if fsync == "" {
		fsync = everysec
	}
	if err := f.setFsync(ctx, fsync); err != nil {
		return err
	}
	_, deadBefore, err := f.depth()
	if err != nil {
		return err
	}
	fault := k.Make(f, p.r)
	if fault.Prepare != nil {
		if err := fault.Prepare(ctx); err != nil {
			return fmt.Errorf("preparing: %w", err)
		}
	}
	s, err := f.open(ctx, p.total, p.limit)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.close(context.WithoutCancel(ctx), s)) }()

	c := newClient(f.edgeURLs(), s)
	defer c.close()
	crowd := gather(ctx, c, p.crowd)
	healed, err := f.breakAndHeal(ctx, fault, p, crowd)
	if err == nil {
		f.awaitSelling(ctx, crowd)
		rush(ctx, crowd)
	}
	crowd.finish()
	if err != nil {
		return err
	}

	h := &history.History{
		Total: p.total, Limit: p.limit, Forgetful: k.Forgetful, Promise: k.Promise, Unheard: unheard, Healed: healed, Bound: bound,
		Clicks: crowd.clicks, Told: crowd.told,
	}
	if err := f.await(ctx, s, h); err != nil {
		return err
	}
	out.Settled = h.End.At.Sub(healed)
	h.Told = append(h.Told, lastWords(ctx, c, h.Clicks, func(click history.Click) time.Time {
		if last := healed.Add(bound); last.After(click.ResolveBy) {
			return last
		}
		return click.ResolveBy
	})...)
	// Copies of orders that are stored may still have come.
	if err := f.await(ctx, s, h); err != nil {
		return err
	}
	if h.End.Drift, err = f.drift(ctx, s); err != nil {
		return err
	}
	h.End.Dead -= deadBefore
	if k.DeadLetters {
		h.End.Dead = 0
	}
	var last time.Time
	if last, h.End.Selling = crowd.recovered(); h.End.Selling {
		out.Recovery = max(0, last.Sub(healed))
	}
	out.count(h.Clicks)
	out.Verdict = history.Check(h)
	return nil
}

func (r *Result) count(clicks []history.Click) {
	r.Clicks = len(clicks)
	for i := range clicks {
		switch clicks[i].Status {
		case 0:
			r.Unanswered++
		case http.StatusServiceUnavailable:
			r.Shut++
		}
	}
}

func (f *Field) edgeURLs() []string {
	urls := make([]string, len(f.Edges))
	for i, e := range f.Edges {
		urls[i] = e.URL
	}
	return urls
}

// breakAndHeal waits for the moment, breaks, waits, heals, and tells the crowd.
func (f *Field) breakAndHeal(ctx context.Context, fault Fault, p plan, w *crowd) (healed time.Time, err error) {
	if err := pause(ctx, p.before); err != nil {
		return healed, err
	}
	if err := fault.Inject(ctx); err != nil {
		err = fmt.Errorf("injecting: %w", err)
		if fault.Heal != nil {
			err = errors.Join(err, fault.Heal(ctx))
		}
		return healed, err
	}
	if err := pause(ctx, p.last); err != nil {
		return healed, err
	}
	if fault.Heal != nil {
		if err := fault.Heal(ctx); err != nil {
			return healed, fmt.Errorf("healing: %w", err)
		}
	}
	healed = time.Now()
	w.isHealed(healed)
	return healed, nil
}

func (f *Field) awaitSelling(ctx context.Context, w *crowd) {
	ctx, cancel := context.WithTimeout(ctx, sellWithin)
	defer cancel()
	select {
	case <-w.sellingC:
	case <-ctx.Done():
	}
}

// rush lets everybody click as fast as they can until all is sold out.
func rush(ctx context.Context, w *crowd) {
	w.rush.Store(true)
	for end := time.Now().Add(rushFor); time.Now().Before(end) && !w.allSoldOut(); {
		if pause(ctx, 50*time.Millisecond) != nil {
			return
		}
	}
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
