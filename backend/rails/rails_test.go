package rails

import (
	"strings"
	"testing"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/seckill-edge/seckill/internal/servicetest"
	"github.com/seckill-edge/seckill/lua"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(servicetest.Main(m)) }

func client(t *testing.T, url string) redis.UniversalClient {
	c, err := lua.NewClient(url, "test")
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, c.Close()) })
	return c
}

// server is one Redis and what is wrong with it.
type server struct {
	name string
	args []string
	// forbid takes the right to call these away, as managed servers do.
	forbid string
	units  int64
	kinds  []Kind
	says   []string
}

var servers = []server{
	{name: "fit", units: 1000},
	{name: "snapshots only", args: []string{"--appendonly", "no", "--save", "3600 1"}},
	{
		name: "evicts", args: []string{"--maxmemory-policy", "allkeys-lru"}, kinds: []Kind{Eviction},
		says: []string{"maxmemory-policy is allkeys-lru", "CONFIG SET maxmemory-policy noeviction"},
	},
	{name: "evicts what expires", args: []string{"--maxmemory-policy", "volatile-ttl"}, kinds: []Kind{Eviction}, says: []string{"volatile-ttl"}},
	{
		name: "forgets", args: []string{"--appendonly", "no"}, kinds: []Kind{Persistence},
		says: []string{"appendonly is no", `save is ""`, "CONFIG SET appendonly yes"},
	},
	{name: "room enough", args: []string{"--maxmemory", "64mb"}, units: 100_000},
	{
		name: "too small", args: []string{"--maxmemory", "64mb"}, units: 1_000_000, kinds: []Kind{Memory},
		says: []string{"maxmemory is 64mb", "need up to 235mb", "CONFIG SET maxmemory 29"},
	},
	{
		name: "all at once", args: []string{"--maxmemory-policy", "allkeys-random", "--appendonly", "no", "--maxmemory", "8mb"},
		kinds: []Kind{Eviction, Persistence, Memory},
	},
	{name: "CONFIG forbidden, fit", forbid: "-config", units: 1000},
	{name: "CONFIG forbidden, evicts", forbid: "-config", args: []string{"--maxmemory-policy", "allkeys-lfu"}, kinds: []Kind{Eviction}, says: []string{"allkeys-lfu"}},
	{name: "CONFIG forbidden, too small", forbid: "-config", args: []string{"--maxmemory", "8mb"}, kinds: []Kind{Memory}},
	{name: "CONFIG forbidden, no AOF", forbid: "-config", args: []string{"--appendonly", "no"}, kinds: []Kind{Unknown}, says: []string{"does not tell whether it saves"}},
	{name: "INFO forbidden", forbid: "-info", kinds: []Kind{Unknown}, says: []string{"does not tell its memory"}},
	{name: "both forbidden", forbid: "-info -config", kinds: []Kind{Unknown, Unknown, Unknown}},
}

func TestInspect(t *testing.T) {
	if testing.Short() {
		servers = nil // they need redis-server; the embedded one is below
	}
	for _, s := range servers {
		t.Run(s.name, func(t *testing.T) {
			url := servicetest.RedisForTest(t, s.args...).URL()
			if s.forbid != "" {
				admin := client(t, url)
				args := []any{"ACL", "SETUSER", "managed", "on", ">secret", "allkeys", "+@all"}
				for right := range strings.FieldsSeq(s.forbid) {
					args = append(args, right)
				}
				require.NoError(t, admin.Do(t.Context(), args...).Err())
				url = strings.Replace(url, "redis://", "redis://managed:secret@", 1)
			}
			problems, err := Inspect(t.Context(), client(t, url), map[string]int64{"1001": s.units})
			require.NoError(t, err)
			var kinds []Kind
			for _, p := range problems {
				kinds = append(kinds, p.Kind)
			}
			require.Equal(t, s.kinds, kinds, Join(problems))
			for _, words := range s.says {
				require.Contains(t, Join(problems), words)
			}
			require.NotContains(t, Join(problems), "secret")
		})
	}
}

// What the words advise works: after CONFIG SET the server is fit.
func TestTheWayOut(t *testing.T) {
	if testing.Short() {
		servers = nil
	}
	for _, s := range servers {
		if s.forbid != "" {
			continue
		}
		t.Run(s.name, func(t *testing.T) {
			c := client(t, servicetest.RedisForTest(t, s.args...).URL())
			units := map[string]int64{"1001": s.units}
			problems, err := Inspect(t.Context(), c, units)
			require.NoError(t, err)
			for _, p := range problems {
				line, _, _ := strings.Cut(p.Way, ",")
				f := strings.Fields(line)
				require.NoError(t, c.ConfigSet(t.Context(), f[2], f[3]).Err(), line)
			}
			problems, err = Inspect(t.Context(), c, units)
			require.NoError(t, err)
			require.Empty(t, problems)
		})
	}
}

// An embedded Redis tells nothing, which is no reason to refuse it.
func TestEmbedded(t *testing.T) {
	problems, err := Inspect(t.Context(), client(t, "redis://"+miniredis.RunT(t).Addr()+"/0"), map[string]int64{"1001": 5})
	require.NoError(t, err)
	require.Len(t, problems, 3)
	require.Empty(t, Refusable(problems))
}

func TestAway(t *testing.T) {
	_, err := Inspect(t.Context(), client(t, "redis://127.0.0.1:1/0"), nil)
	require.ErrorContains(t, err, "asking Redis 127.0.0.1:1 about itself")
	locked := miniredis.RunT(t)
	locked.RequireAuth("hush")
	_, err = Inspect(t.Context(), client(t, "redis://"+locked.Addr()+"/0"), nil)
	require.ErrorContains(t, err, "NOAUTH", "a server that wants a password is not one that does not tell")
}

func TestNeed(t *testing.T) {
	require.Equal(t, int64(margin), Need(0))
	require.Equal(t, int64(margin), Need(-1))
	require.Equal(t, int64(margin+1000*orderBytes), Need(1000))
	require.Equal(t, Need(mostOrders), Need(1_000_000_000))
}
