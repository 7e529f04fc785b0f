package backend_test

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/seckill-edge/seckill/backend"
	"github.com/seckill-edge/seckill/backend/activities"
	"github.com/seckill-edge/seckill/backend/store"
	"github.com/seckill-edge/seckill/internal/queue"
	"github.com/seckill-edge/seckill/internal/servicetest"
	"github.com/seckill-edge/seckill/lua"
)

// ill are real servers that can be given a fault, one backend, and an operator in
// another process.
type ill struct {
	testing.TB
	redis    redis.UniversalClient // with all rights
	mariadb  *servicetest.MariaDB
	rabbitmq *servicetest.RabbitMQ
	database string
	backend  *backend.Backend
	operator *activities.Service
	log      *lines
}

// causes are part → cause.
type causes map[string]string

const illProduct = "1001"

func newIll(t *testing.T) *ill {
	t.Helper()
	w := &ill{TB: t, mariadb: servicetest.MariaDBForTest(t), rabbitmq: servicetest.RabbitMQForTest(t), database: "shop", log: &lines{}}
	server := servicetest.RedisForTest(t)
	var err error
	w.redis, err = lua.NewClient(server.URL(), "test")
	require.NoError(t, err)
	ctx := t.Context()
	require.NoError(t, w.redis.Do(ctx, "ACL", "SETUSER", "shop", "on", ">pw", "~*", "&*", "+@all").Err())
	require.NoError(t, w.mariadb.CreateDatabase(ctx, w.database))
	w.sql("CREATE USER shop@'%' IDENTIFIED BY 'pw'", "GRANT ALL ON shop.* TO shop@'%'") // root may write to what is read-only
	redisURL := "redis://shop:pw@" + server.Addr() + "/0"
	databaseURL := "mysql://shop:pw@" + w.mariadb.Addr() + "/" + w.database

	deps := func(name string, log *slog.Logger) backend.Deps {
		client, err := lua.NewClient(redisURL, name)
		require.NoError(t, err)
		broker, err := queue.Open(w.rabbitmq.URL())
		require.NoError(t, err)
		orders, err := store.New(ctx, databaseURL, nil)
		require.NoError(t, err)
		t.Cleanup(func() {
			_ = broker.Close()
			_ = orders.Close()
			_ = client.Close()
		})
		return backend.Deps{Redis: client, Broker: broker, Store: orders, Now: time.Now, Random: rand.Reader, Log: log}
	}
	quiet := slog.New(slog.DiscardHandler)
	d := deps("backend", slog.New(slog.NewTextHandler(w.log, nil)))
	w.backend, err = backend.New(backend.Config{Migrate: true, AcceptRedisRisk: true, HealthWithin: servicetest.Scaled(2 * time.Second)}, d)
	require.NoError(t, err)
	require.NoError(t, w.backend.Start(ctx))
	t.Cleanup(func() { w.backend.Stop(context.Background()) })
	o := deps("operator", quiet)
	w.operator = activities.New(activities.Deps{Store: o.Store, Redis: o.Redis, Queue: o.Broker, Now: time.Now, Random: rand.Reader, Log: quiet})
	w.eventually("ready", func() bool { return len(w.readyz()) == 0 })
	_, err = w.operator.Create(ctx, activities.Draft{
		ProductID: illProduct, Total: 10, Limit: 1,
		Start: time.Now().Add(-time.Hour).Format(time.RFC3339), End: time.Now().Add(time.Hour).Format(time.RFC3339),
	})
	require.NoError(t, err)
	return w
}

func (w *ill) sql(statements ...string) {
	w.Helper()
	for _, s := range statements {
		require.NoError(w, w.mariadb.Exec(w.Context(), s), s)
	}
}

func (w *ill) ctl(args ...string) {
	w.Helper()
	_, err := w.rabbitmq.Ctl(w.Context(), args...)
	require.NoError(w, err)
}

func (w *ill) do(args ...any) {
	w.Helper()
	require.NoError(w, w.redis.Do(w.Context(), args...).Err())
}

// readyz are the causes on /readyz.
func (w *ill) readyz() causes {
	var body struct {
		Ready    bool
		NotReady []string `json:"not_ready"`
		Causes   causes
	}
	require.NoError(w, json.Unmarshal(get(w, w.backend, "/readyz").Body.Bytes(), &body))
	require.Equal(w, body.Ready, len(body.Causes) == 0)
	require.Len(w, body.NotReady, len(body.Causes))
	return body.Causes
}

// metrics are the causes on /metrics.
func (w *ill) metrics() causes {
	out := causes{}
	for line := range strings.Lines(get(w, w.backend, "/metrics").Body.String()) {
		var part, cause string
		labels, one := strings.CutSuffix(strings.TrimSpace(line), "} 1")
		if labels, ours := strings.CutPrefix(labels, "seckill_backend_not_ready{"); ours && one {
			_, err := fmt.Sscanf(strings.ReplaceAll(labels, ",", " "), "cause=%q part=%q", &cause, &part)
			require.NoError(w, err, line)
			out[part] = cause
		}
	}
	return out
}

// show are the causes of the activity as the other process shows it, and the words.
func (w *ill) show() (causes, string) {
	view, err := w.operator.Show(w.Context(), illProduct)
	if err != nil {
		return nil, err.Error()
	}
	return view.Causes, view.Why
}

func (w *ill) eventually(what string, is func() bool) {
	w.Helper()
	servicetest.Eventually(w, is, what)
}

// Whatever is wrong with a server, /readyz, the metrics, the log and `activity show` name
// the same cause, and all is well for all of them once it is mended.
func TestEachFaultIsNamedTheSameEverywhere(t *testing.T) {
	if testing.Short() {
		return // it needs the real servers
	}
	t.Parallel()
	w := newIll(t)
	w.eventually("selling", func() bool {
		shown, why := w.show()
		return why == "selling" && len(shown) == 0
	})
	for _, fault := range []struct {
		name        string
		make, mend  func()
		causes      causes
		show        causes // nil: the same
		words, says string // in the log; in `activity show`
	}{
		{
			name: "Redis is full",
			make: func() { w.do("CONFIG", "SET", "maxmemory", "1") }, mend: func() { w.do("CONFIG", "SET", "maxmemory", "0") },
			causes: causes{"redis": "refused"}, words: "OOM", says: "Redis refuses writes: OOM",
		},
		{
			name: "Redis lacks its replicas",
			make: func() { w.do("CONFIG", "SET", "min-replicas-to-write", "1") }, mend: func() { w.do("CONFIG", "SET", "min-replicas-to-write", "0") },
			causes: causes{"redis": "refused"}, words: "NOREPLICAS", says: "Redis refuses writes: NOREPLICAS",
		},
		{
			name: "Redis forbids writes",
			make: func() { w.do("ACL", "SETUSER", "shop", "-@write") }, mend: func() { w.do("ACL", "SETUSER", "shop", "+@all") },
			causes: causes{"redis": "forbidden"}, words: "ACL SETUSER must give this user +", says: "ACL SETUSER must give this user +",
		},
		{
			name: "Redis answers no write",
			make: func() { w.do("CLIENT", "PAUSE", "600000", "WRITE") }, mend: func() { w.do("CLIENT", "UNPAUSE") },
			causes: causes{"redis": "unanswered"},
		},
		{
			name: "the database is read-only",
			make: func() { w.sql("SET GLOBAL read_only = 1") }, mend: func() { w.sql("SET GLOBAL read_only = 0") },
			causes: causes{"database": "read_only"}, words: "Error 1290", says: "database read_only",
		},
		{
			name:   "the database refuses the user",
			make:   func() { w.sql("REVOKE ALL ON shop.* FROM shop@'%'", "KILL USER shop") },
			mend:   func() { w.sql("GRANT ALL ON shop.* TO shop@'%'") },
			causes: causes{"database": "forbidden"}, show: causes{}, words: "Error 1044",
		},
		{
			name:   "the database has an older schema",
			make:   func() { w.sql("RENAME TABLE shop.goose_db_version TO shop.hidden") },
			mend:   func() { w.sql("RENAME TABLE shop.hidden TO shop.goose_db_version") },
			causes: causes{"schema": "outdated"}, words: "run `seckilld migrate`", says: "schema outdated",
		},
		{
			name:   "the broker is short of memory",
			make:   func() { w.ctl("set_vm_memory_high_watermark", "0.0001") },
			mend:   func() { w.ctl("set_vm_memory_high_watermark", "0.4") },
			causes: causes{"queue": "blocked"}, words: "takes no messages", says: "queue blocked",
		},
		{
			name: "the broker refuses the user",
			make: func() {
				w.ctl("clear_permissions", "guest")
				w.ctl("close_all_connections", "test")
			},
			mend:   func() { w.ctl("set_permissions", "guest", ".*", ".*", ".*") },
			causes: causes{"queue": "forbidden", "consumer": "forbidden"}, show: causes{"queue": "forbidden"},
		},
		{
			name: "the broker is away",
			make: func() { require.NoError(t, w.rabbitmq.Stop()) }, mend: func() { require.NoError(t, w.rabbitmq.Restart(t.Context())) },
			causes: causes{"queue": "away", "consumer": "away"}, show: causes{"queue": "away"},
		},
	} {
		t.Run(fault.name, func(t *testing.T) {
			want := fault.show
			if want == nil {
				want = fault.causes
			}
			was := w.TB
			w.TB = t
			defer func() { w.TB = was }()
			begins := func(part string) int { return w.log.count("not ready: " + part + ": failed") }
			began := map[string]int{}
			for part := range fault.causes {
				began[part] = begins(part)
			}
			fault.make()
			mend := sync.OnceFunc(fault.mend)
			defer mend() // a fault that stays would fail the next one, too
			var seen, metrics, shown causes
			var why string
			defer func() {
				if t.Failed() {
					t.Logf("readyz %v, metrics %v, show %v %q", seen, metrics, shown, why)
				}
			}()
			w.eventually("readyz", func() bool { seen = w.readyz(); return fmt.Sprint(seen) == fmt.Sprint(fault.causes) })
			w.eventually("metrics", func() bool { metrics = w.metrics(); return fmt.Sprint(metrics) == fmt.Sprint(fault.causes) })
			require.Equal(t, "0", metric(t, w.backend, "seckill_backend_ready"))
			if len(want) > 0 { // else SQL cannot be asked for the activity
				w.eventually("show", func() bool {
					shown, why = w.show()
					return fmt.Sprint(shown) == fmt.Sprint(want) && strings.Contains(why, fault.says)
				})
			}
			for part, cause := range fault.causes {
				w.eventually("log", func() bool {
					return begins(part) > began[part] && w.log.count("cause="+cause) > 0
				})
			}
			w.eventually("log", func() bool { return w.log.count(fault.words) > 0 })
			over := map[string]int{}
			for part := range fault.causes {
				over[part] = w.log.count("not ready: " + part + ": works again")
			}
			mend()
			w.eventually("ready again", func() bool { seen = w.readyz(); return len(seen) == 0 })
			w.eventually("shown as well", func() bool { shown, why = w.show(); return len(shown) == 0 && why == "selling" })
			require.Equal(t, "1", metric(t, w.backend, "seckill_backend_ready"))
			require.Empty(t, w.metrics())
			for part, before := range over { // or the next fault is the same outage
				w.eventually("log", func() bool { return w.log.count("not ready: "+part+": works again") > before })
			}
		})
	}
}
