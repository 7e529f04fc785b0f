package activities

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/seckill-edge/seckill/backend/store"
	"github.com/seckill-edge/seckill/internal/killpoint"
	"github.com/seckill-edge/seckill/lua"
)

// Obstacle is what keeps an activity that is due from being ready to sell.
type Obstacle string

// The obstacles.
const (
	// Nothing stands in its way: a backend makes it ready within a second or two.
	Nothing Obstacle = "nothing"
	// Predecessor: Redis has another activity of the product that is not closed or
	// not settled.
	Predecessor Obstacle = "predecessor"
	// Orders: SQL holds orders of it, and Redis has nothing of it.
	Orders Obstacle = "orders"
	// Unfit: Redis is not fit to hold a stock.
	Unfit Obstacle = "redis_unfit"
	// Away: a store cannot be asked.
	Away Obstacle = "store_away"
)

// Obstacles are all of them.
var Obstacles = []Obstacle{Nothing, Predecessor, Orders, Unfit, Away}

// blocked is a refusal that says which obstacle it is.
type blocked struct {
	Obstacle
	error
}

func blockedBy(o Obstacle, words string) error {
	return &blocked{o, fmt.Errorf("%w: %s", ErrRefused, words)}
}

// Unwrap returns the refusal.
func (b *blocked) Unwrap() error { return b.error }

// clock is the later of this machine's and Redis's, by which sales begin: whoever is
// slow must not let one begin late, and to be ready early harms nobody.
func (s *Service) clock(ctx context.Context) time.Time {
	asking, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	now := s.Now()
	if there, err := s.Redis.Time(asking).Result(); err == nil && there.After(now) {
		return there
	}
	return now
}

// due says that a backend has to make the activity ready at now.
func (s *Service) due(a store.Activity, now time.Time) bool {
	return a.State == store.Scheduled && !a.Manual && !now.Before(a.Start.Add(-s.Ahead)) && now.Before(a.End)
}

// begin preheats and opens a scheduled activity; before its start the scripts sell
// nothing of it. SQL learns of it with the opening, so that what a crash leaves in
// between is scheduled still and begun again, and an activity that SQL has as held
// is held by an operator. It may be repeated, also by several at once.
func (s *Service) begin(ctx context.Context, a store.Activity) error {
	options := s.accepted()
	if _, err := s.preheat(ctx, a, options); err != nil {
		return fmt.Errorf("preheating product %s: %w", a.ProductID, err)
	}
	if err := s.changedMeanwhile(ctx, a); err != nil {
		return fmt.Errorf("preheating product %s: %w", a.ProductID, err)
	}
	killpoint.Here(killpoint.AfterPreheat)
	return s.openUnlessHeld(ctx, a, options)
}

// openUnlessHeld opens what nobody has held; what somebody holds at this moment is
// his.
func (s *Service) openUnlessHeld(ctx context.Context, a store.Activity, options []Option) error {
	_, err := s.openFrom(ctx, a, []store.ActivityState{store.Scheduled, store.Open}, options)
	if errors.Is(err, store.ErrState) || errors.Is(err, lua.ErrOvertaken) {
		return nil
	}
	return err
}

func (s *Service) accepted() []Option {
	if s.AcceptRedisRisk {
		return []Option{AcceptRedisRisk}
	}
	return nil
}

// obstacle says what keeps a due activity from being ready, and why in words. It
// changes nothing.
func (s *Service) obstacle(ctx context.Context, a store.Activity) (Obstacle, string) {
	snapshot, err := s.snapshot(ctx, a.ProductID)
	if err == nil && (snapshot == nil || snapshot.ID != a.ID) {
		err = s.mayPreheat(ctx, a, snapshot, s.accepted())
	}
	if err == nil {
		return Nothing, ""
	}
	if b, ok := errors.AsType[*blocked](err); ok {
		return b.Obstacle, b.Error()
	}
	return Away, err.Error()
}

// unready says what an activity that is due, or is soon, waits for; empty if it
// waits for its time, or for a backend.
func (s *Service) unready(ctx context.Context, v View) string {
	if !s.due(v.Activity, s.clock(ctx)) {
		return ""
	}
	if o, words := s.obstacle(ctx, v.Activity); o != Nothing {
		return "due and not ready, " + words
	}
	return "due: a backend (seckilld serve) preheats and opens it now"
}

// Unready counts the activities that should be ready to sell and are not, by what
// stands in their way.
func (s *Service) Unready(ctx context.Context) (map[Obstacle]int, error) {
	all, err := s.Store.Unarchived(ctx)
	if err != nil {
		return nil, fmt.Errorf("counting the activities that are due: %w", err)
	}
	counts, now := map[Obstacle]int{}, s.clock(ctx)
	for _, a := range all {
		if !s.due(a, now) {
			continue
		}
		asking, cancel := context.WithTimeout(ctx, time.Second)
		o, _ := s.obstacle(asking, a)
		cancel()
		counts[o]++
	}
	return counts, nil
}
