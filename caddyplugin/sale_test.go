package caddyplugin

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// A sale from the first unit to the last, through Caddy, Redis and the queue.
func TestSale(t *testing.T) {
	onEach(t, func(t *testing.T, e *edge) {
		const units = 20
		e.sell(units, 1)
		e.load(e.config("", byHeader))
		e.waitOpen()

		activity := e.must("GET", "/seckill/1001", "", "")
		require.Equal(t, 200, activity.status)
		require.Equal(t, "open", activity.document(t)["state"])
		head := e.must("HEAD", "/seckill/1001", "", "")
		require.Equal(t, 200, head.status)
		require.Empty(t, head.body)

		granted := make(map[string]string)
		var mu sync.Mutex
		var buyers sync.WaitGroup
		for i := range 3 * units {
			buyers.Go(func() {
				user := fmt.Sprintf("user-%d", i)
				r, err := e.ask("POST", "/seckill/1001", user, `{"quantity":1}`)
				if err != nil || r.status != 202 && r.status != 410 {
					t.Errorf("%s: %d %s %v", user, r.status, r.body, err)
				}
				if r.status == 202 {
					mu.Lock()
					defer mu.Unlock()
					granted[user] = r.document(t)["order_id"].(string)
				}
			})
		}
		buyers.Wait()
		require.Len(t, granted, units)

		again := e.must("POST", "/seckill/1001", "late", "")
		require.Equal(t, 410, again.status)
		require.EqualValues(t, -6, again.document(t)["code"])
		for user, id := range granted {
			status := e.must("GET", "/seckill/1001/orders/"+id, user, "")
			require.Equal(t, 200, status.status)
			require.Equal(t, "queued", status.document(t)["status"])
			require.Equal(t, 404, e.must("GET", "/seckill/1001/orders/"+id, "mallory", "").status)
			break
		}
		require.Equal(t, "sold_out", e.must("GET", "/seckill/1001", "", "").document(t)["state"])
		require.Equal(t, 404, e.must("POST", "/seckill/2002", "alice", "").status)
		e.queued(granted)
	})
}

// Every line of the list is refused by a real server, and none takes a unit.
func TestBadInput(t *testing.T) {
	onEach(t, func(t *testing.T, e *edge) {
		e.sell(10, 5)
		e.load(e.config("", byHeader))
		e.waitOpen()
		for _, body := range badBodies {
			r := e.must("POST", "/seckill/1001", "alice", body)
			require.Equal(t, 400, r.status, "%q: %s", body, r.body)
			require.EqualValues(t, -1, r.document(t)["code"], "%q", body)
		}
		for _, tc := range []struct {
			method, path, user, body string
			status                   int
		}{
			{"POST", "/seckill/1001", "", "", 401},
			{"POST", "/seckill/1001", strings.Repeat("u", 129), "", 400},
			{"POST", "/seckill/1001", "\xff", "", 400},
			{"POST", "/seckill/1001", "alice", strings.Repeat(" ", maxBody+1), 413},
			{"POST", "/seckill/1001", "alice", `{"quantity":6}`, 400},
			{"POST", "/seckill/10%2F01", "alice", "", 404},
			{"POST", "/seckill/%7B1001%7D", "alice", "", 404},
			{"POST", "/seckill/1001%00", "alice", "", 404},
			{"POST", "/seckill/../seckill/1001", "alice", "", 404},
			{"POST", "/seckill/1001?quantity=-1", "alice", `{}`, 400},
			{"POST", "/seckill/", "alice", "", 404},
			{"PUT", "/seckill/1001", "alice", "", 405},
			{"GET", "/seckill/1001/orders/x", "alice", "", 404},
		} {
			r := e.must(tc.method, tc.path, tc.user, tc.body)
			require.Equal(t, tc.status, r.status, "%s %s %q: %s", tc.method, tc.path, tc.body, r.body)
			require.Equal(t, "application/problem+json", r.header.Get("Content-Type"))
		}
		left, err := e.store.Get(t.Context(), "seckill:stock:{1001}").Int()
		require.NoError(t, err)
		require.Equal(t, 10, left)
	})
}

func TestLimitThroughCaddy(t *testing.T) {
	onEach(t, func(t *testing.T, e *edge) {
		e.sell(10, 1)
		e.load(e.config("limit ip 1/1h burst 2", byHeader))
		require.Equal(t, 200, e.must("GET", "/seckill/1001", "", "").status)
		require.NotEqual(t, 429, e.must("POST", "/seckill/1001", "alice", "").status)
		r := e.must("POST", "/seckill/1001", "bob", "")
		require.Equal(t, 429, r.status)
		require.Regexp(t, `^(3[56]|[34]\d)\d\d$`, r.header.Get("Retry-After"))

		// Nobody gets a fresh burst from a reload, nor by saying who he is.
		e.load(e.config("limit ip 1/1h burst 2\nlinger 11ms", byHeader+"\n\theader X-Reloaded yes"))
		again := e.must("POST", "/seckill/1001", "bob", "")
		require.Equal(t, "yes", again.header.Get("X-Reloaded"))
		require.Equal(t, 429, again.status)
		request, err := http.NewRequest(http.MethodPost, "http://"+e.site+"/seckill/1001", nil)
		require.NoError(t, err)
		request.Header.Set("X-User-Id", "carol")
		request.Header.Set("X-Forwarded-For", "198.51.100.9")
		limited, err := e.do(request)
		require.NoError(t, err)
		require.Equal(t, 429, limited.status)
	})
}
