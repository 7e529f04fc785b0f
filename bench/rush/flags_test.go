package main

import (
	"bytes"
	"net/netip"
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func mustURL(t *testing.T, s string) *url.URL {
	u, err := url.Parse(s)
	require.NoError(t, err)
	return u
}

func TestUsage(t *testing.T) {
	base := []string{"--url", "http://127.0.0.1:1", "--product", "1001"}
	for name, tc := range map[string]struct {
		args []string
		says string
	}{
		"nothing":         {nil, "--url is missing"},
		"no address":      {[]string{"--url", "127.0.0.1:8480", "--product", "1"}, "--url is no http or https address"},
		"a password":      {[]string{"--url", "http://a:hush@127.0.0.1", "--product", "1"}, "without user and password"},
		"another machine": {[]string{"--url", "http://192.0.2.1", "--product", "1"}, "--allow-remote"},
		"its console":     {append(base, "--console", "http://192.0.2.1"), "--console http://192.0.2.1 is not this machine"},
		"product":         {[]string{"--url", "http://[::1]:1", "--product", "a b"}, `--product "a b" is no product id`},
		"buyers":          {append(base, "--buyers", "0"), "--buyers 0 is out of range; use 1 to 1000000"},
		"clicks":          {append(base, "--clicks-per-buyer", "1001"), "--clicks-per-buyer 1001"},
		"concurrency":     {append(base, "--concurrency", "-1"), "--concurrency -1"},
		"header":          {append(base, "--user-header", ""), `--user-header "" is no name of a header`},
		"no header":       {append(base, "--user-header", "X Y"), `--user-header "X Y" is no name of a header`},
		"half a token":    {append(base, "--token-secret-file", "x", "--audience", "shop"), "--token-key-id is missing"},
		"two identities":  {append(base, "--user-header", "X-User-Id", "--issuer", "x"), "--user-header has no use with tokens"},
		"no secret": {
			append(base, "--token-secret-file", "/nowhere", "--token-key-id", "k", "--issuer", "i", "--audience", "a"),
			`--token-secret-file "/nowhere": must be a readable file`,
		},
		"no secret in it": {
			append(base, "--token-secret-file", "flags.go", "--token-key-id", "k", "--issuer", "i", "--audience", "a"),
			`--token-secret-file "flags.go": the file has the character U+000A`,
		},
		"a long key id": {
			append(base, "--token-secret-file", "testdata/token.secret", "--token-key-id", strings.Repeat("k", 200), "--issuer", "i", "--audience", "a"),
			"--token-secret-file testdata/token.secret: key id",
		},
		"timeout":       {append(base, "--timeout", "0s"), "--timeout 0s"},
		"shares":        {append(base, "--pay", "70", "--console", "http://127.0.0.1:1"), "must make 100"},
		"a share":       {append(base, "--pay", "101"), "--pay 101 is no percentage"},
		"shares, alone": {append(base, "--pay", "100"), "need --console"},
		"unknown flag":  {append(base, "--bogus"), "unknown flag: --bogus"},
		"no number":     {append(base, "--buyers", "many"), `--buyers "many": must be a whole number`},
		"an argument":   {append(base, "now"), `unexpected argument "now"`},
	} {
		t.Run(name, func(t *testing.T) {
			var out, errs bytes.Buffer
			require.Equal(t, exitUnusable, run(t.Context(), tc.args, &out, &errs))
			require.Contains(t, errs.String(), tc.says)
			require.NotContains(t, errs.String(), "hush")
			require.Empty(t, out.String())
		})
	}
}

func TestHelp(t *testing.T) {
	var out, errs bytes.Buffer
	require.Equal(t, exitOK, run(t.Context(), []string{"--help"}, &out, &errs))
	require.Contains(t, out.String(), "Examples:")
	require.Contains(t, out.String(), "--clicks-per-buyer")
	require.Empty(t, errs.String())
}

func TestRemoteIsAllowedByItsFlagOnly(t *testing.T) {
	args := []string{"--url", "http://192.0.2.1", "--product", "1"}
	_, err := parse(args, &bytes.Buffer{})
	require.Error(t, err)
	s, err := parse(append(args, "--allow-remote"), &bytes.Buffer{})
	require.NoError(t, err)
	require.Nil(t, sourcesOf(s.url), "the system chooses the address for another machine")
}

func TestSourcesAreDistinctLoopbackAddresses(t *testing.T) {
	seen := map[netip.Addr]bool{}
	for _, buyer := range []int{0, 1, 252, 253, 254, 255, 507, 508, 65_023, 65_024, 65_025, 999_999} {
		a, ok := netip.AddrFromSlice(source(buyer).IP)
		require.True(t, ok)
		a = a.Unmap()
		require.True(t, a.IsLoopback(), a)
		require.NotContains(t, []byte{0, 255}, a.As4()[3])
		require.False(t, seen[a], a)
		seen[a] = true
	}
}

func TestClassify(t *testing.T) {
	const id = "01jdv0000000000000000000ab"
	for name, tc := range map[string]struct {
		status int
		body   string
		kind   string
	}{
		"queued":              {202, `{"code":0,"order_id":"` + id + `","quantity":2}`, queued},
		"queued, no order":    {202, `{"code":0}`, unexpected},
		"queued, no quantity": {202, `{"code":0,"order_id":"` + id + `"}`, unexpected},
		"not JSON":            {202, `<html>`, unexpected},
		"bad request":         {400, `{"code":-1}`, "bad request"},
		"unknown buyer":       {401, `{}`, "unknown buyer"},
		"not started":         {403, `{"code":-2}`, "not started"},
		"ended":               {410, `{"code":-3}`, "ended"},
		"already bought":      {409, `{"code":-4}`, "already bought"},
		"no product":          {404, `{"code":-5}`, "no such product"},
		"sold out":            {410, `{"code":-6}`, "sold out"},
		"too few":             {409, `{"code":-7}`, "too few left"},
		"held":                {503, `{"code":-8}`, "held"},
		"unavailable":         {503, `{"code":-14}`, "unavailable"},
		"limited":             {429, ``, "limited"},
		"sold out as 409":     {409, `{"code":-6}`, unexpected},
		"somebody else's 404": {404, ``, unexpected},
	} {
		t.Run(name, func(t *testing.T) {
			a := classify(tc.status, []byte(tc.body))
			require.Equal(t, tc.kind, a.kind)
			require.Equal(t, tc.status, a.status)
			require.Equal(t, tc.kind == queued, a.orderID == id)
		})
	}
}
