package order

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// Random walks through the table, with moves asked for at random: an order ends
// in a final state after few moves, never leaves it, and has given its stock back
// at most once.
func TestLivesOfOrders(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		at, released := Queued, 0
		for range 20 {
			to := rapid.SampledFrom(States()).Draw(t, "to")
			if !Moves(at, to) {
				continue
			}
			if at.Final() || to == at || to == Queued {
				t.Fatalf("%s moved to %s", at, to)
			}
			if at.HoldsStock() && !to.HoldsStock() {
				released++
			}
			if !at.HoldsStock() && to.HoldsStock() {
				t.Fatalf("%s took stock again as %s", at, to)
			}
			at = to
		}
		if released > 1 {
			t.Fatalf("released %d times", released)
		}
	})
}

func TestTheTableOfMoves(t *testing.T) {
	reached := map[State]bool{Queued: true}
	for changed := true; changed; {
		changed = false
		for _, from := range States() {
			for _, to := range from.Next() {
				require.Contains(t, to.Previous(), from)
				require.True(t, Moves(from, to))
				if reached[from] && !reached[to] {
					reached[to], changed = true, true
				}
			}
		}
	}
	for _, s := range States() {
		require.True(t, reached[s], "%s is reached", s)
		require.Equal(t, s.Final(), len(s.Next()) == 0)
		if !s.HoldsStock() {
			require.True(t, s.Final(), "%s holds no stock and could take some again", s)
		}
	}
	require.Equal(t, []State{Created}, Paid.Previous())
	require.Equal(t, []State{Created}, Expired.Previous())
	require.Empty(t, Queued.Previous())
	require.True(t, Paid.Final() && Cancelled.Final() && Expired.Final() && Rejected.Final())
	require.False(t, Queued.Final() || Created.Final())

	// Nobody changes the table from outside.
	next := Created.Next()
	next[0] = Rejected
	require.False(t, slices.Contains(Created.Next(), Rejected))
}

func TestPaymentReferencesAndReasons(t *testing.T) {
	for id, want := range map[string]bool{
		"pi_3Mt:42/7": true, strings.Repeat("x", 128): true,
		"": false, strings.Repeat("x", 129): false, "a b": false, "a\n": false, "é": false, "\x7f": false,
	} {
		require.Equal(t, want, ValidPayment(id), "%q", id)
	}
	for r, want := range map[Reason]bool{
		"": true, "changed_mind_2": true, Reason(strings.Repeat("x", 32)): true,
		"No": false, "a b": false, Reason(strings.Repeat("x", 33)): false,
	} {
		require.Equal(t, want, ValidCancelReason(r), "%q", r)
	}
}
