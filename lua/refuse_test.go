package lua

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/seckill-edge/seckill/internal/order"
)

// refusal is a note that may be written now.
func refusal(id, user string, reason order.Reason) RefusalNote {
	return RefusalNote{Refusal: Refusal{OrderID: id, Quantity: 2, Reason: reason}, UserID: user, Until: time.Now().Add(time.Hour)}
}

func note(t *testing.T, c redis.Scripter, notes ...RefusalNote) []Refusal {
	t.Helper()
	stand, err := NoteRefusals(t.Context(), c, product, time.Hour, notes)
	require.NoError(t, err)
	return stand
}

func noted(t *testing.T, c redis.Cmdable, ids ...string) []Refusal {
	t.Helper()
	stand, err := RefusalsOf(t.Context(), c, product, ids)
	require.NoError(t, err)
	return stand
}

// What is noted first stands; nothing is noted too late, nor of an order that its
// buyer's record has; and the notes go by themselves.
func TestTheFirstWordOnARefusalStands(t *testing.T) {
	onEach(t, func(t *testing.T, c redis.UniversalClient) {
		var id ids
		load(t, c, sale(10, 5))
		first, other, late, held := id.next(), id.next(), id.next(), id.next()
		reserve(t, c, Request{OrderID: held, UserID: "h", Quantity: 2})
		instead := RefusalNote{Refusal: Refusal{OrderID: other, Quantity: 1, Instead: held}, UserID: "h", Until: time.Now().Add(time.Hour)}
		over := refusal(late, "u", "sold_out")
		over.Until = time.Now().Add(-time.Minute)

		require.Equal(t, make([]Refusal, 2), noted(t, c, first, other), "before anything is")
		soldOut := refusal(first, "u", "sold_out")
		stand := note(t, c, soldOut, refusal(first, "u", "too_few"), instead, over, refusal(held, "h", "ended"))
		require.Equal(t, []Refusal{soldOut.Refusal, soldOut.Refusal, instead.Refusal, {}, {}}, stand)
		require.Equal(t, []Refusal{soldOut.Refusal}, note(t, c, refusal(first, "u", "unavailable")), "later, by another edge")
		require.Equal(t, []Refusal{{}, soldOut.Refusal, {}, instead.Refusal}, noted(t, c, late, first, held, other))
		left, err := c.PTTL(t.Context(), KeysOf(product).Refused).Result()
		require.NoError(t, err)
		require.Positive(t, left)
		require.LessOrEqual(t, left, time.Hour)

		_, err = Expire(t.Context(), c, product, "a-1", 0)
		require.ErrorIs(t, err, ErrNotClosed)
		_, _, err = SetState(t.Context(), c, product, "a-1", Closed)
		require.NoError(t, err)
		_, err = Expire(t.Context(), c, product, "a-1", 0)
		require.NoError(t, err)
		require.Equal(t, soldOut.Refusal, noted(t, c, first)[0], "buyers still ask")
	})
}

// Notes are bounded in number: one too many is not made, and those that nobody asks for
// any more make room.
func TestRefusalsAreBounded(t *testing.T) {
	onEach(t, func(t *testing.T, c redis.UniversalClient) {
		id := func(age time.Duration) string {
			made, err := order.NewID(time.Now().Add(-age), new(ids))
			require.NoError(t, err)
			return made
		}
		few := func(notes ...RefusalNote) []Refusal {
			stand, err := noteRefusals(t.Context(), c, product, 2, time.Hour, notes)
			require.NoError(t, err)
			return stand
		}
		old, young, next := refusal(id(50*time.Minute), "u", "ended"), refusal(id(40*time.Minute), "u", "held"), refusal(id(0), "u", "too_few")
		require.Equal(t, []Refusal{old.Refusal, young.Refusal, {}}, few(old, young, next))
		require.Equal(t, []Refusal{{}}, few(next))
		_, err := noteRefusals(t.Context(), c, product, 2, 45*time.Minute, []RefusalNote{next})
		require.NoError(t, err)
		require.Equal(t, []Refusal{{}, young.Refusal, next.Refusal}, noted(t, c, old.OrderID, young.OrderID, next.OrderID))
	})
}

// A key of another type has no notes, and what cannot be read is none.
func TestDamagedRefusals(t *testing.T) {
	onEach(t, func(t *testing.T, c redis.UniversalClient) {
		var id ids
		key, n := KeysOf(product).Refused, refusal(id.next(), "u", "sold_out")
		require.NoError(t, c.Set(t.Context(), key, "x", 0).Err())
		require.Equal(t, []Refusal{{}}, noted(t, c, n.OrderID))
		require.Equal(t, []Refusal{n.Refusal}, note(t, c, n))
		for _, word := range []string{"", ":", "1:", "0:held", "x:held", "1:HELD", "1000:held", "1:a b", "1:" + fmt.Sprintf("%033d", 0), "1:e1"} {
			damaged := id.next()
			require.NoError(t, c.ZAdd(t.Context(), key, redis.Z{Member: damaged + ":" + word}).Err())
			require.Equal(t, []Refusal{{}}, noted(t, c, damaged), "%q", word)
		}
		for _, bad := range [][]RefusalNote{nil, make([]RefusalNote, MaxPerCall+1)} {
			_, err := NoteRefusals(t.Context(), c, product, time.Hour, bad)
			require.ErrorContains(t, err, "want 1 to 256")
		}
	})
}

// A random history of notes, reservations and repeats: once an order has an end, every
// later answer and every reading is the same.
func TestHistoryOfRefusals(t *testing.T) {
	onEach(t, func(t *testing.T, c redis.UniversalClient) {
		seed := rand.Uint64()
		r := rand.New(rand.NewPCG(seed, 0))
		t.Logf("seed %d", seed)
		var id ids
		load(t, c, sale(50, 1))
		orders := make([]string, 40)
		for i := range orders {
			orders[i] = id.next()
		}
		stands, reserved := map[string]Refusal{}, map[string]bool{}
		reasons := []order.Reason{"sold_out", "too_few", "held", "unavailable", "already_bought"}
		for range 60 {
			i := r.IntN(len(orders))
			if _, ended := stands[orders[i]]; !ended && r.IntN(4) == 0 {
				reserve(t, c, Request{OrderID: orders[i], UserID: fmt.Sprint("u", i), Quantity: 1})
				reserved[orders[i]] = true
				continue
			}
			notes := make([]RefusalNote, 1+r.IntN(8))
			for n := range notes {
				i := r.IntN(len(orders))
				notes[n] = refusal(orders[i], fmt.Sprint("u", i), reasons[r.IntN(len(reasons))])
				if r.IntN(5) == 0 {
					notes[n].Until = time.Now().Add(-time.Minute)
				}
			}
			for n, stand := range note(t, c, notes...) {
				id := notes[n].OrderID
				switch before, ended := stands[id]; {
				case ended:
					require.Equal(t, before, stand)
				case reserved[id]:
					require.Zero(t, stand)
				case stand.OrderID != "":
					stands[id] = stand
				}
			}
			for n, read := range noted(t, c, orders...) {
				require.Equal(t, stands[orders[n]], read)
			}
		}
	})
}
