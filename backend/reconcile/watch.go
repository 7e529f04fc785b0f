package reconcile

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/seckill-edge/seckill/backend/duty"
	"github.com/seckill-edge/seckill/backend/fence"
	"github.com/seckill-edge/seckill/backend/store"
	"github.com/seckill-edge/seckill/lua"
)

const (
	// glance is how often each live activity is looked at: one small script.
	glance = 250 * time.Millisecond
	// listEvery is how often SQL is asked which activities there are.
	listEvery = time.Second
	// doubtFor is how long orders may be frozen or in the outbox, or SQL and Redis
	// differ in their sums, before the whole activity is inspected: after that with
	// ever longer pauses up to longPause as long as nothing is found, for a sale
	// with a pay window has frozen units all the time.
	doubtFor  = 5 * time.Second
	longPause = time.Minute
	// everyway is how often an activity is inspected without any doubt.
	everyway = 5 * time.Minute
	// atOnce bounds the activities that are rebuilt or inspected at a time.
	atOnce = 8
	// share bounds inspections to a twentieth of the time.
	share = 20
	// closedRest is how long a closed activity that is settled is not looked at.
	closedRest = time.Minute
	// retry and longRetry are the pauses after a rebuild that failed.
	retry     = 500 * time.Millisecond
	longRetry = 10 * time.Second
)

// Watch looks after all activities by itself.
type Watch struct {
	*Reconciler
	told   *duty.Log
	known  []store.Activity
	listed time.Time
	plans  map[string]*plan
	// silent are the backends that were dead at the last look; nil before the first.
	silent map[string]bool
	slots  chan struct{}
	jobs   sync.WaitGroup
}

// plan is what is remembered of one activity between two glances.
type plan struct {
	mu   sync.Mutex
	busy bool
	// rebuild and inspect are the earliest times for either; pauses grow.
	rebuild, inspect           time.Time
	rebuildPause, inspectPause time.Duration
	// full is when the next inspection without any doubt is due.
	full time.Time
	// doubt and uncertain are since when there has been some; words is which.
	doubt, uncertain time.Time
	words            string
	rest             time.Time
	suspicion
}

// NewWatch makes a watch over all activities.
func (r *Reconciler) NewWatch() *Watch {
	return &Watch{
		Reconciler: r, told: duty.NewLog(r.Log, r.Metrics, time.Now), plans: map[string]*plan{}, slots: make(chan struct{}, atOnce),
	}
}

// Run watches until ctx ends, and returns when all it has begun has ended. tell
// is given each pass's failure, also a *duty.PanicError, nil if there was none. One
// process at a time is enough, and more do no harm.
func (w *Watch) Run(ctx context.Context, tell func(error)) {
	defer w.jobs.Wait()
	tick := time.NewTicker(glance)
	defer tick.Stop()
	for {
		tell(duty.Safely(func() error { return w.pass(ctx, time.Now()) }))
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

func (w *Watch) pass(ctx context.Context, now time.Time) (err error) {
	if now.Sub(w.listed) >= listEvery {
		asking, cancel := context.WithTimeout(ctx, callTimeout)
		all, failed := w.Store.Activities(asking)
		cancel()
		if failed == nil {
			w.known, w.listed = all, now
		} else {
			// What is known is looked after all the same: a gate can be shut without SQL.
			err = fmt.Errorf("listing activities: %w", failed)
		}
		err = errors.Join(err, w.deaths(ctx, now))
	}
	for _, a := range w.known {
		if a.State == store.Scheduled {
			continue
		}
		// The next product may be another server's.
		if failed := duty.Safely(func() error { return w.glance(ctx, a, now) }); failed != nil && err == nil {
			err = fmt.Errorf("product %s: %w", a.ProductID, failed)
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
	}
	return err
}

// glance looks at one activity, and begins what has to be done.
func (w *Watch) glance(ctx context.Context, a store.Activity, now time.Time) error {
	p := w.plans[a.ID]
	if p == nil {
		p = &plan{full: now.Add(everyway), inspectPause: doubtFor, rebuildPause: retry, suspicion: suspicion{crash: now}}
		w.plans[a.ID] = p
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.busy || now.Before(p.rest) {
		return nil
	}
	asking, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	s, there, err := lua.Audit(asking, w.Redis, a.ProductID)
	if err != nil {
		return err
	}
	if words, certain := fence.Needs(a, s, there); words != "" {
		if p.sure(words, certain, now) && !now.Before(p.rebuild) {
			w.begin(ctx, a.ProductID, p, func(ctx context.Context) { w.prove(ctx, a, p, words) })
		}
		return nil
	}
	p.words = ""
	if !there || s.ID != a.ID {
		p.rest = now.Add(closedRest)
		return nil
	}
	switch {
	case p.due(a, s, now), p.stands(a, s, now):
		w.begin(ctx, a.ProductID, p, func(ctx context.Context) { w.inspect(ctx, a, p) })
	case p.asks(a, s, now):
		w.begin(ctx, a.ProductID, p, func(ctx context.Context) { w.askPaid(ctx, a, p) })
	case a.State == store.Closed && p.doubt.IsZero():
		p.rest = now.Add(closedRest)
	}
	return nil
}

// sure says that a reason is certain, or has stood for longer than an operator's
// step takes.
func (p *plan) sure(words string, certain bool, now time.Time) bool {
	if words != p.words {
		p.words, p.uncertain = words, now
	}
	return certain || now.Sub(p.uncertain) >= 2*listEvery
}

// due says that it is time to inspect an activity whose stock is proven.
func (p *plan) due(a store.Activity, s lua.Snapshot, now time.Time) bool {
	if s.Outbox == 0 && s.Frozen == 0 && a.Reserved == s.Sold {
		p.doubt, p.inspectPause = time.Time{}, doubtFor
	} else if p.doubt.IsZero() {
		p.doubt = now
	}
	doubtful := !p.doubt.IsZero() && now.Sub(p.doubt) >= doubtFor
	return !now.Before(p.inspect) && (doubtful || a.State != store.Closed && !now.Before(p.full))
}

// begin runs a job beside the glances, unless too many run.
func (w *Watch) begin(ctx context.Context, product string, p *plan, job func(context.Context)) {
	select {
	case w.slots <- struct{}{}:
	default:
		return
	}
	p.busy = true
	w.jobs.Go(func() {
		err := duty.Safely(func() error { job(ctx); return nil })
		p.mu.Lock()
		defer p.mu.Unlock()
		if w.told.Panicked(duty.Reconcile, err, "product", product) {
			p.rest = time.Now().Add(doubtFor) // or it would be begun again at once
		}
		p.busy = false
		<-w.slots
	})
}

// prove rebuilds one stock.
func (w *Watch) prove(ctx context.Context, a store.Activity, p *plan, words string) {
	err := duty.Safely(func() error {
		_, err := w.Fence.Rebuild(ctx, a, words)
		return err
	})
	p.mu.Lock()
	defer p.mu.Unlock()
	if err == nil {
		w.told.Tell(ctx, duty.Fence, a.ProductID, nil)
		p.rebuildPause, p.full = retry, time.Now().Add(everyway)
		return
	}
	p.rebuild = time.Now().Add(p.rebuildPause)
	p.rebuildPause = min(2*p.rebuildPause, longRetry)
	if !errors.Is(err, fence.ErrBusy) && !errors.Is(err, lua.ErrClosed) {
		w.told.Tell(ctx, duty.Fence, a.ProductID, fmt.Errorf("nothing is sold: %w", err))
	}
}

// inspect reconciles one activity. While orders are on their way it waits: they
// explain what is in doubt.
func (w *Watch) inspect(ctx context.Context, a store.Activity, p *plan) {
	began := time.Now()
	p.mu.Lock()
	overdue := !began.Before(p.full)
	p.mu.Unlock()
	var report Report
	inspected := false
	err := duty.Safely(func() error {
		idle, err := w.idle(ctx)
		if inspected = err == nil && (idle || overdue); inspected {
			report, err = w.Reconcile(ctx, a, false)
		}
		return err
	})
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	switch {
	case !inspected:
		p.inspect = now.Add(listEvery)
	case err == nil && len(report.Findings) > 0 && report.Clean():
		p.doubt, p.inspectPause = time.Time{}, doubtFor
		p.inspect = now
	default:
		p.inspect = now.Add(max(p.inspectPause, share*now.Sub(began)))
		p.inspectPause = min(2*p.inspectPause, longPause)
	}
	p.next = now.Add(max(listEvery, share*now.Sub(began)))
	if inspected {
		p.full = now.Add(everyway)
		p.settled(began)
	}
	if inspected || err != nil {
		w.told.Tell(ctx, duty.Reconcile, a.ProductID, err)
	}
}
