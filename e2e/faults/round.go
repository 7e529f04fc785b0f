package faults

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"net/http"
	"slices"
	"time"

	"github.com/seckill-edge/seckill/e2e/history"
	"github.com/seckill-edge/seckill/internal/order"
)

const (
	// On two quiet cores; a slow machine has longer. sellWithin is how soon after the heal every edge must sell again.
	sellWithin = 40 * time.Second
	// bound is how long after the heal all must be at rest and every fate known.
	bound = 45 * time.Second
	// rushFor bounds the final rush on what is left.
	rushFor = 3 * time.Second
	// roundFor bounds a whole round, beside the fault itself.
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

// lingers says that what is wrong may outlive the round, unlike what was late or
// untrue.
func (r *Result) lingers() bool {
	return r.Err != nil || len(r.Violations) > r.Count(history.Late)+r.Count(history.Untrue)
}

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
	if k.Total > 0 {
		p.total = k.Total
	}
	p.before = between(r, k.before())
	p.last = between(r, k.Last)
	p.r = r
	return p
}

// Play plays one round of a kind: a sale, a fault in the middle, its heal, a rush
// on what is left, and the judgement.
func (f *Field) Play(ctx context.Context, k Kind, seed uint64) Result {
	ctx, cancel := context.WithTimeout(ctx, scaled(roundFor)+k.Last[1])
	defer cancel()
	begun := time.Now()
	out := Result{Kind: k.Name, Seed: seed}
	out.Err = f.play(ctx, k, makePlan(k, seed), &out)
	out.Took = time.Since(begun)
	return out
}

func (f *Field) play(ctx context.Context, k Kind, p plan, out *Result) (err error) {
	fault, err := f.prepare(ctx, k, p)
	if err != nil {
		return err
	}
	_, deadBefore, err := f.depth()
	if err != nil {
		return err
	}
	var markets []*market
	defer func() {
		for _, m := range markets {
			m.client.close()
			err = errors.Join(err, f.close(context.WithoutCancel(ctx), m.sale))
		}
	}()
	for range max(k.Products, 1) {
		s, err := f.open(ctx, p.total, p.limit)
		if err != nil {
			return err
		}
		markets = append(markets, &market{sale: s, client: newClient(f.edgeURLs(), s)})
	}
	if err := f.sell(ctx, k, p, fault, markets, out); err != nil {
		return err
	}
	for _, m := range markets {
		if err := f.judge(ctx, k, m, deadBefore, out); err != nil {
			return err
		}
	}
	return nil
}

// prepare makes the fault of a round, and what it needs.
func (f *Field) prepare(ctx context.Context, k Kind, p plan) (Fault, error) {
	fsync := k.Fsync
	if fsync == "" {
		fsync = everysec
	}
	if err := f.setFsync(ctx, fsync); err != nil {
		return Fault{}, err
	}
	if err := f.awaitReady(ctx); err != nil {
		return Fault{}, err
	}
	fault := k.Make(f, p.r)
	if fault.Prepare != nil {
		if err := fault.Prepare(ctx); err != nil {
			return fault, fmt.Errorf("preparing: %w", err)
		}
	}
	return fault, nil
}

// sell lets the crowds buy, breaks something meanwhile and heals it, and notes what
// all were told and what the programs said.
func (f *Field) sell(ctx context.Context, k Kind, p plan, fault Fault, markets []*market, out *Result) error {
	w, err := f.watch(ctx, markets)
	if err != nil {
		return err
	}
	for i, m := range markets {
		m.crowd = gather(ctx, m.client, p.crowd+uint64(i), k)
	}
	outages, err := f.breakAndHeal(ctx, fault, p, markets)
	if err == nil {
		f.awaitSelling(ctx, markets)
		if k.Clicks == 0 {
			rush(ctx, markets)
		}
	}
	for _, m := range markets {
		m.crowd.finish()
	}
	if err == nil {
		err = f.settle(ctx, k, outages, markets)
	}
	statements, lines, watchErr := w.finish()
	if err := errors.Join(err, watchErr); err != nil {
		return err
	}
	for _, m := range markets {
		m.history.Statements, m.history.Lines = about(statements, m.product), lines
		statements, lines = rest(statements), nil // those of no product are judged once
		out.Recovery = max(out.Recovery, m.history.SellsAgain.Sub(m.history.Healed))
	}
	return nil
}

// settle begins the histories, and waits until the markets are at rest.
func (f *Field) settle(ctx context.Context, k Kind, outages []history.Outage, markets []*market) error {
	healed := outages[len(outages)-1].Healed
	for _, m := range markets {
		h := &history.History{
			Total: m.total, Limit: m.limit, Forgetful: k.Forgetful, Holds: k.Holds, Plenty: k.Plenty, Unheard: unheard,
			Outages: outages, Healed: healed, Bound: scaled(bound), Backends: len(f.Backends),
			Clicks: m.crowd.clicks, Told: m.crowd.told,
		}
		if at, selling := m.crowd.recovered(); selling {
			h.SellsAgain = at
		}
		m.history = h
		if err := f.await(ctx, m.sale, h); err != nil {
			return err
		}
	}
	return nil
}

// add joins the verdict on one more product.
func (r *Result) add(v history.Verdict) {
	r.Violations = append(r.Violations, v.Violations...)
	r.Orders += v.Orders
	r.Units += v.Units
	r.GivenUp += v.GivenUp
	for why, n := range v.Refused {
		if r.Refused == nil {
			r.Refused = map[order.Reason]int{}
		}
		r.Refused[why] += n
	}
	if v.Age > r.Age {
		r.Slowest, r.Age = v.Slowest, v.Age
	}
}

func (r *Result) count(clicks []history.Click) {
	r.Clicks += len(clicks)
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

// breakAndHeal waits for the moment, breaks, waits, heals, and tells the crowds. It
// returns what was broken, and when: one outage at least.
func (f *Field) breakAndHeal(ctx context.Context, fault Fault, p plan, markets []*market) ([]history.Outage, error) {
	if err := pause(ctx, p.before); err != nil {
		return nil, err
	}
	begun := time.Now()
	if err := fault.Inject(ctx); err != nil {
		err = fmt.Errorf("injecting: %w", err)
		if fault.Heal != nil {
			err = errors.Join(err, fault.Heal(ctx))
		}
		return nil, err
	}
	broken := time.Now()
	if err := pause(ctx, p.last); err != nil {
		return nil, err
	}
	healing := time.Now()
	if fault.Heal != nil {
		if err := fault.Heal(ctx); err != nil {
			return nil, fmt.Errorf("healing: %w", err)
		}
	}
	healed := time.Now()
	for _, m := range markets {
		m.crowd.isHealed(healed)
	}
	return stamp(fault.Breaks, begun, broken, healing, healed), nil
}

func (f *Field) awaitSelling(ctx context.Context, markets []*market) {
	ctx, cancel := context.WithTimeout(ctx, scaled(sellWithin))
	defer cancel()
	for _, m := range markets {
		select {
		case <-m.crowd.sellingC:
		case <-ctx.Done():
		}
	}
}

// rush lets everybody click as fast as they can until all is sold out.
func rush(ctx context.Context, markets []*market) {
	sold := func(m *market) bool { return m.crowd.allSoldOut() }
	for _, m := range markets {
		m.crowd.rush.Store(true)
	}
	for end := time.Now().Add(rushFor); time.Now().Before(end) && !all(markets, sold); {
		if pause(ctx, 50*time.Millisecond) != nil {
			return
		}
	}
}

func all(markets []*market, is func(*market) bool) bool {
	return !slices.ContainsFunc(markets, func(m *market) bool { return !is(m) })
}
