package caddyplugin

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"fmt"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/seckill-edge/seckill/caddyplugin/gate"
	"github.com/seckill-edge/seckill/lua"
)

// What a request says is read, or the request is refused: never is another number of
// units sold than was meant.
func TestNothingIsSentAndNotRead(t *testing.T) {
	const two = `{"quantity":2}`
	type want struct {
		status int
		kind   string
	}
	var (
		sold     = want{202, ""}
		given    = want{200, ""}
		query    = want{400, "query_not_read"}
		body     = want{400, "body_not_read"}
		trailers = want{400, "trailer_not_read"}
		kind     = want{415, "unsupported_type"}
		encoding = want{415, "unsupported_encoding"}
	)
	for name, tc := range map[string]struct {
		method, path, body string
		header             http.Header
		want               want
	}{
		"a quantity in the query":         {"POST", "/seckill/1001?quantity=2", "", nil, query},
		"and in the body":                 {"POST", "/seckill/1001?quantity=2", two, nil, query},
		"any query":                       {"POST", "/seckill/1001?utm_source=mail", two, nil, query},
		"an empty query":                  {"POST", "/seckill/1001?", two, nil, sold},
		"a ticket's query":                {"POST", "/seckill/1001/ticket?quantity=2", "", nil, query},
		"a ticket's body":                 {"POST", "/seckill/1001/ticket", two, nil, body},
		"a ticket":                        {"POST", "/seckill/1001/ticket", "", nil, given},
		"no type":                         {"POST", "/seckill/1001", two, nil, sold},
		"JSON":                            {"POST", "/seckill/1001", two, http.Header{"Content-Type": {"application/json"}}, sold},
		"JSON in UTF-8":                   {"POST", "/seckill/1001", two, http.Header{"Content-Type": {`Application/JSON; Charset="UTF-8"`}}, sold},
		"JSON in another code":            {"POST", "/seckill/1001", two, http.Header{"Content-Type": {"application/json; charset=latin1"}}, kind},
		"JSON with a parameter":           {"POST", "/seckill/1001", two, http.Header{"Content-Type": {"application/json; units=2"}}, kind},
		"two types":                       {"POST", "/seckill/1001", two, http.Header{"Content-Type": {"application/json", "text/plain"}}, kind},
		"two types in one":                {"POST", "/seckill/1001", two, http.Header{"Content-Type": {"application/json, text/plain"}}, kind},
		"a form":                          {"POST", "/seckill/1001", "quantity=2", http.Header{"Content-Type": {"application/x-www-form-urlencoded"}}, kind},
		"JSON called a form":              {"POST", "/seckill/1001", two, http.Header{"Content-Type": {"application/x-www-form-urlencoded"}}, kind},
		"plain text":                      {"POST", "/seckill/1001", two, http.Header{"Content-Type": {"text/plain"}}, kind},
		"an empty type":                   {"POST", "/seckill/1001", two, http.Header{"Content-Type": {""}}, kind},
		"an empty form":                   {"POST", "/seckill/1001", "", http.Header{"Content-Type": {"application/x-www-form-urlencoded"}}, sold},
		"called compressed":               {"POST", "/seckill/1001", two, http.Header{"Content-Encoding": {"gzip"}}, encoding},
		"compressed":                      {"POST", "/seckill/1001", compressed(t, two), http.Header{"Content-Encoding": {"gzip"}}, encoding},
		"compressed, and called nothing":  {"POST", "/seckill/1001", compressed(t, two), nil, want{400, "bad_body"}},
		"nothing, called compressed":      {"POST", "/seckill/1001", "", http.Header{"Content-Encoding": {"br"}}, encoding},
		"compressed as it is":             {"POST", "/seckill/1001", two, http.Header{"Content-Encoding": {"identity"}}, sold},
		"compressed twice":                {"POST", "/seckill/1001", two, http.Header{"Content-Encoding": {"identity", "gzip"}}, encoding},
		"a field behind the body":         {"POST", "/seckill/1001", two, http.Header{"Trailer": {"Idempotency-Key"}}, trailers},
		"two keys":                        {"POST", "/seckill/1001", two, http.Header{"Idempotency-Key": {"a", "b"}}, want{400, "bad_key"}},
		"two keys, the same":              {"POST", "/seckill/1001", two, http.Header{"Idempotency-Key": {"a", "a"}}, want{400, "bad_key"}},
		"two tickets":                     {"POST", "/seckill/1001", two, http.Header{ticketHeader: {"a", "b"}}, want{403, "ticket_invalid"}},
		"two quantities":                  {"POST", "/seckill/1001", `{"quantity":1,"quantity":2}`, nil, want{400, "bad_body"}},
		"something behind":                {"POST", "/seckill/1001", two + `{"quantity":3}`, nil, want{400, "bad_body"}},
		"a byte order mark":               {"POST", "/seckill/1001", "\ufeff" + two, nil, want{400, "bad_body"}},
		"the activity, with a body":       {"GET", "/seckill/1001", two, nil, body},
		"an order, with a body":           {"GET", location, two, nil, body},
		"an order's events, with a body":  {"GET", location + "/events", two, nil, body},
		"the activity, whatever it asked": {"GET", "/seckill/1001?_=1", "", nil, given},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScript()
			s.offer = gate.Offer{Outcome: lua.Reserved, ActivityID: "a1", Now: noon}
			s.view.ProductID, s.outcome = "1001", lua.Reserved
			h := newTestHandler(s)
			h.tickets = newTestTickets(t)
			r := httptest.NewRequest(tc.method, tc.path, strings.NewReader(tc.body))
			maps.Copy(r.Header, tc.header)
			if tc.header["Trailer"] != nil { // as net/http has it
				r.Trailer = http.Header{"Idempotency-Key": nil}
			}
			answer := serve(t, h, r)
			require.Equal(t, tc.want.status, answer.StatusCode)
			if tc.want.kind == "" {
				return
			}
			require.Equal(t, "urn:seckill:"+tc.want.kind, document(t, answer)["type"])
			require.Zero(t, s.click)
			require.Equal(t, tc.want == kind, answer.Header.Get("Accept-Post") == "application/json")
			require.Equal(t, tc.want == encoding, answer.Header.Get("Accept-Encoding") == "identity")
		})
	}
	h := newTestHandler(newScript())
	h.identity = newIdentity("http.request.uri.query.user")
	r := prepare(httptest.NewRecorder(), httptest.NewRequest(http.MethodPost, "/seckill/1001?user=alice", nil), "")
	require.Nil(t, h.unread(r), "a query that says who buys is read")
}

func compressed(t *testing.T, text string) string {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	_, err := w.Write([]byte(text))
	require.NoError(t, err)
	require.NoError(t, w.Close())
	return b.String()
}

// The same on the wire of HTTP/1, where what frames a body can be wrong as well.
func TestBodiesOnTheWire(t *testing.T) {
	redisURL, rabbitmqURL := backings()[0].start(t)
	e := newEdge(t, redisURL, rabbitmqURL)
	e.load(e.config("", byHeader))
	e.sell(10, 10)
	e.waitOpen()
	cases := map[string]struct {
		fields, body string
		status       int
		halfClosed   bool // the client says that no more will come
	}{
		"whole":                     {"Content-Length: 14", `{"quantity":2}`, 202, false},
		"in chunks":                 {"Transfer-Encoding: chunked", "e\r\n{\"quantity\":2}\r\n0\r\n\r\n", 202, false},
		"asked for first":           {"Content-Length: 14\r\nExpect: 100-continue", `{"quantity":2}`, 202, false},
		"cut short":                 {"Content-Length: 14", `{"quantity":`, 400, true},
		"chunks cut short":          {"Transfer-Encoding: chunked", "e\r\n{\"quantity\":2}\r\n", 400, true},
		"no chunk":                  {"Transfer-Encoding: chunked", "x\r\n{\"quantity\":2}\r\n0\r\n\r\n", 400, false},
		"a chunk too long":          {"Transfer-Encoding: chunked", "d\r\n{\"quantity\":2}\r\n0\r\n\r\n", 400, false},
		"a length that is none":     {"Content-Length: two", `{"quantity":2}`, 400, false},
		"two lengths":               {"Content-Length: 14\r\nContent-Length: 15", `{"quantity":2}`, 400, false},
		"a coding nobody knows":     {"Transfer-Encoding: gzip", `{"quantity":2}`, 501, false},
		"an expectation":            {"Content-Length: 14\r\nExpect: two-units", `{"quantity":2}`, 417, false},
		"fields behind the body":    {"Transfer-Encoding: chunked\r\nTrailer: Idempotency-Key", "e\r\n{\"quantity\":2}\r\n0\r\nIdempotency-Key: a\r\n\r\n", 400, false},
		"too large, said before":    {"Content-Length: 5000", `{`, 413, false},
		"too large, found out":      {"Transfer-Encoding: chunked", "1388\r\n" + strings.Repeat(" ", 5000) + "\r\n", 413, false},
		"called compressed":         {"Content-Length: 14\r\nContent-Encoding: gzip", `{"quantity":2}`, 415, false},
		"half of it, then silence":  {"Content-Length: 14", `{"quan`, 408, false},
		"no byte of it":             {"Content-Length: 14", ``, 408, false},
		"half a chunk and no more":  {"Transfer-Encoding: chunked", "e\r\n{\"quan", 408, false},
		"no last chunk for so long": {"Transfer-Encoding: chunked", "e\r\n{\"quantity\":2}\r\n", 408, false},
	}
	var asking sync.WaitGroup // together: some wait for seconds
	for name, tc := range cases {
		asking.Go(func() {
			t.Run(name, func(t *testing.T) {
				answer := onTheWire(t, e.site, strings.ReplaceAll(name, " ", "-"), tc.fields, tc.body, tc.halfClosed)
				require.Equal(t, tc.status, answer.StatusCode)
				if tc.status == http.StatusRequestTimeout {
					requireProblem(t, answer, 408, 0)
					require.Equal(t, "1", answer.Header.Get("Retry-After"))
					require.True(t, answer.Close, "no request begins in the rest of that body")
				}
			})
		})
	}
	asking.Wait()
	require.Equal(t, "4", e.left(), "two units each for those who have sent a whole body")
}

// onTheWire sends a purchase as it is written, and reads the answer.
func onTheWire(t *testing.T, site, user, fields, body string, halfClosed bool) *http.Response {
	conn, err := net.Dial("tcp", site)
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	_, err = fmt.Fprintf(conn, "POST /seckill/1001 HTTP/1.1\r\nHost: %s\r\nX-User-Id: %s\r\n%s\r\n\r\n%s", site, user, fields, body)
	require.NoError(t, err)
	if halfClosed {
		require.NoError(t, conn.(*net.TCPConn).CloseWrite())
	}
	require.NoError(t, conn.SetReadDeadline(time.Now().Add(soon)))
	in := bufio.NewReader(conn)
	answer, err := http.ReadResponse(in, nil)
	require.NoError(t, err)
	if answer.StatusCode == http.StatusContinue {
		answer, err = http.ReadResponse(in, nil)
		require.NoError(t, err)
	}
	return answer
}
