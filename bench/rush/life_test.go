package main

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"
)

var lives = []string{"--pay", "70", "--cancel", "10", "--abandon", "20"}

func TestEveryUnitIsPaidFor(t *testing.T) {
	s, url := newShop(t, 100)
	s.patience = 3
	code, r, errs := start(t, url, append(lives, "--buyers", "400")...)
	require.Equal(t, exitOK, code, "%+v %s", r.Check, errs)
	require.EqualValues(t, 100, r.Life.Paid-r.Life.Late)
	require.Positive(t, r.Life.Cancelled)
	require.Positive(t, r.Life.Abandoned)
	require.Greater(t, r.Life.Rounds, 1)
	require.EqualValues(t, 100, r.Check.Audit.Sold)
	require.EqualValues(t, 100, r.Check.Told)
	require.Greater(t, clicksOf(r)["queued"], 100, "what was given back was sold again")
}

func TestTooFewBuyersLeaveTheRestForSale(t *testing.T) {
	s, url := newShop(t, 100)
	s.patience = 3
	code, r, errs := start(t, url, append(lives, "--buyers", "30")...)
	require.Equal(t, exitOK, code, "%+v %s", r.Check, errs)
	require.EqualValues(t, 100, r.Check.Audit.Available+r.Check.Audit.Sold)
	require.LessOrEqual(t, r.Check.Audit.Sold, int64(30))
}

func TestLifeChecks(t *testing.T) {
	for name, tc := range map[string]struct {
		err  func(s *shop)
		says string
	}{
		"a payment is refused": {func(s *shop) {
			s.refuse = func(verb string) int { return map[string]int{"paid": http.StatusUnauthorized}[verb] }
		}, "payments or cancellations were refused, as POST paid of order"},
		"a payment is applied and the order expires": {func(s *shop) {
			s.fate = func(id string) string {
				if s.moved[id] == "paid" {
					return "expired"
				}
				return s.moved[id]
			}
		}, "payments were applied"},
		"a unit is gone": {func(s *shop) {
			s.audited = func(a *audit) { a.Total++ }
		}, "not every unit is paid for or for sale"},
	} {
		t.Run(name, func(t *testing.T) {
			s, url := newShop(t, 10)
			s.patience = 3
			tc.err(s)
			code, r, _ := start(t, url, append(lives, "--buyers", "40", "--timeout", "20s")...)
			require.Equal(t, exitFailed, code)
			require.NotNil(t, r.Check, r.Error)
			said := ""
			for _, f := range r.Check.Failures {
				said += f + "\n"
			}
			require.Contains(t, said, tc.says)
		})
	}
}

func TestABusyBackendIsAskedAgain(t *testing.T) {
	s, url := newShop(t, 10)
	s.patience = 5
	asked := 0
	s.refuse = func(string) int {
		if asked++; asked%2 == 1 {
			return []int{http.StatusNotFound, http.StatusServiceUnavailable}[asked/2%2]
		}
		return 0
	}
	code, r, errs := start(t, url, append(lives, "--buyers", "30")...)
	require.Equal(t, exitOK, code, "%+v %s", r.Check, errs)
}
