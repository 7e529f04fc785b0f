// Package fence proves the stock of an activity whenever Redis may have forgotten
// some of it: restarted, failed over, flushed, with keys missing or damaged. The
// scripts sell nothing from such a stock; this package brings it back:
//
//	hold     the gate is shut under a new epoch
//	drain    until nothing is on its way that SQL does not know yet
//	compare  Redis and SQL, order by order; of orders that SQL knows SQL is right
//	prove    the counters are set to the sum of the records, and the gate opens
//	         again if SQL says so
//
// Every step may be repeated. Whoever dies in between leaves the activity held
// and unproven, and the next one begins again; of two at once the later one wins
// and the earlier one's writes are refused, because each hold raises the epoch.
package fence

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/seckill-edge/seckill/backend/compare"
	"github.com/seckill-edge/seckill/backend/metrics"
	"github.com/seckill-edge/seckill/backend/relay"
	"github.com/seckill-edge/seckill/backend/store"
	"github.com/seckill-edge/seckill/internal/killpoint"
	"github.com/seckill-edge/seckill/internal/queue"
	"github.com/seckill-edge/seckill/lua"
)

// Deps are what a fence works with. All are required.
type Deps struct {
	Redis   redis.UniversalClient
	Store   *store.Store
	Queue   queue.Inspector
	Relay   *relay.Relay
	Metrics *metrics.Metrics
	Log     *slog.Logger
	// Owner names this process among all.
	Owner string
}

// ErrBusy: somebody else proves the stock at this moment.
var ErrBusy = errors.New("another backend proves the stock")

const callTimeout = 5 * time.Second

// Fence proves stocks. It is safe for concurrent use.
type Fence struct {
	Deps
	mu sync.Mutex
	// busy are the products whose stock this process proves.
	busy map[string]bool
}

// New makes a fence.
func New(d Deps) *Fence { return &Fence{Deps: d, busy: map[string]bool{}} }

// enter is false if this process proves the product's stock already. The note in
// Redis keeps other processes away.
func (f *Fence) enter(product string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.busy[product] {
		return false
	}
	f.busy[product] = true
	return true
}

func (f *Fence) leave(product string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.busy, product)
}

// Proof is what a Rebuild has done.
type Proof struct {
	Why string
	// Rewritten is the number of buyers' records that were wrong or missing.
	Rewritten int
	// Published is the number of orders that were on their way nowhere.
	Published int
	// Was and Units are the counters before and after. Was is as stored: empty
	// for a counter that was missing or of a wrong type.
	Was   lua.Counters
	Units lua.Units
	Epoch int64
	State lua.ActivityState
	// Took is how long the gate was shut for this.
	Took time.Duration
}

// Rebuild proves the stock of an activity that is open or held in SQL, and leaves
// it in that state. why is for people. ErrBusy if somebody else is at it,
// lua.ErrOvertaken if somebody has begun it anew meanwhile, lua.ErrClosed if the
// activity is closed in Redis. After any error it is held or unproven: nothing is
// sold until a Rebuild succeeds.
func (f *Fence) Rebuild(ctx context.Context, a store.Activity, why string) (Proof, error) {
	if !f.enter(a.ProductID) {
		return Proof{Why: why}, ErrBusy
	}
	defer f.leave(a.ProductID)
	r := &rebuild{Fence: f, activity: a, began: time.Now(), proof: Proof{Why: why}, published: map[string]bool{}}
	err := r.run(ctx)
	forget, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
	defer cancel()
	if !errors.Is(err, ErrBusy) {
		err = errors.Join(err, lua.DropFenceNote(forget, f.Redis, a.ProductID, f.Owner))
	}
	if err != nil {
		return r.proof, fmt.Errorf("proving the stock of product %s: %w", a.ProductID, err)
	}
	r.proof.Took = time.Since(r.began)
	f.Metrics.Rebuilt(r.proof.Took)
	f.Log.Warn("fence: stock proven", "product", a.ProductID, "activity", a.ID, "why", why, "state", r.proof.State,
		"epoch", r.proof.Epoch, "rewritten", r.proof.Rewritten, "published", r.proof.Published, "was", r.proof.Was, "units", r.proof.Units,
		"took", r.proof.Took)
	return r.proof, nil
}

// rebuild is one Rebuild under way.
type rebuild struct {
	*Fence
	activity store.Activity
	began    time.Time
	proof    Proof

	epoch    int64
	server   string    // the run id of the server it works on
	heldAt   time.Time // by Redis's clock
	deadline time.Time // what is on its way then is waited for no longer
	said     time.Time
	words    string
	// quietSince is when, by Redis's clock, the queue was seen empty first and was
	// so ever since; zero while it is not.
	quietSince time.Time
	// lost are orders that nobody knows but Redis; published are those that were
	// sent to the queue for it.
	published map[string]bool
}

// patience bounds the drain: after it the rebuild goes on, because a sale must
// not stand still for a broker that is away. What comes later SQL judges, and the
// reconciler finds.
const patience = 30 * time.Second

func (r *rebuild) run(ctx context.Context) error {
	if err := r.say(ctx, "shutting the gate"); err != nil {
		return err
	}
	if err := r.hold(ctx); err != nil {
		return err
	}
	killpoint.Here(killpoint.AfterHold)
	if err := r.restoreFromOutbox(ctx); err != nil {
		return err
	}
	for {
		if err := r.drain(ctx); err != nil {
			return err
		}
		proven, err := r.settle(ctx)
		if proven || err != nil {
			return err
		}
		if !wait(ctx, pollEvery) {
			return ctx.Err()
		}
	}
}

// settle compares until a look finds nothing to write, and proves what it has
// seen. False if something is on its way again.
func (r *rebuild) settle(ctx context.Context) (bool, error) {
	for {
		was, err := r.counters(ctx)
		if err != nil {
			return false, err
		}
		result, changes, err := r.compare(ctx)
		if err != nil {
			return false, err
		}
		if len(changes.lost) > 0 && r.publishLost(ctx, changes.lost) {
			return false, nil
		}
		if changes.records > 0 {
			killpoint.Here(killpoint.AfterRewrite)
			continue
		}
		if result.Units.Available < 0 {
			return false, fmt.Errorf("the records of product %s hold %d units frozen and %d sold, more than its %d: %w; it stays held; `seckilld reconcile %s --dry-run` names the orders SQL does not know",
				r.activity.ProductID, result.Units.Frozen, result.Units.Sold, r.activity.Total, lua.ErrUnits, r.activity.ProductID)
		}
		err = r.prove(ctx, was, result.Units)
		if errors.Is(err, lua.ErrMoved) {
			return false, nil
		}
		return err == nil, err
	}
}

// look reads the activity and makes sure that it is still ours to prove.
func (r *rebuild) look(ctx context.Context) (lua.Snapshot, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	s, there, err := lua.Audit(ctx, r.Redis, r.activity.ProductID)
	if err != nil {
		return s, err
	}
	if !there || s.ID != r.activity.ID || s.Epoch != r.epoch || s.ServerRun != r.server || s.State != lua.OnHold {
		return s, lua.ErrOvertaken
	}
	return s, nil
}

func (r *rebuild) counters(ctx context.Context) (lua.Counters, error) {
	if _, err := r.look(ctx); err != nil {
		return lua.Counters{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	was, err := lua.ReadCounters(ctx, r.Redis, r.activity.ProductID)
	if r.proof.Was == (lua.Counters{}) {
		r.proof.Was = was
	}
	return was, err
}

// say tells people where it stands, and others that somebody is at it.
func (r *rebuild) say(ctx context.Context, words string) error {
	now := time.Now()
	if words == r.words && now.Sub(r.said) < time.Second || now.Sub(r.said) < 100*time.Millisecond {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	mine, err := lua.NoteFence(ctx, r.Redis, r.activity.ProductID, r.Owner, r.proof.Why+"; "+words)
	if err != nil {
		return err
	}
	if !mine {
		return ErrBusy
	}
	r.said, r.words = now, words
	return nil
}

// sides are the two stores.
func (r *rebuild) sides() compare.Sides { return compare.Sides{Redis: r.Redis, Store: r.Store} }
