package lua

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/seckill-edge/seckill/internal/order"
)

// TestHistories runs random histories on the scripts and on the model.
func TestHistories(t *testing.T) {
	onEach(t, func(t *testing.T, c redis.UniversalClient) {
		rapid.Check(t, func(t *rapid.T) {
			ctx := context.Background()
			require.NoError(t, c.FlushAll(ctx).Err())
			h := &history{t: t, c: c, ctx: ctx, m: model{users: map[string][]Entry{}, outbox: map[string]string{}}}
			if rapid.IntRange(0, 9).Draw(t, "begin empty") > 0 {
				h.preheat(t)
			}
			t.Repeat(map[string]func(*rapid.T){
				"":         func(*rapid.T) { h.compare() },
				"reserve":  h.reserve,
				"again":    h.reserve, // more often than the rest
				"and on":   h.reserve,
				"settle":   h.settle,
				"release":  h.release,
				"setState": h.setState,
				"preheat":  h.preheat,
				"confirm":  h.confirm,
				"resize":   h.resize,
				"forget":   func(t *rapid.T) { require.NoError(t, c.ScriptFlush(ctx).Err()) },
			})
		})
	})
}

type history struct {
	t   *rapid.T
	c   redis.UniversalClient
	ctx context.Context
	m   model
	ids ids
	all []Move // every order that was ever asked for
}

var (
	historyUsers = []string{"u", "v", "w:,{x}"}
	// One of none, for most requests.
	historyKeys = []string{"", "", HashKey(product, "any", "1"), HashKey(product, "any", "2"), "12345678901", "----_------"}
	// Reasons, one of none.
	historyReasons = []order.Reason{"", order.ReasonOversold, order.ReasonLost, order.ReasonDead}
	// Small ones are frequent, so that buyers come to have several orders.
	historyQuantities = []int{1, 1, 1, 1, 2, 2, 3, 5, 0, -1}
)

// pick draws an order that was asked for before.
func (h *history) pick(t *rapid.T) Move {
	if len(h.all) == 0 || rapid.IntRange(0, 19).Draw(t, "unknown") == 0 {
		return Move{UserID: rapid.SampledFrom(historyUsers).Draw(t, "user"), OrderID: h.ids.next()}
	}
	return rapid.SampledFrom(h.all).Draw(t, "order")
}

func (h *history) reserve(t *rapid.T) {
	reqs := make([]Request, rapid.IntRange(1, 8).Draw(t, "requests"))
	for i := range reqs {
		v := Move{UserID: rapid.SampledFrom(historyUsers).Draw(t, "user"), OrderID: h.ids.next()}
		if len(h.all) > 0 && rapid.IntRange(0, 4).Draw(t, "repeat") == 0 {
			v = h.pick(t)
		}
		h.all = append(h.all, v)
		reqs[i] = Request{
			OrderID: v.OrderID, UserID: v.UserID, Quantity: rapid.SampledFrom(historyQuantities).Draw(t, "quantity"),
			Key: rapid.SampledFrom(historyKeys).Draw(t, "key"),
		}
	}
	epoch := h.m.epoch
	if rapid.IntRange(0, 9).Draw(t, "stale") == 0 {
		epoch--
	}
	b, err := Reserve(h.ctx, h.c, product, epoch, reqs)
	require.NoError(t, err)
	want := make([]Result, len(reqs))
	for i, r := range reqs {
		want[i] = h.m.reserve(epoch, r, b.At)
	}
	require.Equal(t, want, b.Results)
	if h.m.found {
		require.Equal(t, h.m.avail, b.Available)
		require.Equal(t, h.m.a.ID, b.ActivityID)
		require.Equal(t, h.m.epoch, b.Epoch)
		require.Equal(t, h.m.a.State, b.State)
	}
}

func (h *history) resize(t *rapid.T) {
	id := rapid.SampledFrom([]string{h.m.a.ID, h.m.a.ID, h.m.a.ID, "other"}).Draw(t, "activity")
	change, total := h.m.a.Changes+rapid.Int64Range(-1, 2).Draw(t, "change"), rapid.Int64Range(1, 12).Draw(t, "total")
	if id == "" || change < 1 {
		return
	}
	got, err := Resize(h.ctx, h.c, product, id, change, total)
	want, wantErr := h.m.resize(id, change, total)
	require.ErrorIs(t, err, wantErr)
	require.Equal(t, want, got)
}

func (h *history) moves(t *rapid.T) []Move {
	moves := make([]Move, rapid.IntRange(1, 6).Draw(t, "moves"))
	for i := range moves {
		moves[i] = h.pick(t)
	}
	return moves
}

func (h *history) settle(t *rapid.T) {
	to := rapid.SampledFrom([]Mark{MarkCreated, MarkSettled, MarkPaid}).Draw(t, "mark")
	moves := h.moves(t)
	got, err := Settle(h.ctx, h.c, product, to, moves)
	require.NoError(t, err)
	for i, v := range moves {
		require.Equal(t, h.m.settle(to, v), got[i], "%c %v", to, v)
	}
}

func (h *history) release(t *rapid.T) {
	to := rapid.SampledFrom([]Mark{MarkRejected, MarkCancelled, MarkExpired}).Draw(t, "mark")
	moves := h.moves(t)
	for i := range moves {
		moves[i].Reason = rapid.SampledFrom(historyReasons).Draw(t, "reason")
	}
	got, err := Release(h.ctx, h.c, product, to, moves)
	require.NoError(t, err)
	for i, v := range moves {
		require.Equal(t, h.m.release(to, v), got[i], "%c %v", to, v)
	}
}

func (h *history) setState(t *rapid.T) {
	to := rapid.SampledFrom([]ActivityState{Open, Open, Open, Open, OnHold, Closed}).Draw(t, "state")
	id := rapid.SampledFrom([]string{h.m.a.ID, h.m.a.ID, "a-9"}).Draw(t, "id")
	if id == "" {
		id = "a-9"
	}
	wantEpoch, wantChanged, wantErr := h.m.setState(id, to)
	epoch, changed, err := SetState(h.ctx, h.c, product, id, to)
	require.ErrorIs(t, err, wantErr)
	require.Equal(t, wantEpoch, epoch)
	require.Equal(t, wantChanged, changed)
}

func (h *history) preheat(t *rapid.T) {
	a := sale(rapid.Int64Range(1, 30).Draw(t, "total"), rapid.IntRange(1, 8).Draw(t, "limit"))
	a.ID = rapid.SampledFrom([]string{"a-1", "a-2"}).Draw(t, "id")
	switch rapid.IntRange(0, 19).Draw(t, "window") {
	case 0:
		a.Start = a.End.Add(-time.Minute)
	case 1:
		a.End = a.Start.Add(time.Minute)
	}
	a.State = rapid.SampledFrom([]ActivityState{Open, Open, Open, Open, OnHold}).Draw(t, "state")
	p, err := Preheat(h.ctx, h.c, a)
	require.NoError(t, err)
	require.Equal(t, h.m.preheat(a), p)
}

func (h *history) confirm(t *rapid.T) {
	moves := h.moves(t)
	orders := make([]string, len(moves))
	for i, v := range moves {
		orders[i] = v.OrderID
		delete(h.m.outbox, v.OrderID)
	}
	require.NoError(t, Confirm(h.ctx, h.c, product, orders))
}

// compare looks at everything that Redis holds.
func (h *history) compare() {
	t := h.t
	s, found, err := Audit(h.ctx, h.c, product)
	require.NoError(t, err)
	require.Equal(t, h.m.found, found)
	if !found {
		return
	}
	require.False(t, s.Damaged)
	require.Equal(t, s.Total, s.Available+s.Frozen+s.Sold)
	require.Equal(t, [3]int64{h.m.avail, h.m.frozen, h.m.sold}, [3]int64{s.Available, s.Frozen, s.Sold})
	require.Equal(t, h.m.epoch, s.Epoch)
	require.EqualValues(t, len(h.m.users), s.Users)
	require.EqualValues(t, len(h.m.outbox), s.Outbox)
	records, err := Records(h.ctx, h.c, product, historyUsers)
	require.NoError(t, err)
	var frozen, sold int64
	for i, user := range historyUsers {
		require.Equal(t, fmt.Sprint(h.m.users[user]), fmt.Sprint(records[i]))
		for _, e := range records[i] {
			switch e.Mark {
			case MarkQueued, MarkCreated:
				frozen += int64(e.Quantity)
			case MarkSettled, MarkPaid:
				sold += int64(e.Quantity)
			default: // has given its units back
			}
		}
	}
	require.Equal(t, [2]int64{s.Frozen, s.Sold}, [2]int64{frozen, sold}, "counters and records")
	outbox, _, err := OutboxScan(h.ctx, h.c, product, 0, 1000)
	require.NoError(t, err)
	require.Equal(t, h.m.outbox, outbox)
}
