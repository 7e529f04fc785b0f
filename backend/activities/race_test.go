package activities

import (
	"context"
	"slices"
	"sync"
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/seckill-edge/seckill/backend/store"
	"github.com/seckill-edge/seckill/lua"
)

// between lets do happen right before the n-th script call with these last
// arguments reaches Redis.
type between struct {
	last []any
	n    int
	do   func()
}

func (b *between) DialHook(next redis.DialHook) redis.DialHook { return next }

func (b *between) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

func (b *between) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, c redis.Cmder) error {
		args := c.Args()
		if c.Name() == "evalsha" && slices.Equal(args[max(0, len(args)-len(b.last)):], b.last) {
			if b.n--; b.n == 0 {
				b.do()
			}
		}
		return next(ctx, c)
	}
}

// hooked is s with a client of its own that is interrupted.
func hooked(t *testing.T, s *Service, b *between) *Service {
	options := *s.Redis.(*redis.Client).Options()
	client := redis.NewClient(&options)
	client.AddHook(b)
	t.Cleanup(func() { require.NoError(t, client.Close()) })
	d := s.Deps
	d.Redis = client
	return New(d)
}

// agree requires that SQL and Redis say the same of product 1001, and says what.
func agree(t *testing.T, s *Service) store.ActivityState {
	t.Helper()
	a, err := s.find(t.Context(), "1001")
	require.NoError(t, err)
	want := map[store.ActivityState]lua.ActivityState{store.Open: lua.Open, store.Held: lua.OnHold, store.Closed: lua.Closed}[a.State]
	require.Equal(t, want, snapshotOf(t, s).State, "SQL says %s", a.State)
	return a.State
}

// held makes a sale that is held.
func held(t *testing.T, s *Service) store.Activity {
	a, err := s.Create(t.Context(), draft())
	require.NoError(t, err)
	_, err = s.Preheat(t.Context(), "1001")
	require.NoError(t, err)
	return a
}

// A whole Hold comes between an Open's words to SQL and to Redis.
func TestHoldWhileOpening(t *testing.T) {
	onEach(t, func(t *testing.T, s *Service) {
		a := held(t, s)
		holds := 0
		opening := hooked(t, s, &between{last: []any{a.ID, "open", "1"}, n: 1, do: func() {
			view, err := s.Hold(t.Context(), "1001")
			require.NoError(t, err)
			require.Equal(t, store.Held, view.State)
			require.Equal(t, store.Held, agree(t, s))
			holds++
		}})
		_, err := opening.Open(t.Context(), "1001")
		require.NoError(t, err, "it began anew, after the hold")
		require.Equal(t, 1, holds)
		require.Equal(t, store.Open, agree(t, s))
	})
}

// A whole Open comes between a Hold's words to SQL and to Redis.
func TestOpenWhileHolding(t *testing.T) {
	onEach(t, func(t *testing.T, s *Service) {
		a := held(t, s)
		_, err := s.Open(t.Context(), "1001")
		require.NoError(t, err)
		opens := 0
		holding := hooked(t, s, &between{last: []any{a.ID, "held", ""}, n: 2, do: func() {
			_, err := s.Open(t.Context(), "1001")
			require.NoError(t, err)
			opens++
		}})
		view, err := holding.Hold(t.Context(), "1001")
		require.NoError(t, err)
		require.Equal(t, 1, opens)
		require.Equal(t, store.Held, view.State)
		require.Equal(t, lua.OnHold, view.Snapshot.State)
		require.Equal(t, store.Held, agree(t, s))
	})
}

// Whatever operators do at the same moment, both stores end up saying the same.
func TestOperatorsAtOnce(t *testing.T) {
	onEach(t, func(t *testing.T, s *Service) {
		held(t, s)
		for round := range 20 {
			var both sync.WaitGroup
			for _, do := range []func() (View, error){
				func() (View, error) { return s.Open(t.Context(), "1001") },
				func() (View, error) { return s.Hold(t.Context(), "1001") },
				func() (View, error) { return s.Open(t.Context(), "1001") },
			} {
				both.Go(func() {
					_, err := do()
					if err != nil {
						t.Errorf("round %d: %v", round, err)
					}
				})
			}
			both.Wait()
			agree(t, s)
		}
	})
}

// What is closed while it is preheated is closed in both stores, and its product
// can be sold again.
func TestCloseWhilePreheating(t *testing.T) {
	onEach(t, func(t *testing.T, s *Service) {
		ctx := t.Context()
		first, err := s.Create(ctx, draft())
		require.NoError(t, err)
		preheating := hooked(t, s, &between{last: []any{"0", "held"}, n: 1, do: func() {
			_, err := s.Close(ctx, "1001")
			require.NoError(t, err)
		}})
		_, err = preheating.Preheat(ctx, "1001")
		require.ErrorIs(t, err, ErrRefused)
		require.ErrorContains(t, err, "closed meanwhile")
		require.Equal(t, store.Closed, agree(t, s))

		second := held(t, s)
		require.NotEqual(t, first.ID, second.ID)
		require.Equal(t, store.Held, agree(t, s))
	})
}

// Redis still has an activity that SQL has closed, and the product has a newer
// one: preheating the newer one closes it, and so does a backend by itself.
func TestClosedAndLeftBehind(t *testing.T) {
	for name, mend := range map[string]func(t *testing.T, s *Service){
		"preheat": func(t *testing.T, s *Service) {
			_, err := s.Preheat(t.Context(), "1001")
			require.NoError(t, err)
			require.Equal(t, store.Held, agree(t, s))
		},
		"follower": func(t *testing.T, s *Service) {
			f := NewFollower(s)
			require.NoError(t, f.Pass(t.Context()))
			require.NoError(t, f.Pass(t.Context()))
			require.Equal(t, lua.Closed, snapshotOf(t, s).State)
		},
	} {
		t.Run(name, func(t *testing.T) {
			onEach(t, func(t *testing.T, s *Service) {
				first := held(t, s)
				require.NoError(t, s.Store.SetActivityState(t.Context(), first.ID, []store.ActivityState{store.Held}, store.Closed))
				_, err := s.Create(t.Context(), draft())
				require.NoError(t, err)
				require.Equal(t, first.ID, snapshotOf(t, s).ID)
				mend(t, s)
			})
		})
	}
}
