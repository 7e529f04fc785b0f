// Package dead lets an operator look after the dead letters: messages that are
// wrong in themselves, orders that the database has refused again and again, and
// orders that nobody has reserved.
//
// The units of an order that the database refused have been given back when it was
// buried, after SQL has noted it as rejected (package consume). So a replay is safe at
// any time: what was noted stays rejected, what Redis has is stored once like any
// other order, and what Redis does not have is rejected before it is sent.
package dead

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/seckill-edge/seckill/backend/activities"
	"github.com/seckill-edge/seckill/backend/store"
	"github.com/seckill-edge/seckill/internal/queue"
)

// Broker is what a service needs of one.
type Broker interface {
	queue.DeadLetters
	queue.Inspector
}

// Deps are what a service works with. All are required.
type Deps struct {
	Broker Broker
	Store  *store.Store
	Redis  redis.UniversalClient
	Log    *slog.Logger
}

// Service looks after dead letters. It is safe for concurrent use; letters that
// one call looks at are hidden from the others meanwhile.
type Service struct{ Deps }

// New makes a service.
func New(d Deps) *Service { return &Service{d} }

// Done is what a Replay or a Drop has done.
type Done struct {
	Letters int
	// Orders counts the readable orders in them.
	Orders int
	// Rejected counts those of a replay that hold no unit any more, because it was
	// given back: they end as rejected.
	Rejected int
	// Kept counts the letters that a replay of All has left where they are, because
	// no order of them can be read.
	Kept int
}

// All, in place of an id, means every letter that is there now.
const All = ""

// List returns up to limit letters, the oldest first, and how many there are.
func (s *Service) List(ctx context.Context, limit int) (letters []Letter, total int, err error) {
	if _, total, err = s.Broker.Depth(ctx); err != nil {
		return nil, 0, fmt.Errorf("counting the dead letters: %w", err)
	}
	_, err = s.Broker.Judge(ctx, min(limit, total), func(m queue.Message) queue.Verdict {
		letters = append(letters, read(m))
		return queue.Keep
	})
	if err != nil {
		return nil, 0, fmt.Errorf("listing the dead letters: %w", err)
	}
	apart := make([]*Letter, len(letters))
	for i := range letters {
		apart[i] = &letters[i]
	}
	tellApart(apart)
	return letters, max(total, len(letters)), nil
}

// Shown is a letter with what the stores say of its orders. Unknown says why they
// could not be asked.
type Shown struct {
	Letter
	Fates   []Fate
	Unknown error
}

// Show returns the letters of this id. store.ErrNotFound if there is none.
func (s *Service) Show(ctx context.Context, id string) ([]Shown, error) {
	var letters []Shown
	_, err := s.judge(ctx, id, func(l Letter) (queue.Verdict, error) {
		letters = append(letters, Shown{Letter: l})
		return queue.Keep, nil
	})
	if err != nil {
		return nil, fmt.Errorf("showing dead letter %q: %w", id, err)
	}
	apart := make([]*Letter, len(letters))
	for i := range letters {
		apart[i] = &letters[i].Letter
	}
	tellApart(apart)
	for i := range letters {
		letters[i].Fates, letters[i].Unknown = s.fates(ctx, letters[i].Letter)
	}
	return letters, nil
}

// Drop removes the letters of this id, or All, for good. store.ErrNotFound if
// there is none of the id, activities.ErrRefused if it names different ones. After
// an error Done says what was done before it.
func (s *Service) Drop(ctx context.Context, id string) (Done, error) {
	if err := s.oneLetter(ctx, id); err != nil {
		return Done{}, fmt.Errorf("dropping dead letters: %w", err)
	}
	done, err := s.judge(ctx, id, func(Letter) (queue.Verdict, error) { return queue.Drop, nil })
	if done.Letters > 0 {
		s.Log.Warn("dead letters dropped", "letters", done.Letters, "orders", done.Orders)
	}
	if err != nil {
		return done, fmt.Errorf("dropping dead letters: %w", err)
	}
	return done, nil
}

// Replay sends the letters of this id, or All, to the orders again; each is
// removed when the broker has confirmed it there. An order whose units were given
// back is rejected in SQL before that, so that it can not be sold a second time.
// store.ErrNotFound if there is no letter of the id; activities.ErrRefused if it names
// different ones or one of which nothing can be read, and while the stock of one of
// their activities is not proven. After an error Done says
// what was done before it, and the letter it stopped at may be in both places,
// which does no harm.
func (s *Service) Replay(ctx context.Context, id string) (Done, error) {
	if err := s.oneLetter(ctx, id); err != nil {
		return Done{}, fmt.Errorf("replaying dead letters: %w", err)
	}
	rejected, kept := 0, 0
	done, err := s.judge(ctx, id, func(l Letter) (queue.Verdict, error) {
		switch {
		case !l.Hopeless():
		case id != All:
			return queue.Keep, fmt.Errorf("%w: letter %q: no order of it can be read, so it would come straight back; drop it", activities.ErrRefused, l.ID)
		default:
			kept++
			return queue.Keep, nil
		}
		n, err := s.reject(ctx, l)
		if err != nil {
			return queue.Keep, fmt.Errorf("letter %q: %w", l.ID, err)
		}
		rejected += n
		return queue.Replay, nil
	})
	done.Rejected, done.Kept = rejected, kept
	if err == nil && done.Letters == 0 && kept > 0 {
		err = fmt.Errorf("%w: of none of the %d letters an order can be read, so they would come straight back; drop them", activities.ErrRefused, kept)
	}
	if done.Letters > 0 {
		s.Log.Warn("dead letters replayed", "letters", done.Letters, "orders", done.Orders, "rejected", rejected)
	}
	if err != nil {
		return done, fmt.Errorf("replaying dead letters: %w", err)
	}
	return done, nil
}

// oneLetter refuses an id that different letters have.
func (s *Service) oneLetter(ctx context.Context, id string) error {
	if id == All {
		return nil
	}
	_, there, err := s.Broker.Depth(ctx)
	if err != nil {
		return fmt.Errorf("counting the dead letters: %w", err)
	}
	names := map[string]bool{}
	_, err = s.Broker.Judge(ctx, there, func(m queue.Message) queue.Verdict {
		if l := read(m); l.is(id) {
			names[l.exact()] = true
		}
		return queue.Keep
	})
	if err == nil && len(names) > 1 {
		err = fmt.Errorf("%w: %d different letters are called %q; name one of %s", activities.ErrRefused, len(names), id,
			strings.Join(slices.Sorted(maps.Keys(names)), ", "))
	}
	return err
}

// judge shows the letters of this id, or All, that are there at the beginning to
// verdict and counts those that did not stay. The first error ends it: the rest
// stay.
func (s *Service) judge(ctx context.Context, id string, verdict func(Letter) (queue.Verdict, error)) (Done, error) {
	_, there, err := s.Broker.Depth(ctx)
	if err != nil {
		return Done{}, fmt.Errorf("counting the dead letters: %w", err)
	}
	var failed error
	found := false
	var orders []int // of each letter judged, -1 if it stays
	judged, err := s.Broker.Judge(ctx, there, func(m queue.Message) queue.Verdict {
		orders = append(orders, -1)
		l := read(m)
		if failed != nil || (id != All && !l.is(id)) {
			return queue.Keep
		}
		found = true
		v, err := verdict(l)
		if failed = err; err == nil && v != queue.Keep {
			orders[len(orders)-1] = len(l.Orders)
		}
		return v
	})
	var done Done
	for _, n := range orders[:min(judged, len(orders))] {
		if n >= 0 {
			done.Letters++
			done.Orders += n
		}
	}
	switch {
	case failed != nil || err != nil:
		return done, errors.Join(failed, err)
	case id != All && !found:
		return done, store.None(fmt.Sprintf("no dead letter %q, or somebody else is looking at it", id))
	}
	return done, nil
}

// refused words why a letter is not replayed now.
func refused(activity, why string) error {
	return fmt.Errorf("%w: activity %s: %s", activities.ErrRefused, activity, why)
}
