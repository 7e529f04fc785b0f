package e2e

import (
	"crypto/ed25519"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"
	"github.com/stretchr/testify/require"

	seckill "github.com/seckill-edge/seckill"
	"github.com/seckill-edge/seckill/e2e/stack"
	"github.com/seckill-edge/seckill/internal/servicetest"
	"github.com/seckill-edge/seckill/lua"
)

// signedCaddyfile is the production Caddyfile with its two lines for signed
// tokens.
func signedCaddyfile(t *testing.T, key ed25519.PrivateKey) []byte {
	t.Helper()
	config := string(seckill.Caddyfile)
	for from, to := range map[string]string{
		"\t\tseckill {\n\t\t\tidentity": fmt.Sprintf("\t\tseckill_jwt {\n\t\t\tkey k1 EdDSA %s\n\t\t\tissuer https://login.example\n\t\t\taudience shop\n\t\t}\n\t\tseckill {\n\t\t\tidentity",
			base64.StdEncoding.EncodeToString(key.Public().(ed25519.PublicKey))),
		"{$SECKILL_IDENTITY:http.auth.user.id}":   "http.auth.user.id",
		"{$SECKILL_INSECURE_CLIENT_IDENTITY:off}": "off",
	} {
		require.Equal(t, 1, strings.Count(config, from), from)
		config = strings.Replace(config, from, to, 1)
	}
	return []byte(config)
}

// signed asks an edge as who a token names, with a ticket unless it is empty.
func signed(t *testing.T, url, token, ticket string) (status int, body map[string]any) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, nil)
	require.NoError(t, err)
	req.Header.Set("X-User-Id", "mallory")
	req.Header.Set("Authorization", "Bearer "+token)
	if ticket != "" {
		req.Header.Set("Seckill-Ticket", ticket)
	}
	resp, err := http.DefaultClient.Do(req)
	require.NoError(t, err)
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(text, &body), "%s", text)
	return resp.StatusCode, body
}

// A sale to signed buyers with tickets, from the login to SQL: 40 buyers with one
// ticket each, played five times at both edges, 20 units.
func TestASaleWithTickets(t *testing.T) {
	_, key, err := ed25519.GenerateKey(nil)
	require.NoError(t, err)
	t.Setenv("SECKILL_TICKET_KEY", "what only the edges of this shop know")
	t.Setenv("SECKILL_TICKET_KEYS", "{env.SECKILL_TICKET_KEY}")
	t.Setenv("SECKILL_REQUIRE_TICKET", "on")
	s := startWith(t, 2, stack.Options{Caddyfile: signedCaddyfile(t, key)})
	for _, args := range [][]string{
		{
			"activity", "create", "--product", "1001", "--title", "Phone", "--total", "20", "--manual",
			"--start", "2026-01-01T00:00:00+08:00", "--end", "2100-01-01T00:00:00+08:00",
		},
		{"activity", "preheat", "1001"},
		{"activity", "open", "1001"},
	} {
		_, err := s.Seckilld(t.Context(), args...)
		require.NoError(t, err)
	}
	const buyers, plays = 40, 5
	tokens, tickets := make([]string, buyers), make([]string, buyers)
	for i := range buyers {
		token := jwt.NewWithClaims(jwt.SigningMethodEdDSA, jwt.MapClaims{
			"iss": "https://login.example", "aud": "shop", "sub": fmt.Sprintf("buyer-%d", i), "exp": time.Now().Add(time.Hour).Unix(),
		})
		token.Header["kid"] = "k1"
		tokens[i], err = token.SignedString(key)
		require.NoError(t, err)
		servicetest.Eventually(t, func() bool { // until the edge has connected
			status, body := signed(t, s.Edges[i%2].URL+"/seckill/1001/ticket", tokens[i], "")
			tickets[i], _ = body["ticket"].(string)
			return status == http.StatusOK
		})
	}
	status, body := signed(t, s.Edges[0].URL+"/seckill/1001", tokens[0], "")
	require.Equal(t, http.StatusForbidden, status)
	require.EqualValues(t, -13, body["code"])
	status, _ = signed(t, s.Edges[0].URL+"/seckill/1001", tokens[0], tickets[1])
	require.Equal(t, http.StatusForbidden, status)

	var mu sync.Mutex
	orders := make([]map[string]bool, buyers) // of each buyer
	var wg sync.WaitGroup
	for i := range buyers {
		orders[i] = map[string]bool{}
		for play := range 2 * plays {
			wg.Go(func() {
				var status int
				var body map[string]any
				servicetest.Eventually(t, func() bool { // while more are on their way than the units left can serve
					status, body = signed(t, s.Edges[play%2].URL+"/seckill/1001", tokens[i], tickets[i])
					return body["code"] != float64(lua.Crowded)
				})
				mu.Lock()
				defer mu.Unlock()
				if status == http.StatusAccepted {
					orders[i][body["order_id"].(string)] = true
				} else if status != http.StatusGone {
					t.Errorf("buyer-%d: %d %v", i, status, body)
				}
			})
		}
	}
	wg.Wait()
	bought := 0
	for i, own := range orders {
		require.LessOrEqual(t, len(own), 1, "buyer-%d", i)
		bought += len(own)
	}
	require.Equal(t, 20, bought)
	want := audit{
		Total: 20, Sold: 20, Consistent: true,
		Orders: map[string]int64{"created": 20}, Units: map[string]int64{"created": 20},
	}
	for _, b := range s.Backends {
		var got audit
		servicetest.Eventually(t, func() bool {
			got = readAudit(t, b.URL, "1001")
			return got.Outbox == 0 && got.Queued == 0 && got.Sold == 20
		})
		require.Equal(t, want, got)
	}
}
