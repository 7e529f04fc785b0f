package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/seckill-edge/seckill/e2e/stack"
	"github.com/seckill-edge/seckill/internal/servicetest"
)

// start brings up a whole product with n edges and as many backends.
func start(t *testing.T, n int) *stack.Stack {
	t.Helper()
	return startWith(t, n, stack.Options{})
}

func startWith(t *testing.T, n int, o stack.Options) *stack.Stack {
	t.Helper()
	dir, err := os.MkdirTemp("", "seckill-e2e-") // not t.TempDir: MariaDB's user must reach it
	require.NoError(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	require.NoError(t, os.Chmod(dir, 0o755))
	ctx, cancel := context.WithTimeout(t.Context(), servicetest.Scaled(10*time.Minute))
	defer cancel()
	s, err := stack.Start(ctx, dir, o)
	t.Cleanup(func() { require.NoError(t, s.Stop()) })
	require.NoError(t, err)
	for range n {
		_, err = s.AddBackend(ctx)
		require.NoError(t, err)
		_, err = s.AddEdge(ctx)
		require.NoError(t, err)
	}
	return s
}

// answer is what an edge said.
type answer struct {
	Status    int
	Code      int    `json:"code"`
	OrderID   string `json:"order_id"`
	StatusURL string `json:"status_url"`
	Fate      string `json:"status"`
}

func call(t *testing.T, method, url, user string) answer {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, url, nil)
	require.NoError(t, err)
	req.Header.Set("X-User-Id", user)
	resp, err := http.DefaultClient.Do(req)
	require.NoError(t, err)
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	a := answer{}
	_ = json.Unmarshal(body, &a) // a problem's status is a number; the code is what counts
	a.Status = resp.StatusCode
	return a
}

type audit struct {
	Total, Available, Frozen, Sold, Outbox, Queued int64
	Orders, Units                                  map[string]int64
	Drift                                          int64
	Consistent                                     bool
}

func readAudit(t *testing.T, backend, product string) audit {
	t.Helper()
	resp, err := http.Get(backend + "/api/activities/" + product + "/audit")
	require.NoError(t, err)
	defer resp.Body.Close()
	require.Equal(t, http.StatusOK, resp.StatusCode)
	var a audit
	require.NoError(t, json.NewDecoder(resp.Body).Decode(&a))
	return a
}

// One sale on real servers, two edges and two backends: 1,000 buyers, each
// clicking at both edges, 100 units.
func TestASaleOnTwoEdgesAndTwoBackends(t *testing.T) {
	s := start(t, 2)
	for _, args := range [][]string{
		{
			"activity", "create", "--product", "1001", "--title", "Phone", "--total", "100",
			"--start", "2026-01-01T00:00:00+08:00", "--end", "2100-01-01T00:00:00+08:00", "--manual",
		},
		{"activity", "preheat", "1001"},
		{"activity", "open", "1001"},
	} {
		_, err := s.Seckilld(t.Context(), args...)
		require.NoError(t, err)
	}

	const buyers = 1000
	answers := make([][2]answer, buyers)
	slots := make(chan struct{}, 64)
	var wg sync.WaitGroup
	for i := range buyers {
		for edge := range s.Edges {
			slots <- struct{}{}
			wg.Go(func() {
				answers[i][edge] = call(t, http.MethodPost, s.Edges[edge].URL+"/seckill/1001", fmt.Sprintf("buyer-%d", i))
				<-slots
			})
		}
	}
	wg.Wait()

	bought := map[string]string{} // order id → buyer
	for i, both := range answers {
		for _, a := range both {
			switch a.Status {
			case http.StatusAccepted:
				require.NotContains(t, bought, a.OrderID)
				bought[a.OrderID] = fmt.Sprintf("buyer-%d", i)
			case http.StatusConflict:
				require.Equal(t, -4, a.Code)
			default:
				require.Equal(t, http.StatusGone, a.Status)
				require.Equal(t, -6, a.Code)
			}
		}
		require.False(t, both[0].Status == http.StatusAccepted && both[1].Status == http.StatusAccepted, "buyer-%d bought at both edges", i)
	}
	require.Len(t, bought, 100)

	for id, buyer := range bought {
		for _, edge := range s.Edges {
			servicetest.Eventually(t, func() bool {
				a := call(t, http.MethodGet, edge.URL+"/seckill/1001/orders/"+id, buyer)
				return a.Status == http.StatusOK && a.Fate == "created"
			}, "order %s", id)
		}
	}
	for _, b := range s.Backends {
		servicetest.Eventually(t, func() bool { a := readAudit(t, b.URL, "1001"); return a.Outbox == 0 && a.Queued == 0 })
		require.Equal(t, audit{
			Total: 100, Sold: 100, Consistent: true,
			Orders: map[string]int64{"created": 100}, Units: map[string]int64{"created": 100},
		}, readAudit(t, b.URL, "1001"))
	}
}
