package main

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/seckill-edge/seckill/caddyplugin/token"
)

func TestTickets(t *testing.T) {
	s, url := newShop(t, 10)
	code, _, errs := start(t, url, "--buyers", "5", "--ticket")
	require.Equal(t, exitUnusable, code)
	require.Contains(t, errs, "this edge gives no tickets")
	s.ticketed = true
	code, r, _ := start(t, url, "--buyers", "5")
	require.Equal(t, exitRefused, code)
	require.Equal(t, map[string]int{"no ticket": 5}, clicksOf(r))
	code, r, _ = start(t, url, "--buyers", "15", "--ticket")
	require.Equal(t, exitOK, code)
	require.Equal(t, map[string]int{"queued": 10, "sold out": 5}, clicksOf(r))
}

// Buyers prove who they are by tokens, and the edge decides.
func TestTokens(t *testing.T) {
	s, url := newShop(t, 10)
	key, err := token.NewKey("k", token.HS256, "a secret that only this test and its edge know")
	require.NoError(t, err)
	s.tokens, err = token.New(token.Config{Keys: []token.Key{key}, Issuer: "i", Audience: []string{"a"}, Now: time.Now})
	require.NoError(t, err)
	file := filepath.Join(t.TempDir(), "secret")
	require.NoError(t, os.WriteFile(file, []byte("a secret that only this test and its edge know\n"), 0o600))
	proof := []string{"--buyers", "15", "--token-secret-file", file, "--token-key-id", "k", "--issuer", "i", "--audience"}
	code, r, errs := start(t, url, append(proof, "a")...)
	require.Equal(t, exitOK, code, errs)
	require.Equal(t, map[string]int{"queued": 10, "sold out": 5}, clicksOf(r))
	for user := range s.bought {
		require.Regexp(t, `^buyer-1-\d+$`, user)
	}
	code, _, errs = start(t, url, append(proof, "another shop")...)
	require.Equal(t, exitUnusable, code)
	require.Contains(t, errs, "does not take the tokens")
	require.NotContains(t, errs, "a secret that")
}
