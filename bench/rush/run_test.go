package main

import (
	"bytes"
	"context"
	"encoding/json"
	"net"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// start runs the command against a shop, with its console.
func start(t *testing.T, url string, args ...string) (code int, r report, stderr string) {
	t.Helper()
	var out, errs bytes.Buffer
	args = append([]string{"--url", url, "--product", "1001", "--console", url, "--json"}, args...)
	code = run(t.Context(), args, &out, &errs)
	if out.Len() > 0 {
		require.NoError(t, json.Unmarshal(out.Bytes(), &r), out.String())
	}
	return code, r, errs.String()
}

func clicksOf(r report) map[string]int {
	n := map[string]int{}
	for _, o := range r.Outcomes {
		n[o.Outcome] += o.Clicks
	}
	return n
}

func TestCrowdBuysWhatThereIs(t *testing.T) {
	s, url := newShop(t, 100)
	code, r, _ := start(t, url, "--buyers", "1000")
	require.Equal(t, exitOK, code)
	require.True(t, r.OK)
	require.Equal(t, map[string]int{"queued": 100, "sold out": 900}, clicksOf(r))
	require.Equal(t, 1000, r.Clicks)
	require.Equal(t, "queued", r.Outcomes[0].Outcome)
	require.LessOrEqual(t, r.Outcomes[0].P50, r.Outcomes[0].P99)
	require.LessOrEqual(t, r.Outcomes[0].P99, r.Outcomes[0].Max)
	require.EqualValues(t, 100, r.Check.Told)
	require.EqualValues(t, 100, r.Check.Sold)
	require.EqualValues(t, 100, r.Check.Stored)
	if sourcesOf(mustURL(t, url)) != nil {
		require.Len(t, s.addresses, 1000, "an address of his own for every buyer")
	}
}

func TestImpatientBuyersGetOneEach(t *testing.T) {
	_, url := newShop(t, 100)
	code, r, _ := start(t, url, "--buyers", "20", "--clicks-per-buyer", "3", "--concurrency", "8")
	require.Equal(t, exitOK, code)
	require.Equal(t, map[string]int{"queued": 20, "already bought": 40}, clicksOf(r))
}

func TestASecondRunCountsFromWhereItBegan(t *testing.T) {
	s, url := newShop(t, 30)
	_, r, _ := start(t, url, "--buyers", "10")
	require.True(t, r.OK)
	s.bought = map[string]string{} // other buyers under the same names
	code, r, _ := start(t, url, "--buyers", "10")
	require.Equal(t, exitOK, code)
	require.EqualValues(t, 10, r.Check.Stored)
	require.EqualValues(t, 20, r.Check.Audit.stored())
}

func TestChecks(t *testing.T) {
	for name, tc := range map[string]struct {
		err  func(s *shop)
		code int
		says string
	}{
		"orders on their way are waited for": {func(s *shop) {
			s.audited = func(a *audit) {
				if s.audits < 4 {
					a.Outbox, a.Consistent = 3, false
				}
			}
		}, exitOK, ""},
		"units frozen for payment are sold": {func(s *shop) {
			s.audited = func(a *audit) { a.Frozen, a.Sold = a.Sold, 0 }
		}, exitOK, ""},
		"an order is missing in SQL": {func(s *shop) {
			s.audited = func(a *audit) { a.Units["created"] = max(a.Units["created"]-1, 0) }
		}, exitFailed, "Redis gave away 10 units and SQL stored 9"},
		"both stores hold more than was told": {func(s *shop) {
			s.audited = func(a *audit) {
				if s.clicks > 0 {
					a.Sold++
					a.Units["created"]++
				}
			}
		}, exitFailed, "the buyers hold 10 units and SQL stored 11"},
		"the stores drift": {func(s *shop) {
			s.audited = func(a *audit) { a.Drift = 2 }
		}, exitFailed, "the stores drift by 2 units"},
		"a drift that passes is none": {func(s *shop) {
			s.audited = func(a *audit) {
				if s.audits < 6 {
					a.Drift = 540
				}
			}
		}, exitOK, ""},
		"a stock that is being proven is waited for": {func(s *shop) {
			s.shown = func(a *activity) {
				if s.audits < driftLooks+8 {
					a.Redis.State, a.Why = "held", "held until its stock is proven"
				}
			}
			s.audited = func(a *audit) {
				if s.audits < driftLooks+8 {
					a.Drift, a.Sold = 540, 0
				}
			}
		}, exitOK, ""},
		"the operator's hold is not waited for": {func(s *shop) {
			s.shown = func(a *activity) { a.State, a.Redis.State = "held", "held" }
		}, exitOK, ""},
		"oversold": {func(s *shop) {
			s.audited = func(a *audit) { a.Total = 9 }
		}, exitFailed, "oversold: 10 units stored, there were 9"},
		"an order is unknown": {func(s *shop) {
			s.fate = func(string) string { return "" }
		}, exitFailed, "10 promised orders are unknown to the edge"},
		"queued orders that turn out sold out are nobody's loss": {func(s *shop) {
			s.fate = func(string) string { return "rejected" }
			s.audited = func(a *audit) { a.Sold, a.Units["created"] = 0, 0 }
		}, exitOK, ""},
		"whatever else a server answers is no answer": {func(s *shop) {
			s.answer = func(w http.ResponseWriter, n int) bool { return true }
		}, exitFailed, "no click got a proper answer (HTTP 200 "},
		"everybody is refused": {func(s *shop) {
			s.answer = func(w http.ResponseWriter, n int) bool {
				refuse(w, 401, 0)
				return true
			}
		}, exitRefused, ""},
		"too many for one buyer": {func(s *shop) {
			s.answer = func(w http.ResponseWriter, n int) bool {
				clear(s.bought)
				return false
			}
		}, exitFailed, "the limit is 1"},
		"the same order twice": {func(s *shop) {
			s.answer = func(w http.ResponseWriter, n int) bool {
				w.WriteHeader(http.StatusAccepted)
				_, _ = w.Write([]byte(`{"code":0,"order_id":"01jdv0000000000000000000ab","quantity":1}`))
				return true
			}
		}, exitFailed, "order ids were promised twice"},
		"a click without an answer may have bought": {func(s *shop) {
			s.answer = func(w http.ResponseWriter, n int) bool {
				if n == 1 {
					panic(http.ErrAbortHandler)
				}
				return false
			}
		}, exitOK, ""},
		"a limited buyer is told so": {func(s *shop) {
			s.answer = func(w http.ResponseWriter, n int) bool {
				if n == 1 {
					refuse(w, 429, 0)
				}
				return n == 1
			}
		}, exitOK, ""},
		"no click gets an answer": {func(s *shop) {
			s.answer = func(w http.ResponseWriter, n int) bool { panic(http.ErrAbortHandler) }
		}, exitFailed, "no click got a proper answer"},
	} {
		t.Run(name, func(t *testing.T) {
			s, url := newShop(t, 10)
			tc.err(s)
			args := []string{"--buyers", "15", "--concurrency", "4"}
			if name == "too many for one buyer" {
				args = append(args, "--clicks-per-buyer", "2")
			}
			code, r, _ := start(t, url, args...)
			require.Equal(t, tc.code, code, "%+v", r)
			require.Equal(t, tc.code == exitOK, r.OK)
			if tc.says == "" {
				return
			}
			said := r.Error
			if r.Check != nil {
				for _, f := range r.Check.Failures {
					said += f + "\n"
				}
			}
			require.Contains(t, said, tc.says)
		})
	}
}

func TestConsoleWithToken(t *testing.T) {
	s, url := newShop(t, 10)
	s.token = "secret"
	code, _, errs := start(t, url, "--buyers", "5")
	require.Equal(t, exitUnusable, code)
	require.Contains(t, errs, "401")
	t.Setenv("SECKILL_API_TOKEN", "secret")
	code, r, errs := start(t, url, "--buyers", "5")
	require.Equal(t, exitOK, code, errs)
	require.True(t, r.OK)
}

func TestInterruptReportsWhatWasDone(t *testing.T) {
	s, url := newShop(t, 10)
	ctx, interrupt := context.WithCancel(t.Context())
	s.answer = func(_ http.ResponseWriter, n int) bool {
		if n == 20 {
			interrupt()
		}
		return false
	}
	var out, errs bytes.Buffer
	code := run(ctx, []string{"--url", url, "--product", "1001", "--console", url, "--concurrency", "1"}, &out, &errs)
	require.Equal(t, exitFailed, code)
	require.Contains(t, out.String(), "interrupted")
	require.Contains(t, out.String(), "queued")
}

func TestText(t *testing.T) {
	s, url := newShop(t, 10)
	var out, errs bytes.Buffer
	args := []string{"--url", url, "--product", "1001", "--buyers", "15", "--console", url}
	require.Equal(t, exitOK, run(t.Context(), args, &out, &errs))
	require.Regexp(t, `queued +202 +0 +10 `, out.String())
	require.Regexp(t, `sold out +410 +-6 +5 `, out.String())
	require.Contains(t, out.String(), "this run    units told 10, sold 10, stored 10\n")
	require.Contains(t, out.String(), "whole sale  units total 10 = available 0 + frozen 0 + sold 10, drift 0\n")
	require.Contains(t, out.String(), "ok          every promised order is stored, and nothing else\n")
	require.NotContains(t, out.String(), "later")

	out.Reset()
	require.Equal(t, exitRefused, run(t.Context(), args, &out, &errs))
	require.Contains(t, out.String(), `Every click was refused, most as "already bought".`)
	// What was sold before belongs to the sale, not to this run.
	require.Contains(t, out.String(), "this run    units told 0, sold 0, stored 0\n"+
		"whole sale  units total 10 = available 0 + frozen 0 + sold 10, drift 0\n"+
		"            orders created 10, in the outbox 0, in the queue 0\n")

	s.audited = func(a *audit) { a.Drift = 1 }
	out.Reset()
	require.Equal(t, exitFailed, run(t.Context(), args, &out, &errs))
	require.Contains(t, out.String(), "FAILED      the stores drift by 1 units\n")
}

func TestNothingThere(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	gone := "http://" + l.Addr().String()
	require.NoError(t, l.Close())
	_, url := newShop(t, 1)
	for name, tc := range map[string]struct {
		args []string
		says string
	}{
		"no edge":    {[]string{"--url", gone, "--product", "1001"}, "nothing answers at --url " + gone},
		"no console": {[]string{"--url", url, "--product", "1001", "--console", gone}, "asking the console"},
		"no product": {[]string{"--url", url, "--product", "7"}, "has no product 7"},
		"a prefix":   {[]string{"--url", url + "/seckill", "--product", "7"}, "has no product 7"},
		"the edge":   {[]string{"--url", url, "--product", "1001", "--console", url + "/elsewhere"}, "is not the expected JSON"},
		"a site":     {[]string{"--url", url, "--product", "1001", "--console", url + "/nowhere"}, "404 Not Found to GET " + url + "/nowhere/api/activities/1001: that is no backend"},
		"no site":    {[]string{"--url", url + "/elsewhere", "--product", "1001"}, "does not serve the edge"},
		"a 404":      {[]string{"--url", url + "/nowhere", "--product", "1001"}, "answers 404 "},
		"no window":  {[]string{"--url", url, "--product", "1001", "--console", url, "--pay", "100"}, "with a pay window"},
	} {
		t.Run(name, func(t *testing.T) {
			var out, errs bytes.Buffer
			require.Equal(t, exitUnusable, run(t.Context(), tc.args, &out, &errs))
			require.Contains(t, errs.String(), tc.says)
		})
	}
}
