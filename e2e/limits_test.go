package e2e

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	seckill "github.com/seckill-edge/seckill"
	"github.com/seckill-edge/seckill/e2e/proxy"
	"github.com/seckill-edge/seckill/e2e/stack"
	"github.com/seckill-edge/seckill/internal/servicetest"
)

// The limit that two edges share, in calls a second and at once; how many more they
// may let in in a moment, two portions of 16 each; and how many while they notice
// that their connections are broken: one portion each, and what comes in 250 ms.
const (
	sharedRate   = 100
	sharedBurst  = 100
	sharedAhead  = 2 * 2 * 16
	sharedBroken = 2 * (16 + sharedRate/4)
)

// Whatever becomes of Redis, two edges that share a limit let in no more than both
// say that they do, never nothing for long, and answer every call.
func TestSharedLimitWhateverBecomesOfRedis(t *testing.T) {
	config := bytes.Replace(seckill.Caddyfile, []byte("limit total {$SECKILL_LIMIT_TOTAL:off}"),
		fmt.Appendf(nil, "limit shared total %d/1s burst %d", sharedRate, sharedBurst), 1)
	config = bytes.Replace(config, []byte("\thandle /seckill/* {"), []byte("\thandle /metrics {\n\t\tmetrics\n\t}\n\thandle /seckill/* {"), 1)
	s := startWith(t, 2, stack.Options{Caddyfile: config, Proxied: true})
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
	other := servicetest.RedisForTest(t)
	client := redis.NewClient(&redis.Options{Addr: s.Redis.Addr()})
	defer client.Close()
	alone := func() bool {
		for _, e := range s.Edges {
			if metric(t, e, "caddy_seckill_limit_alone") == "1" {
				return true
			}
		}
		return false
	}
	each := func(f func(*proxy.Proxy)) {
		for _, e := range s.Edges {
			f(e.Redis)
		}
	}
	set := func(m proxy.Mode) { each(func(p *proxy.Proxy) { require.NoError(t, p.Set(m)) }) }
	slow := func(d time.Duration) func() { return func() { set(proxy.Mode{Down: proxy.Way{Delay: d}}) } }
	well := func() { set(proxy.Mode{}) }

	crowd := newPressure(t, s.Edges)
	defer crowd.end()
	crowd.phase(t, "well", alone)
	for _, fault := range []struct {
		name         string
		break_, heal func()
		// alone says that the edges cannot count together.
		alone bool
	}{
		{"killed", func() { require.NoError(t, s.Redis.Kill()) }, func() { require.NoError(t, s.Redis.Restart(t.Context())) }, true},
		{"frozen", func() { require.NoError(t, s.Redis.Pause()) }, func() { require.NoError(t, s.Redis.Resume()) }, true},
		{"deaf", func() { set(proxy.Mode{Up: proxy.Way{Deaf: true}}) }, well, true},
		{"a little slow", slow(100 * time.Millisecond), well, false},
		{"too slow", slow(600 * time.Millisecond), well, true},
		{"emptied", func() { require.NoError(t, client.FlushAll(t.Context()).Err()) }, func() {}, false},
		{"failed over", func() { each(func(p *proxy.Proxy) { p.Retarget(other.Addr()) }) }, func() {}, false},
		{"failed back", func() { each(func(p *proxy.Proxy) { p.Retarget(s.Redis.Addr()) }) }, func() {}, false},
	} {
		fault.break_()
		if fault.alone {
			for _, e := range s.Edges {
				servicetest.Eventually(t, func() bool { return metric(t, e, "caddy_seckill_limit_alone") == "1" }, fault.name)
			}
		}
		crowd.phase(t, fault.name, alone)
		fault.heal()
		for _, e := range s.Edges {
			servicetest.Eventually(t, func() bool { return metric(t, e, "caddy_seckill_limit_alone") == "0" }, fault.name)
		}
		crowd.phase(t, "after "+fault.name, alone)
	}
}

// metric reads one figure of an edge.
func metric(t *testing.T, e *stack.Edge, name string) string {
	t.Helper()
	resp, err := http.Get(e.URL + "/metrics")
	require.NoError(t, err)
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	for line := range strings.Lines(string(text)) {
		if value, ok := strings.CutPrefix(line, name+" "); ok {
			return strings.TrimSpace(value)
		}
	}
	require.Fail(t, "no such metric", name)
	return ""
}

// pressure calls each edge more often than both together let in.
type pressure struct {
	stop context.CancelFunc
	work sync.WaitGroup

	mu    sync.Mutex
	calls []pressed
}

// pressed is what became of one call.
type pressed struct {
	edge int
	in   bool
	err  error
}

func newPressure(t *testing.T, edges []*stack.Edge) *pressure {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	p := &pressure{stop: stop}
	for i, e := range edges {
		for range 4 {
			p.work.Go(func() { p.press(ctx, i, e.URL+"/seckill/1001") })
		}
	}
	return p
}

func (p *pressure) press(ctx context.Context, edge int, url string) {
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
		status := 0
		resp, err := http.Get(url)
		if err == nil {
			status = resp.StatusCode
			_, err = io.Copy(io.Discard, resp.Body)
			resp.Body.Close()
		}
		p.mu.Lock()
		p.calls = append(p.calls, pressed{edge, status != http.StatusTooManyRequests, err})
		p.mu.Unlock()
	}
}

func (p *pressure) end() {
	p.stop()
	p.work.Wait()
}

// inVain bounds the refusals in a row: what all who press can call in one and a half
// seconds. Those of a slow machine take longer over them.
const inVain = 8 * 150

// phase presses for a while and judges what was let in. A slow machine may find Redis
// too slow where a quick one does not; what alone says is what the edges then say.
func (p *pressure) phase(t *testing.T, name string, alone func() bool) {
	t.Helper()
	const lasts = 2 * time.Second
	p.mu.Lock()
	p.calls = nil
	p.mu.Unlock()
	begin := time.Now()
	var calls []pressed
	apart := alone()
	look := time.NewTicker(50 * time.Millisecond)
	defer look.Stop()
	for time.Since(begin) < lasts {
		<-look.C
		apart = alone() || apart
	}
	p.mu.Lock()
	calls, p.calls = p.calls, nil
	p.mu.Unlock()
	took := time.Since(begin)

	in, row, longestRow := [2]int{}, 0, 0
	for _, c := range calls { // in the order of their ends
		require.NoError(t, c.err, name)
		row++
		if c.in {
			in[c.edge]++
			row = 0
		}
		longestRow = max(longestRow, row)
	}
	says := int(took.Seconds() * sharedRate)
	t.Logf("%-20s %5d calls, let in %v in %.1f s; at most %d refusals in a row", name, len(calls), in, took.Seconds(), longestRow)
	const flying = 8 // calls that had begun before
	for _, n := range in {
		require.LessOrEqual(t, n, says+sharedBurst+flying, "%s: one edge", name)
	}
	both := in[0] + in[1]
	if !apart {
		require.LessOrEqual(t, both, says+sharedBurst+sharedAhead+sharedBroken+2*flying, "%s: both edges", name)
	}
	require.GreaterOrEqual(t, both, min(says, len(calls))/2, name)
	require.Less(t, longestRow, inVain, name)
}
