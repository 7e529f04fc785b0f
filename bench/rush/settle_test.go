package main

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestNotSettledInTime(t *testing.T) {
	s, url := newShop(t, 10)
	s.audited = func(a *audit) { a.Queued = 4 }
	code, r, _ := start(t, url, "--buyers", "5", "--timeout", "1s")
	require.Equal(t, exitFailed, code)
	require.Contains(t, r.Error, "not settled in time (--timeout 1s): in the outbox 0, in the queue 4")

	s.audited = func(a *audit) { a.QueueKnown = false }
	code, r, _ = start(t, url, "--buyers", "5", "--seed", "2", "--timeout", "1s")
	require.Equal(t, exitFailed, code)
	require.Contains(t, r.Error, "cannot ask the broker")
	require.Contains(t, r.Error, "in the queue unknown")

	s.audited = nil
	s.shown = func(a *activity) { a.Redis, a.Why = nil, "Redis has lost it" }
	code, r, _ = start(t, url, "--buyers", "5", "--seed", "3", "--timeout", "1s")
	require.Equal(t, exitFailed, code)
	require.Contains(t, r.Error, "Redis has lost it")
}

func TestAnotherSeedBringsOtherBuyers(t *testing.T) {
	_, url := newShop(t, 30)
	for _, seed := range []string{"1", "2"} {
		code, r, _ := start(t, url, "--buyers", "10", "--seed", seed)
		require.Equal(t, exitOK, code)
		require.Equal(t, map[string]int{"queued": 10}, clicksOf(r))
	}
	code, r, _ := start(t, url, "--buyers", "10", "--seed", "2")
	require.Equal(t, exitRefused, code, "the same buyers again")
	require.True(t, r.AllRefused)
	require.False(t, r.OK)
	require.Empty(t, r.Check.Failures)
	require.Equal(t, map[string]int{"already bought": 10}, clicksOf(r))
}

// TestRejectedLater is a sale in which Redis died: some buyers were told "queued"
// before it had answered, and got nothing.
func TestRejectedLater(t *testing.T) {
	s, url := newShop(t, 10)
	s.fate, s.reason = func(string) string { return "rejected" }, "held"
	s.audited = func(a *audit) { a.Sold, a.Units["created"] = 0, 0 }
	var out, errs bytes.Buffer
	args := []string{"--url", url, "--product", "1001", "--buyers", "10", "--console", url}
	require.Equal(t, exitOK, run(t.Context(), args, &out, &errs))
	require.Contains(t, out.String(), "later       rejected 10 (held 10)\nok          every promised order is stored or was rejected")
}
