package faults

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/seckill-edge/seckill/e2e/history"
	"github.com/seckill-edge/seckill/e2e/proxy"
	"github.com/seckill-edge/seckill/internal/servicetest"
)

// Small sales with few buyers who click at both edges at once, also while answers
// get lost between an edge and Redis: what they were told must be the answers of
// one stock.
func TestReservationsAreLinearizable(t *testing.T) {
	f := field(t)
	spoilt := proxy.Mode{Down: proxy.Way{Deaf: true}}
	late := proxy.Mode{Down: proxy.Way{Delay: 300 * time.Millisecond}}
	for name, mode := range map[string]proxy.Mode{"all is well": {}, "answers are lost": spoilt, "answers are late": late} {
		t.Run(name, func(t *testing.T) {
			for seed := range uint64(3) {
				h := smallSale(t, f, mode, seed)
				ok, undecided := history.Linearizable(h, unheard, servicetest.Patience())
				require.True(t, ok, "seed %d: %+v", seed, h.Clicks)
				require.False(t, undecided, "seed %d", seed)
			}
		})
	}
}

// A history is told from a wrong one: the same sale with one unit fewer.
func TestASaleOfOneUnitMoreIsNotLinearizable(t *testing.T) {
	h := smallSale(t, field(t), proxy.Mode{}, 7)
	h.Total--
	ok, _ := history.Linearizable(h, unheard, servicetest.Patience())
	require.False(t, ok)
}

// smallSale sells 7 units to 5 buyers, 3 for each at most, who click 8 times each
// at any edge. The lines of one edge are spoilt for a while in the middle.
func smallSale(t *testing.T, f *Field, spoil proxy.Mode, seed uint64) *history.History {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), servicetest.Patience())
	defer cancel()
	s, err := f.open(ctx, 7, 3)
	require.NoError(t, err)
	c := newClient(f.edgeURLs(), s)
	defer c.close()
	h := &history.History{Total: s.total, Limit: s.limit}
	var mu sync.Mutex
	var buyers sync.WaitGroup
	for b := range 5 {
		buyers.Go(func() {
			r := rand.New(rand.NewPCG(seed, uint64(b)))
			for n := range 8 {
				if b == 0 && n == 2 {
					require.NoError(t, f.Edges[0].Redis.Set(spoil))
				}
				if b == 0 && n == 5 {
					require.NoError(t, f.Edges[0].Redis.Set(proxy.Mode{}))
				}
				click := c.click(ctx, r.IntN(len(c.edges)), fmt.Sprint("b", b), 1+r.IntN(2))
				mu.Lock()
				h.Clicks = append(h.Clicks, click)
				mu.Unlock()
			}
		})
	}
	buyers.Wait()
	h.Told = lastWords(ctx, c, h.Clicks, func(click history.Click) time.Time { return click.ResolveBy })
	h.End.At = time.Now()
	require.NoError(t, f.close(ctx, s))
	return h
}
