// Package tide keeps sales from a database that has forgotten: one that was restored
// from a backup, or failed over to a copy that was behind. To take it at its word
// would reject orders of a sale it does not know, let orders expire that are paid
// for, and sell their units a second time.
//
// The database counts, in one row, the quarters of a second in which something was
// written; Redis remembers how far it had come (the tide). If it is lower than that,
//
//	nothing is decided   every transaction that moves orders or units looks at the
//	                     tide and fails (store.ErrBehind); no backend does any of its
//	                     duties; what edges have sold waits in queue and outbox
//	nothing is sold      every sale is held, and unproven
//
// until Recover, by an operator's word, has the database take back from Redis what it
// has forgotten. If there is nothing to take back a backend goes on by itself. Then
// the fence proves each stock, and opens what was open.
package tide

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/seckill-edge/seckill/backend/duty"
	"github.com/seckill-edge/seckill/backend/store"
	"github.com/seckill-edge/seckill/lua"
)

// Deps are what a watch, and Recover, work with. All are required.
type Deps struct {
	Redis redis.UniversalClient
	Store *store.Store
	Log   *slog.Logger
}

const (
	// every is how often the tide rises, if anything was written, and is looked at.
	every       = 250 * time.Millisecond
	callTimeout = 5 * time.Second
	// lookTimeout bounds a look of the watch, afterFailure is how long after one that
	// failed the next is made: a store that is away has others waiting for it.
	lookTimeout  = time.Second
	afterFailure = time.Second
	// holdEvery is how often sales are held while the tide is low: somebody may open
	// one. tryEvery is how often it is looked whether anything is missing at all, and how
	// long after the tide has fallen first: a restore may be under way, table by table.
	holdEvery = time.Second
	tryEvery  = 10 * time.Second
)

// Watch looks at the tide all the time. It is safe for concurrent use; Run is called
// once.
type Watch struct {
	Deps

	mu  sync.Mutex
	err error
	// changed is closed when err changes.
	changed chan struct{}

	held, tried time.Time
}

// NewWatch makes a watch, which is not sure of anything yet.
func NewWatch(d Deps) *Watch {
	return &Watch{Deps: d, err: store.ErrUnsure, changed: make(chan struct{})}
}

// Err is nil while the database remembers all, else store.ErrBehind or, until both
// stores have been asked, store.ErrUnsure.
func (w *Watch) Err() error {
	_, err := w.state()
	return err
}

// Wait is Err, but gives both stores a second to be asked for the first time.
func (w *Watch) Wait(ctx context.Context) error {
	changed, err := w.state()
	if !errors.Is(err, store.ErrUnsure) {
		return err
	}
	timer := time.NewTimer(time.Second)
	defer timer.Stop()
	select {
	case <-changed:
	case <-timer.C:
	case <-ctx.Done():
	}
	return w.Err()
}

func (w *Watch) state() (changed <-chan struct{}, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.changed, w.err
}

func (w *Watch) set(err error) (before error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if before = w.err; !errors.Is(before, err) {
		w.err = err
		close(w.changed)
		w.changed = make(chan struct{})
	}
	return before
}

// Run watches until ctx ends. tell is given each look's failure, nil if there was
// none. A store that is away changes nothing of what is known: transactions look at
// the tide themselves, once the store has been made Wary.
func (w *Watch) Run(ctx context.Context, tell func(error)) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			w.last()
			return
		case <-timer.C:
		}
		err := duty.Safely(func() error { return w.look(ctx, time.Now()) })
		tell(err)
		if err != nil {
			timer.Reset(afterFailure)
		} else {
			timer.Reset(every)
		}
	}
}

// last lets Redis know of what was written in the last quarter of a second.
func (w *Watch) last() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	err := duty.Safely(func() error {
		_, _, err := heights(ctx, w.Deps)
		return err
	})
	if err != nil {
		w.Log.Debug("tide: its last rise is not told; whoever comes next tells it", "error", err)
	}
}

// While runs work whenever the database remembers all, and ends its context when it
// does not, until ctx ends.
func (w *Watch) While(ctx context.Context, work func(context.Context)) {
	for ctx.Err() == nil {
		changed, err := w.state()
		if err != nil {
			select {
			case <-changed:
			case <-ctx.Done():
			}
			continue
		}
		working, end := context.WithCancel(ctx)
		var watching sync.WaitGroup
		watching.Go(func() {
			select {
			case <-changed:
				end()
			case <-working.Done():
			}
		})
		work(working)
		end()
		watching.Wait()
	}
}

// look compares once, and does what has to be done.
func (w *Watch) look(ctx context.Context, now time.Time) error {
	looking, cancel := context.WithTimeout(ctx, lookTimeout)
	height, known, err := heights(looking, w.Deps)
	cancel()
	if err != nil {
		return err
	}
	w.Store.Mind(known)
	if height >= known {
		if errors.Is(w.set(nil), store.ErrBehind) {
			w.Log.Warn("tide: the database has taken back what it had forgotten, or it was given up; stocks are proven now")
		}
		return nil
	}
	if !errors.Is(w.set(store.ErrBehind), store.ErrBehind) {
		w.Log.Error("tide: "+store.ErrBehind.Error()+"; every sale is held", "height", height, "was", known)
		w.held, w.tried = time.Time{}, now
	}
	if now.Sub(w.held) >= holdEvery {
		w.held = now
		err = w.hold(ctx)
	}
	if err == nil && now.Sub(w.tried) >= tryEvery {
		w.tried = now
		err = w.goOn(ctx)
	}
	return err
}

// heights asks how high the tide has been, lets it rise, and tells Redis. Redis is
// asked first: what it remembers then the database has had, while it may be told of a
// rise by another backend at any time after.
func heights(ctx context.Context, d Deps) (height, known int64, err error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	if known, err = lua.HighTide(ctx, d.Redis, 0); err != nil {
		return 0, 0, err
	}
	if height, err = d.Store.Rise(ctx); err != nil {
		return 0, 0, err
	}
	_, err = lua.HighTide(ctx, d.Redis, height)
	return height, known, err
}

// Check compares once, for a command: ErrBehind, or why a store cannot be asked. The
// store minds the tide from then on.
func Check(ctx context.Context, d Deps) error {
	height, known, err := heights(ctx, d)
	if err != nil {
		return err
	}
	d.Store.Mind(known)
	if height < known {
		return store.ErrBehind
	}
	return nil
}

// goOn ends it if nothing is missing: a new database beside an empty Redis, or a loss
// that was made good otherwise.
func (w *Watch) goOn(ctx context.Context) error {
	report, err := Recover(ctx, w.Deps, true)
	if err != nil || !report.Nothing() {
		return err
	}
	w.Log.Warn("tide: the database is older than it was, but Redis knows of nothing that it has forgotten; going on")
	return lift(ctx, w.Deps, report)
}
