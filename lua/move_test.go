package lua

import (
	"fmt"
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"
)

// TestMoves is the table of every state an order can be in and every move.
func TestMoves(t *testing.T) {
	want := map[Mark]map[Mark]Moved{
		MarkQueued:    {MarkCreated: Done, MarkSettled: Done, MarkPaid: Done, MarkRejected: Done, MarkCancelled: Done, MarkExpired: Done},
		MarkCreated:   {MarkCreated: Already, MarkSettled: Done, MarkPaid: Done, MarkRejected: Done, MarkCancelled: Done, MarkExpired: Done},
		MarkSettled:   {MarkCreated: Already, MarkSettled: Already, MarkPaid: Conflict, MarkRejected: Conflict, MarkCancelled: Conflict, MarkExpired: Conflict},
		MarkPaid:      {MarkCreated: Already, MarkSettled: Conflict, MarkPaid: Already, MarkRejected: Conflict, MarkCancelled: Conflict, MarkExpired: Conflict},
		MarkRejected:  {MarkCreated: Conflict, MarkSettled: Conflict, MarkPaid: Conflict, MarkRejected: Already, MarkCancelled: Already, MarkExpired: Already},
		MarkCancelled: {MarkCreated: Conflict, MarkSettled: Conflict, MarkPaid: Conflict, MarkRejected: Already, MarkCancelled: Already, MarkExpired: Already},
		MarkExpired:   {MarkCreated: Conflict, MarkSettled: Conflict, MarkPaid: Conflict, MarkRejected: Already, MarkCancelled: Already, MarkExpired: Already},
	}
	units := map[Mark][3]int64{ // available, frozen, sold of 10 after a move of 2
		MarkQueued: {8, 2, 0}, MarkCreated: {8, 2, 0}, MarkSettled: {8, 0, 2}, MarkPaid: {8, 0, 2},
		MarkRejected: {10, 0, 0}, MarkCancelled: {10, 0, 0}, MarkExpired: {10, 0, 0},
	}
	onEach(t, func(t *testing.T, c redis.UniversalClient) {
		for from, moves := range want {
			for to, answer := range moves {
				what := fmt.Sprintf("%c to %c", from, to)
				require.NoError(t, c.FlushDB(t.Context()).Err())
				var id ids
				one := id.next()
				load(t, c, sale(10, 2))
				reserve(t, c, Request{OrderID: one, UserID: "u", Quantity: 2})
				if from != MarkQueued {
					require.Equal(t, []Moved{Done}, change(t, c, from, Move{UserID: "u", OrderID: one}), what)
				}
				// Twice in one batch: the second time it is no longer to be done.
				second := answer
				if answer == Done {
					second = Already
				}
				require.Equal(t, []Moved{answer, Unknown, second}, change(t, c, to, Move{UserID: "u", OrderID: one}, Move{UserID: "v", OrderID: one}, Move{UserID: "u", OrderID: one}), what)
				end := from
				if answer == Done {
					end = to
				}
				s := audit(t, c)
				require.False(t, s.Damaged, what)
				require.Equal(t, [3]int64{s.Available, s.Frozen, s.Sold}, units[end], what)
				require.Zero(t, s.Outbox, what)
				entries, err := RecordOf(t.Context(), c, product, "u")
				require.NoError(t, err)
				require.Len(t, entries, 1)
				require.Equal(t, end, entries[0].Mark, what)
			}
		}
	})
}

func change(t *testing.T, c redis.Scripter, to Mark, moves ...Move) []Moved {
	t.Helper()
	f := Settle
	if givenBack(to) {
		f = Release
	}
	moved, err := f(t.Context(), c, product, to, moves)
	require.NoError(t, err)
	return moved
}

// TestMoveMark: the two functions take their own marks only.
func TestMoveMark(t *testing.T) {
	c := connect(t, "redis://127.0.0.1:1")
	for _, to := range []Mark{0, 'z', MarkQueued, MarkRejected, MarkCancelled, MarkExpired} {
		_, err := Settle(t.Context(), c, product, to, nil)
		require.ErrorContains(t, err, "want c, s or p")
	}
	for _, to := range []Mark{0, 'z', MarkQueued, MarkCreated, MarkSettled, MarkPaid} {
		_, err := Release(t.Context(), c, product, to, nil)
		require.ErrorContains(t, err, "want r, x or e")
	}
	moved, err := Settle(t.Context(), c, product, MarkPaid, nil)
	require.NoError(t, err, "nothing to do is done without Redis")
	require.Empty(t, moved)
}

// TestMoveMany: more than fit into one script call.
func TestMoveMany(t *testing.T) {
	onEach(t, func(t *testing.T, c redis.UniversalClient) {
		load(t, c, sale(1000, 1))
		var id ids
		var moves []Move
		for range 2 {
			reqs := make([]Request, MaxPerCall)
			for i := range reqs {
				one := id.next()
				reqs[i] = Request{OrderID: one, UserID: "u" + one, Quantity: 1}
				moves = append(moves, Move{UserID: reqs[i].UserID, OrderID: one})
			}
			reserve(t, c, reqs...)
		}
		moves = append(moves, Move{UserID: "u", OrderID: id.next()})
		moved := change(t, c, MarkSettled, moves...)
		require.Len(t, moved, len(moves))
		for i, m := range moved[:len(moved)-1] {
			require.Equal(t, Done, m, i)
		}
		require.Equal(t, Unknown, moved[len(moved)-1])
		s := audit(t, c)
		require.Equal(t, [4]int64{488, 0, 512, 0}, [4]int64{s.Available, s.Frozen, s.Sold, s.Outbox})
	})
}

// TestRightToBuyReturns: a buyer whose order is given back may buy again, gets
// the claim that is free, and his record does not grow for ever.
func TestRightToBuyReturns(t *testing.T) {
	onEach(t, func(t *testing.T, c redis.UniversalClient) {
		load(t, c, sale(10, 3))
		var id ids
		kept, first := id.next(), id.next()
		require.Equal(t, []Result{{Outcome: Reserved, OrderID: "", Claim: 1}, {Outcome: Reserved, OrderID: "", Claim: 2}}, reserve(t, c, Request{OrderID: first, UserID: "u", Quantity: 1}, Request{OrderID: kept, UserID: "u", Quantity: 2}))
		require.Equal(t, []Result{{Outcome: AlreadyBought, OrderID: kept, Claim: 0}}, reserve(t, c, Request{OrderID: id.next(), UserID: "u", Quantity: 1}))
		last := first
		for i := range 10 {
			require.Equal(t, []Moved{Done, Already}, change(t, c, MarkCancelled, Move{UserID: "u", OrderID: last}, Move{UserID: "u", OrderID: last}), i)
			last = id.next()
			require.Equal(t, []Result{{Outcome: Reserved, OrderID: "", Claim: 1}}, reserve(t, c, Request{OrderID: last, UserID: "u", Quantity: 1}), i)
		}
		require.Equal(t, []Moved{Unknown}, change(t, c, MarkCancelled, Move{UserID: "u", OrderID: first}), "given back ten orders ago")
		entries, err := RecordOf(t.Context(), c, product, "u")
		require.NoError(t, err)
		require.Len(t, entries, 10, "two live ones and eight that were given back")
		s := audit(t, c)
		require.Equal(t, [3]int64{7, 3, 0}, [3]int64{s.Available, s.Frozen, s.Sold})
	})
}
