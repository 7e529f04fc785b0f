package main

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"
)

// A click whose answer was lost is repeated under the same Idempotency-Key: it is one
// order and counts as one click, also where a buyer may have more.
func TestLostAnswers(t *testing.T) {
	for name, tc := range map[string]struct {
		lose    func(n int) bool
		clicks  map[string]int
		unknown int64
		stored  int64
	}{
		"every second one":  {func(n int) bool { return n%2 == 1 }, map[string]int{"queued": 10}, 0, 10},
		"one buyer's first": {func(n int) bool { return n == 1 }, map[string]int{"queued": 10}, 0, 10},
		"all of one click":  {func(n int) bool { return n <= clickTries }, map[string]int{"queued": 9, "no answer": 1}, 1, 10},
	} {
		t.Run(name, func(t *testing.T) {
			s, url := newShop(t, 50)
			s.limit, s.lose = 2, tc.lose
			code, r, errs := start(t, url, "--buyers", "5", "--clicks-per-buyer", "2", "--concurrency", "1")
			require.Equal(t, exitOK, code, "%+v %s", r.Check, errs)
			require.Equal(t, 10, r.Clicks, "a repeat is no click")
			require.Equal(t, tc.clicks, clicksOf(r))
			require.Equal(t, tc.unknown, r.Check.Unknown)
			require.Equal(t, 10-tc.unknown, r.Check.Told)
			require.Equal(t, tc.stored, r.Check.Stored)
			require.Len(t, s.owners, 10)
		})
	}
}

// An answer that no edge gives, as a proxy's 502, does not say that nothing was bought.
func TestAProxysAnswerIsAskedForAgain(t *testing.T) {
	s, url := newShop(t, 50)
	s.answer = func(w http.ResponseWriter, n int) bool {
		if n == 1 {
			w.WriteHeader(http.StatusBadGateway)
		}
		return n == 1
	}
	code, r, _ := start(t, url, "--buyers", "5")
	require.Equal(t, exitOK, code)
	require.Equal(t, map[string]int{"queued": 5}, clicksOf(r))
}

// A ticket is fetched once for a click: when its answer is asked for again, nobody may
// be given one any more.
func TestALostAnswerOfTheLastUnit(t *testing.T) {
	s, url := newShop(t, 1)
	s.ticketed, s.lose = true, func(n int) bool { return n == 1 }
	code, r, errs := start(t, url, "--buyers", "1", "--ticket")
	require.Equal(t, exitOK, code, "%+v %s", r.Check, errs)
	require.Equal(t, map[string]int{"queued": 1}, clicksOf(r))
}
