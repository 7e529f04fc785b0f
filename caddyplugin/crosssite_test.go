package caddyplugin

import (
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/seckill-edge/seckill/caddyplugin/gate"
	"github.com/seckill-edge/seckill/lua"
)

// No other site's page makes a visitor's browser buy, nor fetch a ticket, whatever
// else the request has; a page of a trusted origin may.
func TestNoOtherSiteBuys(t *testing.T) {
	const site, origin = "Sec-Fetch-Site", "Origin"
	for name, tc := range map[string]struct {
		header http.Header
		in     bool
	}{
		"no browser":                {nil, true},
		"no browser, with a token":  {http.Header{"Authorization": {"Bearer x"}}, true},
		"the shop's page":           {http.Header{site: {"same-origin"}, origin: {"http://example.com"}}, true},
		"the visitor themselves":    {http.Header{site: {"none"}}, true},
		"behind a changed Host":     {http.Header{site: {"same-origin"}, origin: {"https://shop.example"}}, true},
		"an older browser":          {http.Header{origin: {"http://example.com"}}, true},
		"a trusted page":            {http.Header{site: {"cross-site"}, origin: {"https://www.example.org"}}, true},
		"older, a trusted page":     {http.Header{origin: {"https://www.example.org"}}, true},
		"a neighbour's":             {http.Header{site: {"same-site"}, origin: {"http://evil.example.com"}}, false},
		"another's":                 {http.Header{site: {"cross-site"}}, false},
		"another's, older":          {http.Header{origin: {"https://evil.example"}}, false},
		"a page without an origin":  {http.Header{origin: {"null"}}, false},
		"another port":              {http.Header{origin: {"http://example.com:8080"}}, false},
		"a trusted host, not https": {http.Header{site: {"cross-site"}, origin: {"http://www.example.org"}}, false},
		"a word nobody knows":       {http.Header{site: {"same-planet"}}, false},
		"in capitals":               {http.Header{site: {"Same-Origin"}}, false},
		"two, ours first":           {http.Header{site: {"same-origin", "cross-site"}}, false},
		"two in one":                {http.Header{site: {"same-origin, cross-site"}}, false},
		"two origins":               {http.Header{origin: {"http://example.com", "https://evil.example"}}, false},
		"a forwarded host":          {http.Header{origin: {"https://evil.example"}, "X-Forwarded-Host": {"evil.example"}, "Forwarded": {"host=evil.example"}}, false},
		"its form":                  {http.Header{site: {"cross-site"}, "Content-Type": {"text/plain"}}, false},
		"its fetch":                 {http.Header{site: {"cross-site"}, "Cookie": {"session=alice"}}, false},
		"with a password":           {http.Header{site: {"cross-site"}, "Authorization": {"Basic YWxpY2U6eA=="}}, false},
		"an added type":             {http.Header{site: {"cross-site"}, "Content-Type": {"application/json"}}, false},
		"an added key":              {http.Header{site: {"cross-site"}, "Idempotency-Key": {"k"}}, false},
		"an added ticket":           {http.Header{site: {"cross-site"}, ticketHeader: {"x"}}, false},
		"an added token":            {http.Header{site: {"cross-site"}, "Authorization": {"Bearer x"}}, false},
	} {
		for _, path := range []string{"/seckill/1001", "/seckill/1001/ticket"} {
			t.Run(name+path, func(t *testing.T) {
				s := newScript()
				s.offer = gate.Offer{Outcome: lua.Reserved, ActivityID: "a1", Now: noon}
				h := newTestHandler(s)
				h.TrustedOrigins = []string{"https://www.example.org"}
				require.NoError(t, h.trustOrigins())
				h.tickets = newTestTickets(t)
				r := httptest.NewRequest(http.MethodPost, path, nil)
				maps.Copy(r.Header, tc.header)
				answer := serve(t, h, r)
				if tc.in {
					require.Contains(t, []int{200, 202}, answer.StatusCode)
					return
				}
				require.Equal(t, "urn:seckill:cross_site", requireProblem(t, answer, 403, 0)["type"])
				require.Zero(t, s.click)
				require.Empty(t, s.asked)
			})
		}
	}
	for _, bad := range []string{"", "*", "null", "www.example.org", "https://www.example.org/", "https://www.example.org?x", "https://"} {
		h := newTestHandler(newScript())
		h.TrustedOrigins = []string{bad}
		require.ErrorContains(t, h.Validate(), "trusted_origins", "%q", bad)
	}
}

// frontAdds is what a front proxy may add to every request, or set.
const frontAdds = `
	Idempotency-Key {http.request.uuid}
	Seckill-Ticket x
	Authorization "Bearer x"
	X-Requested-With XMLHttpRequest
	X-Csrf-Token x
	X-Forwarded-User mallory
	Remote-User mallory
	X-Forwarded-Host evil.example
	Forwarded "for=192.0.2.1;host=evil.example;proto=https"
	Last-Event-ID paid
	Accept text/event-stream
	Sec-Fetch-Mode same-origin
	Sec-Fetch-Dest empty
	X-HTTP-Method-Override PUT`

// Behind a real proxy that adds whatever it can to all requests, and the login to
// those of its visitors, other sites' pages buy nothing; the shop's own page and
// programs do.
func TestNoOtherSiteBuysBehindAProxy(t *testing.T) {
	redisURL, rabbitmqURL := backings()[0].start(t)
	e := newEdge(t, redisURL, rabbitmqURL)
	front := freeAddress(t)
	var adds strings.Builder
	for line := range strings.Lines(frontAdds) {
		if line = strings.TrimSpace(line); line != "" {
			adds.WriteString("header_up " + line + "\n")
		}
	}
	e.load(e.config("", byHeader) + "http://" + front + " {\nbind 127.0.0.1\nreverse_proxy " + e.site +
		" {\nheader_up X-User-Id {http.request.cookie.session}\n" + adds.String() + "}\n}\n")
	e.sell(100, 10)
	e.waitOpen()
	buy := func(path, body string, header map[string]string) reply {
		return e.again(func() (reply, error) {
			r, err := http.NewRequest(http.MethodPost, "http://"+front+path, strings.NewReader(body))
			require.NoError(t, err)
			r.Header.Set("Cookie", "session=alice")
			for k, v := range header {
				r.Header.Set(k, v)
			}
			return e.do(r)
		})
	}
	const two = `{"quantity":2}`
	for name, header := range map[string]map[string]string{
		"a form":           {"Sec-Fetch-Site": "cross-site", "Content-Type": "text/plain"},
		"a fetch":          {"Sec-Fetch-Site": "cross-site", "Origin": "https://evil.example"},
		"a neighbour":      {"Sec-Fetch-Site": "same-site", "Origin": "http://evil." + front},
		"a sandbox":        {"Origin": "null"},
		"an older browser": {"Origin": "https://evil.example"},
	} {
		for _, body := range []string{"", two} {
			r := buy("/seckill/1001", body, header)
			require.Equal(t, 403, r.status, "%s %s", name, r.body)
			require.Equal(t, "urn:seckill:cross_site", r.document(t)["type"], name)
		}
	}
	require.Equal(t, "100", e.left())
	json := map[string]string{"Content-Type": "application/json"}
	require.Equal(t, 202, buy("/seckill/1001", two, json).status)
	json["Sec-Fetch-Site"], json["Origin"] = "same-origin", "http://"+front
	require.Equal(t, 202, buy("/seckill/1001", two, json).status)
	delete(json, "Sec-Fetch-Site")
	require.Equal(t, 202, buy("/seckill/1001", two, json).status)
	require.Equal(t, "94", e.left())
}
