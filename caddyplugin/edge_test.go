package caddyplugin

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig"
	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/seckill-edge/seckill"
	"github.com/seckill-edge/seckill/caddyplugin/gate"
	"github.com/seckill-edge/seckill/internal/order"
	"github.com/seckill-edge/seckill/internal/queue"
	"github.com/seckill-edge/seckill/internal/servicetest"
	"github.com/seckill-edge/seckill/lua"
)

// soon bounds every wait of these tests.
var soon = servicetest.Patience()

// backing starts what an edge stands on and returns the two addresses.
type backing struct {
	name  string
	start func(testing.TB) (redisURL, rabbitmqURL string)
}

// backings are the servers that the whole edge is tested on.
func backings() []backing {
	all := []backing{{"embedded", func(t testing.TB) (string, string) {
		return "redis://" + miniredis.RunT(t).Addr() + "/0", "memory:" + t.Name()
	}}}
	if !testing.Short() {
		all = append(all, backing{"real", func(t testing.TB) (string, string) {
			return servicetest.RedisForTest(t).URL(), servicetest.SharedRabbitMQ(t).VHost(t)
		}})
	}
	return all
}

// onEach runs a test on every backing.
func onEach(t *testing.T, test func(t *testing.T, e *edge)) {
	for _, b := range backings() {
		t.Run(b.name, func(t *testing.T) {
			redisURL, rabbitmqURL := b.start(t)
			test(t, newEdge(t, redisURL, rabbitmqURL))
		})
	}
}

// edge is a Caddy inside this process, and the servers it stands on. There is
// one at a time: Caddy is global.
type edge struct {
	t               testing.TB
	redis, rabbitmq string
	site, admin     string // host:port
	store           redis.UniversalClient
	http            *http.Client
	loaded          bool
}

func newEdge(t testing.TB, redisURL, rabbitmqURL string) *edge {
	store, err := lua.NewClient(redisURL, "test")
	require.NoError(t, err)
	transport := &http.Transport{MaxIdleConnsPerHost: 64}
	e := &edge{
		t: t, redis: redisURL, rabbitmq: rabbitmqURL, store: store,
		site: freeAddress(t), admin: freeAddress(t),
		http: &http.Client{Transport: transport, Timeout: soon},
	}
	t.Cleanup(func() {
		transport.CloseIdleConnections()
		e.stop()
		require.NoError(t, store.Close())
	})
	return e
}

// stop ends Caddy, which drains and lets go of everything.
func (e *edge) stop() {
	if e.loaded {
		require.NoError(e.t, caddy.Stop())
		e.loaded = false
	}
}

func freeAddress(t testing.TB) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	return l.Addr().String()
}

// config is a Caddyfile: options go into the global seckill block, site into
// the site's.
func (e *edge) config(options, site string) string {
	return fmt.Sprintf(`{
	admin %s
	persist_config off
	auto_https off
	metrics
	grace_period 5s
	seckill {
		redis %s
		rabbitmq %s
		%s
	}
}
http://%s {
	bind 127.0.0.1
	%s
}
`, e.admin, e.redis, e.rabbitmq, options, e.site, site)
}

// byHeader lets the header X-User-Id say who buys.
const byHeader = `seckill {
		identity http.request.header.X-User-Id
		insecure_client_identity on
	}`

// load runs a Caddyfile, in place of the one that runs.
func (e *edge) load(caddyfile string) {
	e.t.Helper()
	config, _, err := caddyconfig.GetAdapter("caddyfile").Adapt([]byte(caddyfile), map[string]any{"filename": "Caddyfile"})
	require.NoError(e.t, err)
	require.NoError(e.t, caddy.Load(config, true))
	e.loaded = true
	// The old server closes its idle connections; a test that asks once must not
	// meet one of them.
	e.http.CloseIdleConnections()
}

// sell puts an open activity of product 1001 into Redis.
func (e *edge) sell(units int64, limit int) {
	e.t.Helper()
	now := time.Now().Truncate(time.Millisecond)
	done, err := lua.Preheat(e.t.Context(), e.store, lua.Activity{
		ID: "a1", ProductID: "1001", Title: "Phone", Start: now.Add(-time.Minute), End: now.Add(time.Hour),
		Total: units, Limit: limit, State: lua.Open,
	})
	require.NoError(e.t, err)
	require.Equal(e.t, lua.Loaded, done)
}

// reply is an answer, read to its end.
type reply struct {
	status int
	header http.Header
	body   []byte
}

func (r reply) document(t testing.TB) map[string]any {
	t.Helper()
	var d map[string]any
	require.NoError(t, json.Unmarshal(r.body, &d), "%s", r.body)
	return d
}

func (e *edge) ask(method, path, user, body string) (reply, error) {
	r, err := http.NewRequest(method, "http://"+e.site+path, strings.NewReader(body))
	if err != nil {
		return reply{}, err
	}
	if user != "" {
		r.Header.Set("X-User-Id", user)
	}
	return e.do(r)
}

func (e *edge) do(r *http.Request) (reply, error) {
	answer, err := e.http.Do(r)
	if err != nil {
		return reply{}, err
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	return reply{answer.StatusCode, answer.Header, body}, err
}

// must asks again where a connection was closed before an answer: right after a
// reload a new connection may still reach the old listener, which Caddy is
// closing.
func (e *edge) must(method, path, user, body string) reply {
	e.t.Helper()
	return e.again(func() (reply, error) { return e.ask(method, path, user, body) })
}

// again asks until there is an answer: right after a reload Caddy may cut a fresh
// connection that has reached the old listener.
func (e *edge) again(ask func() (reply, error)) reply {
	e.t.Helper()
	r, err := ask()
	for n := 0; n < 3 && (errors.Is(err, io.EOF) || errors.Is(err, syscall.ECONNRESET)); n++ {
		r, err = ask()
	}
	require.NoError(e.t, err)
	return r
}

// adminGet asks Caddy's admin endpoint.
func (e *edge) adminGet(path string) reply {
	e.t.Helper()
	return e.again(func() (reply, error) {
		r, err := http.NewRequest(http.MethodGet, "http://"+e.admin+path, nil)
		require.NoError(e.t, err)
		return e.do(r)
	})
}

// waitOpen waits until the edge has connected to everything.
func (e *edge) waitOpen() {
	e.t.Helper()
	servicetest.Eventually(e.t, func() bool {
		return e.adminGet("/seckill/status").document(e.t)["ready"] == true
	})
}

// theGate is the only gate there is.
func (e *edge) theGate() *gate.Gate {
	e.t.Helper()
	var gates []*gate.Gate
	engines.Range(func(_, value any) bool {
		gates = append(gates, value.(*engine).gate)
		return true
	})
	require.Len(e.t, gates, 1)
	return gates[0]
}

// queued collects orders from the broker until it has all the wanted ones, and
// fails at one that nobody was granted or that came under two ids for one user.
func (e *edge) queued(want map[string]string) {
	e.t.Helper()
	broker, err := queue.Open(e.rabbitmq)
	require.NoError(e.t, err)
	ctx, cancel := context.WithCancel(context.Background())
	deliveries := make(chan queue.Delivery)
	var consuming sync.WaitGroup
	consuming.Go(func() { _ = broker.Consumer(queue.Options{Name: "test"}).Consume(ctx, deliveries) })
	defer func() {
		cancel()
		consuming.Wait()
		require.NoError(e.t, broker.Close())
	}()
	got := make(map[string]string)
	deadline := time.After(soon)
	for len(got) < len(want) {
		select {
		case d := <-deliveries:
			orders, bad, err := order.ParseMessage(d.Message().Body)
			require.NoError(e.t, err)
			require.Empty(e.t, bad)
			for _, o := range orders {
				require.Equal(e.t, want[o.UserID], o.ID, "user %s", o.UserID)
				got[o.UserID] = o.ID
			}
			require.NoError(e.t, d.Ack())
		case <-deadline:
			require.Failf(e.t, "orders are missing", "%d of %d came", len(got), len(want))
		}
	}
}

// figure reads one line of the metrics.
func (e *edge) figure(line string) string {
	e.t.Helper()
	for text := range bytes.Lines(e.adminGet("/metrics").body) {
		if value, ok := strings.CutPrefix(string(text), line+" "); ok {
			return strings.TrimSpace(value)
		}
	}
	return ""
}

// loadProduction runs the production Caddyfile in this edge's place.
func (e *edge) loadProduction(shop string) {
	e.t.Helper()
	for name, value := range map[string]string{
		"SECKILL_REDIS_URL": e.redis, "SECKILL_RABBITMQ_URL": e.rabbitmq,
		"SECKILL_SITE": "http://" + e.site, "SECKILL_BIND": "127.0.0.1", "SECKILL_SHOP_ROOT": shop, "SECKILL_ADMIN": e.admin,
	} {
		e.t.Setenv(name, value)
	}
	e.load(string(seckill.Caddyfile))
}
