// Package activities is the life of a sale: it is created, its stock loaded into
// Redis, opened, held, made larger or smaller, closed, and archived once all is
// settled; by an operator's word, or by a backend when its time has come. SQL keeps
// the word and Redis follows; each step may be repeated after a crash between the
// two.
package activities

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/seckill-edge/seckill/backend/readiness"
	"github.com/seckill-edge/seckill/backend/store"
	"github.com/seckill-edge/seckill/internal/order"
	"github.com/seckill-edge/seckill/internal/queue"
	"github.com/seckill-edge/seckill/lua"
)

// ErrRefused: the activity is not in a state in which this can be done. The
// message says why and what to do.
var ErrRefused = errors.New("refused")

// Deps are what a service works with. All are required down to Log.
type Deps struct {
	Store *store.Store
	Redis redis.UniversalClient
	// Queue tells how many messages wait.
	Queue  queue.Inspector
	Now    func() time.Time
	Random io.Reader
	Log    *slog.Logger
	// InHand is the number of messages and orders this process is working on;
	// nil in a process that consumes nothing.
	InHand func() int
	// Self is this process's id among the backends, whose words in Redis say what
	// the others have in hand; empty in a process that consumes nothing.
	Self string
	// Ahead is how long before its start a backend preheats and opens an activity by
	// itself; 0 means DefaultAhead.
	Ahead time.Duration
	// KeepKeys is how long Redis keeps the keys of an archived activity; 0 means
	// DefaultKeepKeys.
	KeepKeys time.Duration
	// AcceptRedisRisk says that backends begin a sale on a Redis that is not fit to
	// hold a stock, too. For development.
	AcceptRedisRisk bool
}

const (
	// DefaultAhead leaves an operator the time to mend what stands in the way.
	DefaultAhead = 10 * time.Minute
	// DefaultKeepKeys leaves edges that ask no backend a day to tell buyers what
	// became of their orders.
	DefaultKeepKeys = 24 * time.Hour
)

// Service manages activities. It is safe for concurrent use, also by several
// processes.
type Service struct {
	Deps
	// aheadGuessed: what the backends were told may differ from Ahead.
	aheadGuessed bool
}

// New makes a service.
func New(d Deps) *Service {
	guessed := d.Ahead == 0
	if d.InHand == nil {
		d.InHand = func() int { return 0 }
	}
	d.Ahead, d.KeepKeys = cmp.Or(d.Ahead, DefaultAhead), cmp.Or(d.KeepKeys, DefaultKeepKeys)
	return &Service{Deps: d, aheadGuessed: guessed}
}

// View is one activity as both stores know it.
type View struct {
	store.Activity
	// Snapshot is Redis's, nil if Redis has none of this activity.
	Snapshot *lua.Snapshot
	// Sale is where the sale stands, in the word that buyers are shown, too.
	Sale lua.SaleState
	// Why says in words what the activity is doing, and what to do if it should
	// sell and does not.
	Why string
	// Causes say in words from fixed lists what keeps it from selling, or its orders from
	// being stored: part → cause, see package readiness. Empty if nothing is known to.
	Causes map[string]string
}

// Create stores a new activity. It is Scheduled: a backend preheats and opens it
// ahead of its start, unless it is Manual.
// The error is *Invalid, store.ErrExists, or a failure.
func (s *Service) Create(ctx context.Context, n Draft) (store.Activity, error) {
	a, err := n.activity(s.Now())
	if err != nil {
		return store.Activity{}, err
	}
	if a.ID == "" {
		if a.ID, err = order.NewID(s.Now(), s.Random); err != nil {
			return store.Activity{}, err
		}
	}
	if err := s.Store.CreateActivity(ctx, a); err != nil {
		return store.Activity{}, err
	}
	s.Log.Info("activity created", "activity", a.ID, "product", a.ProductID, "units", a.Total)
	return a, nil
}

// List returns all activities, newest first as SQL gives them, with Redis's view
// of each. A Redis that is away leaves the snapshots out.
func (s *Service) List(ctx context.Context) ([]View, error) {
	all, err := s.Store.Activities(ctx)
	if err != nil {
		return nil, err
	}
	views := make([]View, len(all))
	others := &around{Service: s}
	snapshots := map[string]*lua.Snapshot{}
	for i, a := range all {
		snapshot, asked := snapshots[a.ProductID]
		if !asked {
			snapshot, err = s.snapshot(ctx, a.ProductID)
			if err != nil {
				return s.viewsWithoutRedis(all, err), nil
			}
			snapshots[a.ProductID] = snapshot
		}
		views[i] = others.explain(ctx, s.view(a, snapshot))
	}
	return views, nil
}

func (s *Service) viewsWithoutRedis(all []store.Activity, err error) []View {
	views := make([]View, len(all))
	for i, a := range all {
		views[i] = s.withoutRedis(a, err)
	}
	return views
}

func (s *Service) withoutRedis(a store.Activity, err error) View {
	return View{
		Activity: a, Sale: View{Activity: a}.saleAt(s.Now()), Why: "Redis cannot be asked: " + err.Error(),
		Causes: map[string]string{readiness.Redis: readiness.CauseOf(readiness.Redis, err)},
	}
}

// Show returns the activity that product sells through, else the newest one it
// ever had. store.ErrNotFound if it had none.
func (s *Service) Show(ctx context.Context, product string) (View, error) {
	behind := s.behind(ctx)
	a, err := s.find(ctx, product)
	if err != nil {
		if behind != "" && errors.Is(err, store.ErrNotFound) {
			err = fmt.Errorf("product %s: %w: %s", product, ErrRefused, behind)
		}
		return View{}, err
	}
	snapshot, err := s.snapshot(ctx, product)
	if err != nil {
		return s.withoutRedis(a, err), nil
	}
	v := s.view(a, snapshot)
	if words := cmp.Or(behind, s.proving(ctx, v), s.unready(ctx, v)); words != "" {
		v.Why = words
		if behind != "" {
			v.Causes = map[string]string{readiness.Database: string(store.RolledBack)}
			return v, nil
		}
	}
	return (&around{Service: s}).explain(ctx, v), nil
}

// find returns the live activity of product, else its newest.
func (s *Service) find(ctx context.Context, product string) (store.Activity, error) {
	if !order.ValidProduct(product) {
		return store.Activity{}, &Invalid{Fields: []Field{{"product", product, allowedID}}}
	}
	a, err := s.Store.LiveActivity(ctx, product)
	if err == nil || !errors.Is(err, store.ErrNotFound) {
		return a, err
	}
	all, err := s.Store.Activities(ctx)
	if err != nil {
		return store.Activity{}, fmt.Errorf("looking for the activity of product %s: %w", product, err)
	}
	found := false
	for _, candidate := range all {
		if candidate.ProductID == product && (!found || candidate.CreatedAt.After(a.CreatedAt)) {
			a, found = candidate, true
		}
	}
	if !found {
		return store.Activity{}, store.None("product " + product + " has no activity; create one first")
	}
	return a, nil
}

// snapshot is what Redis has of product; nil if nothing.
func (s *Service) snapshot(ctx context.Context, product string) (*lua.Snapshot, error) {
	ctx, cancel := context.WithTimeout(ctx, 3*time.Second)
	defer cancel()
	snapshot, known, err := lua.Audit(ctx, s.Redis, product)
	if err != nil {
		return nil, fmt.Errorf("asking Redis about product %s: %w", product, err)
	}
	if !known {
		return nil, nil
	}
	return &snapshot, nil
}

func (s *Service) view(a store.Activity, snapshot *lua.Snapshot) View {
	if snapshot != nil && snapshot.ID != a.ID {
		snapshot = nil
	}
	v := View{Activity: a, Snapshot: snapshot, Why: s.why(a, snapshot)}
	v.Sale = v.saleAt(s.Now())
	return v
}
