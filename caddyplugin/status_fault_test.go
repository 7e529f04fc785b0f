package caddyplugin

import (
	"context"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/seckill-edge/seckill/internal/servicetest"
	"github.com/seckill-edge/seckill/lua"
)

// A Redis that reads and takes no writes is named by its cause, in the status and in
// the metric, until it is mended.
func TestStatusNamesWhatIsWrongWithRedis(t *testing.T) {
	if testing.Short() {
		return // it needs redis-server
	}
	server := servicetest.RedisForTest(t)
	redis, err := lua.NewClient(server.URL(), "test")
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, redis.Close()) })
	ctx := t.Context()
	require.NoError(t, redis.Do(ctx, "ACL", "SETUSER", "edge", "on", ">pw", "~*", "&*", "+@all").Err())
	e := newEdge(t, "redis://edge:pw@"+server.Addr()+"/0", "memory:"+t.Name())
	e.load(e.config("", byHeader))
	do := func(args ...any) func(context.Context) {
		return func(ctx context.Context) { require.NoError(t, redis.Do(ctx, args...).Err()) }
	}
	for _, fault := range []struct {
		name       string
		make, mend func(context.Context)
		cause      string
		says       string
	}{
		{"full", do("CONFIG", "SET", "maxmemory", "1"), do("CONFIG", "SET", "maxmemory", "0"), "refused", "OOM"},
		{"without replicas", do("CONFIG", "SET", "min-replicas-to-write", "1"), do("CONFIG", "SET", "min-replicas-to-write", "0"), "refused", "NOREPLICAS"},
		{"without a right", do("ACL", "SETUSER", "edge", "-@write"), do("ACL", "SETUSER", "edge", "+@all"), "forbidden", "ACL SETUSER must give this user +"},
		{"silent", do("CLIENT", "PAUSE", "600000", "WRITE"), do("CLIENT", "UNPAUSE"), "unanswered", "redis: "},
	} {
		t.Run(fault.name, func(t *testing.T) {
			fault.make(ctx)
			mend := sync.OnceFunc(func() { fault.mend(context.Background()) })
			t.Cleanup(mend) // a fault that stays would fail the next one, too
			var d map[string]any
			servicetest.Eventually(t, func() bool { d = e.adminGet("/seckill/status").document(t); return d["ready"] == false })
			require.Equal(t, map[string]any{"redis": fault.cause}, d["causes"])
			require.Contains(t, d["reason"], fault.says)
			metrics := string(e.adminGet("/metrics").body)
			require.Contains(t, metrics, `caddy_seckill_not_ready{cause="`+fault.cause+`",part="redis"} 1`)
			require.Contains(t, metrics, "caddy_seckill_ready 0")
			mend()
			servicetest.Eventually(t, func() bool { d = e.adminGet("/seckill/status").document(t); return d["ready"] == true })
			require.NotContains(t, d, "causes")
		})
	}
}
