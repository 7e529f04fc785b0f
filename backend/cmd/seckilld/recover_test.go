package main

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// A database file is put back to where a payment was not yet known: commands decide
// nothing by it, until it has taken the payment back.
func TestRecover(t *testing.T) {
	s := newShell(t)
	s.must("migrate")
	s.must(create("--pay-window", "1h")...)
	s.must("activity", "preheat", "1001")
	s.must("activity", "open", "1001")
	paid, open := s.bought(), s.bought()
	s.must("reconcile", "1001")
	require.Contains(t, s.must("recover"), "has forgotten nothing")
	file := strings.TrimPrefix(s.env["SECKILL_DATABASE_URL"], "sqlite:")
	backup, err := os.ReadFile(file)
	require.NoError(t, err)
	s.must("order", "pay", paid, "--payment", "p-1")
	s.must("activity", "show", "1001") // Redis hears of the tide
	require.NoError(t, os.WriteFile(file, backup, 0o600))

	for _, line := range []string{"order cancel " + paid, "order pay " + open + " --payment p-2", "reconcile 1001", "activity stock 1001 --add 1"} {
		code, _, stderr := s.run(strings.Fields(line)...)
		require.Equal(t, exitFailed, code, line)
		require.Contains(t, stderr, "`seckilld recover`", line)
	}
	require.Contains(t, s.must("activity", "show", "1001"), "`seckilld recover`")
	require.Contains(t, s.must("recover", "--dry-run"), "to take back: 0 orders, and what became of 1")
	require.Contains(t, s.must("order", "show", paid), "created")
	require.Contains(t, s.must("recover", "--json"), `"moved": 1`)
	require.Contains(t, s.must("order", "show", paid), "paid")
	s.must("order", "pay", paid, "--payment", "p-1")
	s.must("order", "pay", open, "--payment", "p-2")
	require.Contains(t, s.must("recover"), "has forgotten nothing")
}
