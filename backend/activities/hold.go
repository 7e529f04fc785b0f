package activities

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/seckill-edge/seckill/backend/store"
	"github.com/seckill-edge/seckill/lua"
)

// ErrHalf: Redis does it already, and SQL could not be told.
var ErrHalf = errors.New("done by half")

// askSQL bounds what Hold waits for the database before it shuts the gate without
// it: whoever holds a sale is in a hurry.
const askSQL = 3 * time.Second

// Hold shuts the gate. Redis learns it first: from the answer on nothing is sold.
// An activity that Redis has lost, or whose stock is being proven, is held by
// SQL's word. Without the database it is held in Redis all the same, and the
// error is ErrHalf: a proof of its stock would open it again.
func (s *Service) Hold(ctx context.Context, product string) (View, error) {
	for range overtakings {
		view, err := s.hold(ctx, product)
		there := view.Snapshot
		if err != nil || view.State == store.Held && (there == nil || there.Damaged || there.State != lua.Open) {
			return view, err
		}
	}
	return View{}, fmt.Errorf("holding product %s: %w: somebody opens it again and again; hold it when they have done", product, ErrRefused)
}

// hold tells Redis twice. After the first nothing is sold. The second refuses every
// Open that read its epoch before SQL was written, and shuts what was opened
// between the two. What opens later has SQL say so, too.
func (s *Service) hold(ctx context.Context, product string) (View, error) {
	asking, cancel := context.WithTimeout(ctx, askSQL)
	a, err := s.live(asking, product)
	cancel()
	var invalid *Invalid
	switch {
	case err == nil:
	case errors.Is(err, store.ErrNotFound), errors.Is(err, ErrRefused), errors.As(err, &invalid), ctx.Err() != nil:
		return View{}, err
	default:
		return View{}, s.holdWithoutSQL(ctx, product, err)
	}
	if a.State == store.Scheduled {
		return View{}, fmt.Errorf("holding product %s: %w: it is scheduled and sells nothing; preheat it first", product, ErrRefused)
	}
	shut := func() (int64, bool, error) {
		return lua.SetState(ctx, s.Redis, product, a.ID, lua.OnHold)
	}
	if _, err := s.follow(ctx, "holding", a, shut); err != nil && !sellsNothing(err) {
		return View{}, err
	}
	from := []store.ActivityState{store.Held, store.Open}
	if err := s.Store.SetActivityState(ctx, a.ID, from, store.Held); err != nil {
		return View{}, refusal("holding", product, err)
	}
	view, err := s.follow(ctx, "holding", a, shut)
	if err != nil && sellsNothing(err) {
		return s.Show(ctx, product)
	}
	return view, err
}

// holdWithoutSQL shuts the gate of whatever Redis sells of the product. No backend
// opens what is held in Redis and open in SQL, but the proof of its stock does.
func (s *Service) holdWithoutSQL(ctx context.Context, product string, sql error) error {
	there, err := s.snapshot(ctx, product)
	if err != nil {
		return fmt.Errorf("holding product %s: neither store can be asked: %w", product, errors.Join(sql, err))
	}
	if there == nil || there.State == lua.Closed {
		return fmt.Errorf("holding product %s, of which Redis sells nothing: %w", product, sql)
	}
	if _, _, err := lua.SetState(ctx, s.Redis, product, there.ID, lua.OnHold); err != nil && !sellsNothing(err) {
		return fmt.Errorf("holding product %s in Redis while the database is away: %w", product, errors.Join(err, sql))
	}
	s.Log.Warn("activity held in Redis; SQL could not be told", "activity", there.ID, "product", product, "error", sql)
	return fmt.Errorf("product %s: %w: held in Redis, nothing is sold; hold it again when the database answers, or a proof of its stock opens it again: %w", product, ErrHalf, sql)
}

// sellsNothing says that Redis has nothing that could be sold; what is rebuilt
// will be what SQL says.
func sellsNothing(err error) bool {
	return errors.Is(err, lua.ErrNoActivity) || errors.Is(err, lua.ErrDamaged)
}
