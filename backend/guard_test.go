package backend_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"log/slog"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/seckill-edge/seckill/backend"
	"github.com/seckill-edge/seckill/backend/store"
	"github.com/seckill-edge/seckill/internal/queue"
	"github.com/seckill-edge/seckill/internal/servicetest"
	"github.com/seckill-edge/seckill/lua"
)

// lines is a log that can be read while it is written.
type lines struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *lines) count(words string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Count(l.text.String(), words)
}

// A running backend says on /readyz, in a metric and once in the log that Redis
// is not fit, and that it is again, and stores orders all the same.
func TestGuardWarnsAndStoresOn(t *testing.T) {
	t.Parallel()
	bad := map[string]string{"persistence": "--appendonly no", "eviction": "--maxmemory-policy allkeys-lru", "memory": "--maxmemory 8mb"}
	mend := map[string][2]string{"persistence": {"appendonly", "yes"}, "eviction": {"maxmemory-policy", "noeviction"}, "memory": {"maxmemory", "0"}}
	if testing.Short() {
		bad = nil // they need redis-server
	}
	for problem, args := range bad {
		t.Run(problem, func(t *testing.T) {
			t.Parallel()
			client, err := lua.NewClient(servicetest.RedisForTest(t, strings.Fields(args)...).URL(), "test")
			require.NoError(t, err)
			broker, err := queue.Open("memory:" + t.Name())
			require.NoError(t, err)
			orders, err := store.New(t.Context(), "sqlite:"+filepath.Join(t.TempDir(), "x.db"), nil)
			require.NoError(t, err)
			log := &lines{}
			b, err := backend.New(backend.Config{Migrate: true}, backend.Deps{
				Redis: client, Broker: broker, Store: orders, Now: time.Now, Random: rand.Reader, Log: slog.New(slog.NewTextHandler(log, nil)),
			})
			require.NoError(t, err)
			require.NoError(t, b.Start(t.Context()))
			t.Cleanup(func() {
				b.Stop(context.Background())
				require.NoError(t, orders.Close())
				require.NoError(t, client.Close())
			})
			gauge := `seckill_redis_guard{problem="` + problem + `"}`
			servicetest.Eventually(t, func() bool { return metric(t, b, gauge) == "1" })
			servicetest.Eventually(t, func() bool { return get(t, b, "/readyz").Code == http.StatusOK })
			var body struct {
				Ready    bool
				Warnings []string
				Why      map[string]string
			}
			require.NoError(t, json.Unmarshal(get(t, b, "/readyz").Body.Bytes(), &body))
			require.True(t, body.Ready)
			require.Equal(t, []string{"redis_" + problem}, body.Warnings)
			require.Contains(t, body.Why["redis_"+problem], "CONFIG SET")
			require.NoError(t, client.ConfigSet(t.Context(), mend[problem][0], mend[problem][1]).Err())
			servicetest.Eventually(t, func() bool { return metric(t, b, gauge) == "0" })
			require.Equal(t, 1, log.count("not fit to hold a stock"))
			require.Equal(t, 1, log.count("a problem is over"))
		})
	}
}
