package store

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"
	"pgregory.net/rapid"

	"github.com/seckill-edge/seckill/internal/order"
)

// saveAtOnce gives each batch to a store (a backend) of its own and starts all
// together.
func saveAtOnce(t *testing.T, address string, batches [][][]order.Order) [][]Saved {
	answers := make([][]Saved, len(batches))
	group, ctx := errgroup.WithContext(t.Context())
	start := make(chan struct{})
	for i, mine := range batches {
		s := open(t, address)
		group.Go(func() error {
			<-start
			for _, batch := range mine {
				got, err := s.SaveOrders(ctx, batch)
				if err != nil {
					return fmt.Errorf("writer %d: %w", i, err)
				}
				answers[i] = append(answers[i], got...)
			}
			return nil
		})
	}
	close(start)
	require.NoError(t, group.Wait())
	return answers
}

// requireOneStory checks that all answers about an order agree and that exactly
// one of them stored it, and returns its state by id.
func requireOneStory(t *testing.T, answers [][]Saved) map[string]Saved {
	story := make(map[string]Saved)
	news := make(map[string]int)
	for _, got := range slices.Concat(answers...) {
		if !got.Repeat {
			news[got.OrderID]++
		}
		got.Repeat = false
		if before, ok := story[got.OrderID]; ok {
			require.Equal(t, before, got)
		}
		story[got.OrderID] = got
	}
	for id := range story {
		require.Equal(t, 1, news[id], "order %s was stored by one of them", id)
	}
	return story
}

func TestBackendsStoreTheSameMessages(t *testing.T) {
	onEach(t, func(t *testing.T, address string) {
		s := open(t, address)
		a, b := sale(t, s, 150, 1), sale(t, s, 1000, 1)
		batch := slices.Concat(a.crowd(200), b.crowd(50), Activity{ID: "none", ProductID: "p"}.crowd(50))
		backwards := slices.Clone(batch)
		slices.Reverse(backwards)
		answers := saveAtOnce(t, address, [][][]order.Order{
			{batch}, {backwards}, {batch[:120], batch[60:]}, {batch[100:], batch},
		})
		story := requireOneStory(t, answers)
		require.Len(t, story, len(batch))
		require.EqualValues(t, 150, requireExact(t, s, a.ID))
		require.EqualValues(t, 50, requireExact(t, s, b.ID))
	})
}

// Many backends and far more orders than units, redelivered and mixed at random,
// with buyers who try again and again.
func TestNeverOversold(t *testing.T) {
	for _, limit := range []int{1, 3} {
		t.Run(fmt.Sprint("limit ", limit), func(t *testing.T) { neverOversold(t, limit) })
	}
}

func neverOversold(t *testing.T, limit int) {
	onEach(t, func(t *testing.T, address string) {
		s := open(t, address)
		const seed = 20261111
		random := rand.New(rand.NewPCG(seed, seed))
		sales := []Activity{sale(t, s, 100, limit), sale(t, s, 37, limit), sale(t, s, 1, limit)}
		var orders []order.Order
		for range 400 {
			a := sales[random.IntN(len(sales))]
			orders = append(orders, a.wants(fmt.Sprint("user-", random.IntN(600/limit)), 1+random.IntN(limit), 1+random.IntN(limit)))
		}
		const writers, rounds = 8, 12
		batches := make([][][]order.Order, writers)
		for w := range batches {
			for range rounds {
				var batch []order.Order
				for range 1 + random.IntN(60) {
					batch = append(batch, orders[random.IntN(len(orders))])
				}
				batches[w] = append(batches[w], batch)
			}
		}
		story := requireOneStory(t, saveAtOnce(t, address, batches))
		rows, err := s.Orders(t.Context(), slices.Collect(maps.Keys(story)))
		require.NoError(t, err)
		require.Len(t, rows, len(story))
		held := make(map[buyer]int)
		claims := make(map[claim]bool)
		for id, told := range story {
			row := rows[id]
			require.Equal(t, row.State, told.State)
			require.Equal(t, row.Reason, told.Reason)
			if row.State.HoldsStock() {
				c := claim{buyer{row.ActivityID, row.UserID}, row.Claim}
				require.False(t, claims[c], "claim %v is taken once", c)
				claims[c] = true
				held[c.buyer] += row.Quantity
				require.LessOrEqual(t, held[c.buyer], limit)
			}
		}
		for _, a := range sales {
			// What is left is less than somebody was refused.
			left := a.Total - requireExact(t, s, a.ID)
			require.Less(t, left, int64(limit))
		}
	})
}

// A batch must give what its orders would get one by one.
func TestABatchIsLikeOneByOne(t *testing.T) {
	onEach(t, func(t *testing.T, address string) {
		s := open(t, address)
		rapid.Check(t, func(t *rapid.T) {
			total := rapid.Int64Range(1, 12).Draw(t, "total")
			limit := rapid.IntRange(1, 3).Draw(t, "limit")
			together, alone := saleIn(t, s, total, limit), saleIn(t, s, total, limit)
			var batch, single []order.Order
			for range rapid.IntRange(1, 15).Draw(t, "orders") {
				user := rapid.SampledFrom([]string{"a", "b", "A", "d", "e", "f"}).Draw(t, "user")
				few := rapid.SampledFrom([]int{1, 1, 1, 2, 3, 4, 0})
				o := together.wants(user, few.Draw(t, "quantity"), few.Draw(t, "claim"))
				batch = append(batch, o)
				o = alone.wants(o.UserID, o.Quantity, o.Claim)
				single = append(single, o)
			}
			for range rapid.IntRange(0, 3).Draw(t, "repeats") {
				i := rapid.IntRange(0, len(batch)-1).Draw(t, "repeated")
				batch, single = append(batch, batch[i]), append(single, single[i])
			}
			got, err := s.SaveOrders(context.Background(), batch)
			require.NoError(t, err)
			for i, o := range single {
				want, err := s.SaveOrders(context.Background(), []order.Order{o})
				require.NoError(t, err)
				want[0].OrderID = got[i].OrderID
				require.Equal(t, want[0], got[i], "order %d of %+v", i, batch)
			}
			require.Equal(t, requireExact(t, s, alone.ID), requireExact(t, s, together.ID))
		})
	})
}

func saleIn(t *rapid.T, s *Store, total int64, limit int) Activity {
	n := counter.Add(1)
	a := Activity{
		ID: fmt.Sprintf("sale-%d", n), ProductID: fmt.Sprintf("P_%d", n),
		Start: epoch, End: epoch, Total: total, Limit: limit, State: Open,
	}
	require.NoError(t, s.CreateActivity(context.Background(), a))
	return a
}
