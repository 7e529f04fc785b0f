package caddyplugin

import (
	"net/http"
	"testing"

	"github.com/alicebob/miniredis/v2"
	"github.com/caddyserver/caddy/v2"
	"github.com/stretchr/testify/require"

	"github.com/seckill-edge/seckill/internal/servicetest"
)

func TestAdminStatus(t *testing.T) {
	onEach(t, func(t *testing.T, e *edge) {
		e.sell(10, 1)
		e.load(e.config("", byHeader))
		e.waitOpen()
		require.Equal(t, 202, e.must("POST", "/seckill/1001", "alice", "").status)
		servicetest.Eventually(t, func() bool {
			stats := e.adminGet("/seckill/status").document(t)["stats"].(map[string]any)
			return stats["forwarded"] == 1.0 && stats["carried"] == 0.0
		})
		d := e.adminGet("/seckill/status").document(t)
		require.Equal(t, true, d["ready"])
		require.NotContains(t, d, "reason")
		require.Contains(t, d["version"], " go1.")
		products := d["products"].([]any)
		require.Len(t, products, 1)
		require.Equal(t, "1001", products[0].(map[string]any)["product_id"])
		require.Equal(t, "open", products[0].(map[string]any)["state"])
		outcomes := d["stats"].(map[string]any)["outcomes"].(map[string]any)
		require.EqualValues(t, 1, outcomes["reserved"])

		r, err := http.NewRequest(http.MethodPost, "http://"+e.admin+"/seckill/status", nil)
		require.NoError(t, err)
		refused, err := e.do(r)
		require.NoError(t, err)
		require.Equal(t, 405, refused.status)
	})
}

func TestAdminStatusTellsNoSecrets(t *testing.T) {
	e := newEdge(t, nowhereRedis, nowhereRabbitMQ)
	e.load(e.config("", byHeader))
	r := e.adminGet("/seckill/status")
	require.Equal(t, 200, r.status)
	d := r.document(t)
	require.Equal(t, false, d["ready"])
	require.NotEmpty(t, d["reason"])
	require.NotContains(t, string(r.body), "s3cret")

	held := e.must("POST", "/seckill/1001", "alice", "")
	require.Equal(t, 503, held.status)
	require.NotEmpty(t, held.header.Get("Retry-After"))
	require.NotContains(t, string(held.body), "127.0.0.1")
}

func TestAdminStatusWithoutApp(t *testing.T) {
	e := newEdge(t, nowhereRedis, nowhereRabbitMQ)
	require.NoError(t, caddy.Load([]byte(`{"admin":{"listen":"`+e.admin+`","config":{"persist":false}}}`), true))
	e.loaded = true
	require.Equal(t, 404, e.adminGet("/seckill/status").status)
}

// An edge that starts before its Redis sells as soon as there is one.
func TestRedisComesLater(t *testing.T) {
	type later struct {
		name  string
		start func(*testing.T) (redisURL, rabbitmqURL string, appear func())
	}
	all := []later{{"embedded", func(t *testing.T) (string, string, func()) {
		server := miniredis.RunT(t)
		address := server.Addr()
		server.Close()
		return "redis://" + address + "/0", "memory:" + t.Name(), func() { require.NoError(t, server.Restart()) }
	}}}
	if !testing.Short() {
		all = append(all, later{"real", func(t *testing.T) (string, string, func()) {
			server := servicetest.RedisForTest(t)
			require.NoError(t, server.Stop())
			return server.URL(), servicetest.SharedRabbitMQ(t).VHost(t), func() { require.NoError(t, server.Restart(t.Context())) }
		}})
	}
	for _, l := range all {
		t.Run(l.name, func(t *testing.T) {
			redisURL, rabbitmqURL, appear := l.start(t)
			e := newEdge(t, redisURL, rabbitmqURL)
			e.load(e.config("", byHeader))
			require.Equal(t, 503, e.must("POST", "/seckill/1001", "alice", "").status)
			require.Contains(t, e.adminGet("/seckill/status").document(t)["reason"], "redis")
			appear()
			e.sell(10, 1)
			e.waitOpen()
			var bought reply
			servicetest.Eventually(t, func() bool {
				bought = e.must("POST", "/seckill/1001", "alice", "")
				return bought.status == 202
			})
			e.queued(map[string]string{"alice": bought.document(t)["order_id"].(string)})
		})
	}
}

// Secrets named by a placeholder are in no config that the admin endpoint shows.
func TestAdminConfigTellsNoSecrets(t *testing.T) {
	e := newEdge(t, nowhereRedis, nowhereRabbitMQ)
	t.Setenv("SECKILL_REDIS_URL", e.redis)
	t.Setenv("SECKILL_RABBITMQ_URL", e.rabbitmq)
	e.redis, e.rabbitmq = "{env.SECKILL_REDIS_URL}", "{env.SECKILL_RABBITMQ_URL}"
	e.load(e.config("", byHeader))
	config := string(e.adminGet("/config/").body)
	require.Contains(t, config, "{env.SECKILL_REDIS_URL}")
	require.NotContains(t, config, "s3cret")
}
