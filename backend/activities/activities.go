// Package activities is what an operator does with a sale: create it, load its
// stock into Redis, open, hold and close it, and ask whether all stores agree.
// SQL keeps the operator's word and Redis follows; each step may be repeated
// after a crash between the two.
package activities

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/seckill-edge/seckill/backend/store"
	"github.com/seckill-edge/seckill/internal/order"
	"github.com/seckill-edge/seckill/internal/queue"
	"github.com/seckill-edge/seckill/lua"
)

// ErrRefused: the activity is not in a state in which this can be done. The
// message says why and what to do.
var ErrRefused = errors.New("refused")

// Deps are what a service works with. All are required but InHand.
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
}

// Service manages activities. It is safe for concurrent use, also by several
// processes.
type Service struct{ Deps }

// New makes a service.
func New(d Deps) *Service {
	if d.InHand == nil {
		d.InHand = func() int { return 0 }
	}
	return &Service{d}
}

// View is one activity as both stores know it.
type View struct {
	store.Activity
	// Snapshot is Redis's, nil if Redis has none of this activity.
	Snapshot *lua.Snapshot
	// Why says in words what the activity is doing, and what to do if it should
	// sell and does not.
	Why string
}

// Create stores a new activity. It is Scheduled: Redis learns of it by Preheat.
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
		return store.Activity{}, fmt.Errorf("creating the activity of product %s: %w", a.ProductID, err)
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
	snapshots := map[string]*lua.Snapshot{}
	for i, a := range all {
		snapshot, asked := snapshots[a.ProductID]
		if !asked {
			snapshot, err = s.snapshot(ctx, a.ProductID)
			if err != nil {
				return viewsWithoutRedis(all), nil //nolint:nilerr // Why says that Redis is away
			}
			snapshots[a.ProductID] = snapshot
		}
		views[i] = view(a, snapshot, s.Now())
	}
	return views, nil
}

func viewsWithoutRedis(all []store.Activity) []View {
	views := make([]View, len(all))
	for i, a := range all {
		views[i] = View{Activity: a, Why: "Redis cannot be asked"}
	}
	return views
}

// Show returns the activity that product sells through, else the newest one it
// ever had. store.ErrNotFound if it had none.
func (s *Service) Show(ctx context.Context, product string) (View, error) {
	a, err := s.find(ctx, product)
	if err != nil {
		return View{}, err
	}
	snapshot, err := s.snapshot(ctx, product)
	if err != nil {
		return View{Activity: a, Why: "Redis cannot be asked: " + err.Error()}, nil //nolint:nilerr // Why says it
	}
	v := view(a, snapshot, s.Now())
	if words := s.proving(ctx, v); words != "" {
		v.Why = words
	}
	return v, nil
}

// proving says where the proof of the activity's stock stands; empty if it is
// proven.
func (s *Service) proving(ctx context.Context, v View) string {
	if v.State != store.Open && v.State != store.Held || v.Snapshot != nil && v.Snapshot.Proven() {
		return ""
	}
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	if words, err := lua.FenceNote(ctx, s.Redis, v.ProductID); err == nil && words != "" {
		return "held until its stock is proven: " + words
	}
	return ""
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
		return store.Activity{}, fmt.Errorf("product %s has no activity; create one first: %w", product, store.ErrNotFound)
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

func view(a store.Activity, snapshot *lua.Snapshot, now time.Time) View {
	if snapshot != nil && snapshot.ID != a.ID {
		snapshot = nil
	}
	return View{Activity: a, Snapshot: snapshot, Why: why(a, snapshot, now)}
}

// unproven says that Redis may have forgotten something since the activity was
// opened. One that was never opened has sold nothing.
func unproven(s lua.Snapshot) bool {
	return !s.Proven() && (s.RunID != "" || s.State == lua.Open)
}

// why explains a sale to the one who has to answer for it.
func why(a store.Activity, snapshot *lua.Snapshot, now time.Time) string {
	switch {
	case a.State == store.Closed:
		return "closed: over for good"
	case snapshot == nil && a.State == store.Scheduled:
		return "scheduled: its stock is not in Redis yet; preheat it"
	case snapshot == nil:
		return "Redis has lost it: nothing is sold until a backend (seckilld serve) has rebuilt its stock, which it does by itself"
	case snapshot.Damaged:
		return "a key in Redis is missing or damaged: nothing is sold until a backend (seckilld serve) has rebuilt its stock, which it does by itself"
	case a.State == store.Scheduled:
		return "preheated, but SQL does not know yet; preheat again"
	case snapshot.State == lua.Closed:
		return "closed in Redis, not in SQL yet; close it again"
	case unproven(*snapshot):
		return "Redis was restarted or failed over: nothing is sold until a backend (seckilld serve) has proven its stock, which it does by itself"
	case snapshot.State == lua.OnHold && a.State == store.Open:
		return "held in Redis though it should be open: its stock has to be proven first; audit it, then open it again"
	case snapshot.State == lua.OnHold:
		return "held: nothing is sold until it is opened"
	case a.State == store.Held:
		return "open in Redis though it should be held; hold it again"
	case now.Before(a.Start):
		return "open, starts at " + a.Start.UTC().Format(time.RFC3339)
	case !now.Before(a.End):
		return "ended at " + a.End.UTC().Format(time.RFC3339) + "; close it when its orders are settled"
	case snapshot.Available == 0 && snapshot.Frozen > 0:
		return "every unit is reserved; what is cancelled or expires comes back"
	case snapshot.Available == 0:
		return "sold out"
	}
	return "selling"
}
