package lua

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/seckill-edge/seckill/internal/servicetest"
)

// TestServer is what only a real Redis can show; it is empty with -short.
func TestServer(t *testing.T) {
	cases := map[string]func(*testing.T){
		"never oversold":        testNeverOversold,
		"only declared keys":    testOnlyDeclaredKeys,
		"cluster":               testCluster,
		"full memory":           testFullMemory,
		"run id and restart":    testRunID,
		"failed over and back":  testFailedBack,
		"one client, one batch": testBatchEqualsSingles,
	}
	if testing.Short() {
		cases = nil
	}
	for name, run := range cases {
		t.Run(name, run)
	}
}

// testNeverOversold lets many buyers want more units than there are, while
// orders are settled and given back.
func testNeverOversold(t *testing.T) {
	c := start(t, "redis")
	load(t, c, sale(500, 3))
	var wg sync.WaitGroup
	var granted, returned atomic.Int64
	for worker := range 24 {
		wg.Go(func() {
			id, random := ids(worker*1_000_000), rand.New(rand.NewPCG(1, uint64(worker)))
			for range 60 {
				reqs := make([]Request, 1+random.IntN(8))
				for i := range reqs {
					reqs[i] = Request{OrderID: id.next(), UserID: fmt.Sprintf("u%d", random.IntN(400)), Quantity: 1 + random.IntN(3)}
				}
				b, err := Reserve(context.Background(), c, product, 1, reqs)
				if err != nil {
					t.Error(err)
					return
				}
				for i, r := range b.Results {
					if r.Outcome != Reserved {
						continue
					}
					granted.Add(int64(reqs[i].Quantity))
					v := []Move{{UserID: reqs[i].UserID, OrderID: reqs[i].OrderID}}
					var moved []Moved
					if random.IntN(4) == 0 {
						moved, err = Release(context.Background(), c, product, MarkCancelled, v)
						returned.Add(int64(reqs[i].Quantity))
					} else {
						moved, err = Settle(context.Background(), c, product, MarkSettled, v)
					}
					if err != nil || moved[0] != Done {
						t.Errorf("%v %v", moved, err)
					}
				}
			}
		})
	}
	wg.Wait()
	s := audit(t, c)
	require.False(t, s.Damaged)
	require.Zero(t, s.Frozen)
	require.Zero(t, s.Outbox)
	require.Equal(t, granted.Load()-returned.Load(), s.Sold)
	require.LessOrEqual(t, s.Sold, int64(500))
	require.Greater(t, s.Sold, int64(490), "hardly anything was sold")
	sum := int64(0)
	for user := range 400 {
		entries, err := RecordOf(t.Context(), c, product, fmt.Sprintf("u%d", user))
		require.NoError(t, err)
		held := 0
		for _, e := range entries {
			if !givenBack(e.Mark) {
				held += e.Quantity
			}
		}
		require.LessOrEqual(t, held, 3)
		sum += int64(held)
	}
	require.Equal(t, s.Sold, sum)
}

// everything calls each function once.
func everything(t *testing.T, c redis.UniversalClient) {
	t.Helper()
	ctx := t.Context()
	require.NoError(t, Load(ctx, c))
	load(t, c, sale(10, 2))
	var id ids
	first, second := id.next(), id.next()
	require.Equal(t, []Outcome{Reserved, Reserved, AlreadyBought},
		outcomes(reserve(t, c, Request{OrderID: first, UserID: "u", Quantity: 1}, Request{OrderID: second, UserID: "u", Quantity: 1}, Request{OrderID: id.next(), UserID: "u", Quantity: 1})))
	require.Equal(t, []Moved{Done}, change(t, c, MarkCreated, Move{UserID: "u", OrderID: first}))
	require.Equal(t, []Moved{Done}, change(t, c, MarkPaid, Move{UserID: "u", OrderID: first}))
	require.Equal(t, []Moved{Done}, change(t, c, MarkExpired, Move{UserID: "u", OrderID: second}))
	require.NoError(t, Confirm(ctx, c, product, []string{first}))
	_, _, err := OutboxScan(ctx, c, product, 0, 10)
	require.NoError(t, err)
	records, err := Records(ctx, c, product, []string{"u"})
	require.NoError(t, err)
	require.Len(t, records[0], 2)
	_, changed, err := SetState(ctx, c, product, "a-1", Closed)
	require.NoError(t, err)
	require.True(t, changed)
	next := sale(5, 1)
	next.ID = "a-2"
	load(t, c, next)
	epoch, made, err := Hold(ctx, c, next, "")
	require.NoError(t, err)
	require.False(t, made)
	rewritten, err := Rewrite(ctx, c, product, "a-2", epoch, []Rewriting{{UserID: "u", To: FormatRecord(records[0])}, {UserID: "v"}})
	require.NoError(t, err)
	require.Equal(t, []bool{true, true}, rewritten)
	was, err := ReadCounters(ctx, c, product)
	require.NoError(t, err)
	_, err = Prove(ctx, c, product, "a-2", epoch, Open, was, Units{Available: 4, Sold: 1}, audit(t, c).ServerRun)
	require.NoError(t, err)
	s := audit(t, c)
	require.True(t, s.Proven())
	require.EqualValues(t, 5, s.Epoch)
}

// testOnlyDeclaredKeys runs everything as a user whom Redis lets touch the six
// keys of one product and no other.
func testOnlyDeclaredKeys(t *testing.T) {
	r := servicetest.RedisForTest(t)
	admin := connect(t, r.URL())
	rule := []any{"ACL", "SETUSER", "fenced", "on", ">fenced", "+@all", "resetchannels", "&" + Changes, "&" + Moves}
	for _, key := range KeysOf(product).list() {
		rule = append(rule, "~"+strings.NewReplacer("[", `\[`, "]", `\]`).Replace(key))
	}
	require.NoError(t, admin.Do(t.Context(), rule...).Err())
	fenced := connect(t, "redis://fenced:fenced@"+r.Addr()+"/0")
	require.ErrorContains(t, fenced.Get(t.Context(), "seckill:stock:{p-2}").Err(), "NOPERM")
	everything(t, fenced)
	log, err := admin.Do(t.Context(), "ACL", "LOG").Slice()
	require.NoError(t, err)
	require.Len(t, log, 1, "only the one refusal that this test asked for: %v", log)
}

// testCluster runs everything on a cluster of one node, which refuses calls
// whose keys do not share a slot.
func testCluster(t *testing.T) {
	ctx := t.Context()
	r := servicetest.RedisForTest(t, "--cluster-enabled", "yes")
	node := connect(t, r.URL())
	require.NoError(t, node.Do(ctx, "CLUSTER", "ADDSLOTSRANGE", 0, 16383).Err())
	servicetest.Eventually(t, func() bool {
		info, err := node.ClusterInfo(ctx).Result()
		return err == nil && strings.Contains(info, "cluster_state:ok")
	})
	slots := map[int64]bool{}
	for _, key := range KeysOf(product).list() {
		slot, err := node.ClusterKeySlot(ctx, key).Result()
		require.NoError(t, err)
		slots[slot] = true
	}
	require.Len(t, slots, 1)
	everything(t, connect(t, "redis+cluster://"+r.Addr()))
}

// testFullMemory: a Redis without memory refuses reservations as a whole, and
// still lets orders move and the gate be shut.
func testFullMemory(t *testing.T) {
	ctx := t.Context()
	c := start(t, "redis")
	load(t, c, sale(10, 5))
	var id ids
	first, second := id.next(), id.next()
	reserve(t, c, Request{OrderID: first, UserID: "u", Quantity: 1}, Request{OrderID: second, UserID: "u", Quantity: 1})
	require.NoError(t, c.ConfigSet(ctx, "maxmemory", "1").Err())
	before := dump(t, c)
	_, err := Reserve(ctx, c, product, 1, []Request{{OrderID: id.next(), UserID: "v", Quantity: 1}})
	require.ErrorContains(t, err, "OOM")
	require.Equal(t, before, dump(t, c))
	require.Equal(t, []Moved{Done}, change(t, c, MarkSettled, Move{UserID: "u", OrderID: first}))
	require.Equal(t, []Moved{Done}, change(t, c, MarkExpired, Move{UserID: "u", OrderID: second}))
	_, changed, err := SetState(ctx, c, product, "a-1", OnHold)
	require.NoError(t, err)
	require.True(t, changed)
	s := audit(t, c)
	require.False(t, s.Damaged)
	require.Equal(t, [3]int64{9, 0, 1}, [3]int64{s.Available, s.Frozen, s.Sold})
}

// testRunID: an activity says under which life of the server it was opened.
func testRunID(t *testing.T) {
	ctx := t.Context()
	r := servicetest.RedisForTest(t, "--appendfsync", "always")
	c := connect(t, r.URL())
	load(t, c, sale(10, 1))
	runid := func() string {
		info, err := c.InfoMap(ctx, "server").Result()
		require.NoError(t, err)
		return info["Server"]["run_id"]
	}
	old := runid()
	require.Len(t, old, 40)
	require.Equal(t, old, audit(t, c).RunID)
	require.True(t, audit(t, c).Proven())
	id := ids(0)
	first := Request{OrderID: id.next(), UserID: "u1", Quantity: 1}
	require.Equal(t, []Outcome{Reserved}, outcomes(reserve(t, c, first)))
	require.NoError(t, r.Kill())
	require.NoError(t, r.Restart(ctx))
	// The first call may meet a connection of the old life.
	servicetest.Eventually(t, func() bool { return c.Ping(ctx).Err() == nil })
	require.NotEqual(t, old, runid())
	s := audit(t, c)
	require.Equal(t, old, s.RunID, "data is back, and belongs to the old life")
	require.Equal(t, runid(), s.ServerRun)
	require.False(t, s.Proven())
	require.Equal(t, []Outcome{Reserved, Unavailable}, outcomes(reserve(t, c, first, Request{OrderID: id.next(), UserID: "u2", Quantity: 1})),
		"what is known is repeated, nothing new is sold before the stock is proven")
	_, _, err := SetState(ctx, c, product, "a-1", OnHold)
	require.NoError(t, err)
	require.Equal(t, old, audit(t, c).RunID)
	// Who holds and opens it, before a backend has noticed, opens no stock that the
	// last second is missing from.
	_, _, err = SetState(ctx, c, product, "a-1", Open)
	require.ErrorIs(t, err, ErrUnproven)
	_, _, err = OpenAt(ctx, c, product, "a-1", audit(t, c).Epoch)
	require.ErrorIs(t, err, ErrUnproven)
	epoch, _, err := Hold(ctx, c, sale(10, 1), "")
	require.NoError(t, err)
	_, err = Prove(ctx, c, product, "a-1", epoch, Open, Counters{"9", "1", "0"}, Units{9, 1, 0}, runid())
	require.NoError(t, err)
	require.True(t, audit(t, c).Proven())
	b, err := Reserve(ctx, c, product, audit(t, c).Epoch, []Request{{OrderID: id.next(), UserID: "u2", Quantity: 1}})
	require.NoError(t, err)
	require.Equal(t, []Outcome{Reserved}, outcomes(b.Results))
}

// testFailedBack: a server that was followed by another, followed it, and leads
// again has lost what the other had not heard of, and has not restarted.
func testFailedBack(t *testing.T) {
	ctx := t.Context()
	now := []string{"--repl-diskless-sync-delay", "0"} // followers need not gather
	first, second := servicetest.RedisForTest(t, now...), servicetest.RedisForTest(t, now...)
	c, other := connect(t, first.URL()), connect(t, second.URL())
	follow := func(c redis.UniversalClient, leader *servicetest.Redis) {
		host, port, err := net.SplitHostPort(leader.Addr())
		require.NoError(t, err)
		require.NoError(t, c.Do(ctx, "REPLICAOF", host, port).Err())
		servicetest.Eventually(t, func() bool {
			info, err := c.Info(ctx, "replication").Result()
			return err == nil && strings.Contains(info, "master_link_status:up")
		})
	}
	lead := func(c redis.UniversalClient) { require.NoError(t, c.Do(ctx, "REPLICAOF", "NO", "ONE").Err()) }
	a := sale(10, 1)
	load(t, c, a)
	follow(other, first)
	require.True(t, audit(t, c).Proven(), "to be followed changes nothing")
	lead(other)
	require.False(t, audit(t, other).Proven())
	var id ids
	require.Equal(t, []Outcome{Reserved}, outcomes(reserve(t, c, Request{OrderID: id.next(), UserID: "u", Quantity: 1})))
	follow(c, second)
	lead(c)
	s := audit(t, c)
	require.EqualValues(t, 10, s.Available, "the reservation is forgotten")
	require.False(t, s.Proven())
	require.Equal(t, []Outcome{Unavailable}, outcomes(reserve(t, c, Request{OrderID: id.next(), UserID: "v", Quantity: 1})))
	epoch, _, err := Hold(ctx, c, a, "")
	require.NoError(t, err)
	_, err = Prove(ctx, c, product, "a-1", epoch, Open, Counters{"10", "0", "0"}, Units{10, 0, 0}, s.ServerRun)
	require.NoError(t, err)
	require.True(t, audit(t, c).Proven())
	follow(other, first)
	require.True(t, audit(t, c).Proven())
}

func TestPresence(t *testing.T) {
	onEach(t, func(t *testing.T, c redis.UniversalClient) {
		at := time.UnixMilli(1_794_000_000_000)
		words := []Edge{{ID: "a", Epoch: 3, Carried: 7, At: at}, {ID: "b", Epoch: 4, At: at}}
		for _, e := range words {
			require.NoError(t, Present(t.Context(), c, product, e))
		}
		got, err := Presence(t.Context(), c, product)
		require.NoError(t, err)
		require.ElementsMatch(t, words, got)
		require.NoError(t, Absent(t.Context(), c, product, "a"))
		require.NoError(t, c.HSet(t.Context(), KeysOf(product).Edges, "b", "nonsense").Err())
		got, err = Presence(t.Context(), c, product)
		require.NoError(t, err)
		require.Equal(t, []Edge{{ID: "b", At: time.UnixMilli(0)}}, got)
	})
}

// testBatchEqualsSingles asks one server for the same in batches and another one
// by one.
func testBatchEqualsSingles(t *testing.T) {
	batches, singles := start(t, "redis"), start(t, "redis")
	load(t, batches, sale(700, 4))
	load(t, singles, sale(700, 4))
	id, random := ids(0), rand.New(rand.NewPCG(7, 7))
	var asked []Request
	for range 20 {
		reqs := make([]Request, 1+random.IntN(MaxPerCall))
		for i := range reqs {
			reqs[i] = Request{OrderID: id.next(), UserID: fmt.Sprintf("u%d", random.IntN(150)), Quantity: random.IntN(6)}
			if len(asked) > 0 && random.IntN(5) == 0 {
				reqs[i] = asked[random.IntN(len(asked))]
			}
			asked = append(asked, reqs[i])
		}
		got := reserve(t, batches, reqs...)
		for i, r := range reqs {
			alone := reserve(t, singles, r)[0]
			if alone.Earlier != nil && got[i].Earlier != nil {
				alone.Earlier.At = got[i].Earlier.At // each server has a time of its own
			}
			require.Equal(t, alone, got[i], "%d of %d: %v", i, len(reqs), r)
		}
	}
	one, other := audit(t, batches), audit(t, singles)
	require.Equal(t, [2]int64{one.Available, one.Frozen}, [2]int64{other.Available, other.Frozen})
}
