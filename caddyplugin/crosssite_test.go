package caddyplugin

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/seckill-edge/seckill/caddyplugin/gate"
	"github.com/seckill-edge/seckill/lua"
)

// No other site's page makes a visitor's browser buy, nor fetch a ticket; a page
// that was allowed to may.
func TestNoOtherSiteBuys(t *testing.T) {
	for name, tc := range map[string]struct {
		header map[string]string
		in     bool
	}{
		"no browser":          {nil, true},
		"the shop's page":     {map[string]string{"Sec-Fetch-Site": "same-origin"}, true},
		"a neighbour's":       {map[string]string{"Sec-Fetch-Site": "same-site"}, true},
		"another's form":      {map[string]string{"Sec-Fetch-Site": "cross-site", "Content-Type": "text/plain"}, false},
		"another's fetch":     {map[string]string{"Sec-Fetch-Site": "cross-site", "Cookie": "session=alice"}, false},
		"with a password":     {map[string]string{"Sec-Fetch-Site": "cross-site", "Authorization": "Basic YWxpY2U6eA=="}, false},
		"allowed, a body":     {map[string]string{"Sec-Fetch-Site": "cross-site", "Content-Type": "application/json; charset=utf-8"}, true},
		"allowed, a key":      {map[string]string{"Sec-Fetch-Site": "cross-site", "Idempotency-Key": "k"}, true},
		"allowed, with token": {map[string]string{"Sec-Fetch-Site": "cross-site", "Authorization": "Bearer x"}, true},
	} {
		for _, path := range []string{"/seckill/1001", "/seckill/1001/ticket"} {
			t.Run(name+path, func(t *testing.T) {
				s := newScript()
				s.offer = gate.Offer{Outcome: lua.Reserved, ActivityID: "a1", Now: noon}
				h := newTestHandler(s)
				h.tickets = newTestTickets(t)
				r := httptest.NewRequest(http.MethodPost, path, nil)
				for k, v := range tc.header {
					r.Header.Set(k, v)
				}
				answer := serve(t, h, r)
				if tc.in {
					require.Contains(t, []int{200, 202}, answer.StatusCode)
					return
				}
				require.Equal(t, "urn:seckill:cross_site", requireProblem(t, answer, 403, 0)["type"])
				require.Zero(t, s.click)
			})
		}
	}
}
