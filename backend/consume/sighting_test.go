package consume

import (
	"bytes"
	"fmt"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/alicebob/miniredis/v2/server"
	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/seckill-edge/seckill/internal/order"
	"github.com/seckill-edge/seckill/lua"
)

func TestWhatASightingJudges(t *testing.T) {
	since := time.UnixMilli(1_794_000_000_000)
	now, margin := since.Add(time.Hour), time.Minute
	s := sighting{activity: "sale", run: "1", epoch: 2, since: since}
	for name, tc := range map[string]struct {
		activity       string
		made, reserved time.Duration // after since
		want           bool
	}{
		"after it":                     {"sale", 2 * time.Minute, 2 * time.Minute, true},
		"now":                          {"sale", time.Hour, time.Hour, true},
		"another activity":             {"other", 2 * time.Minute, 2 * time.Minute, false},
		"before it":                    {"sale", -time.Minute, -time.Minute, false},
		"soon after it":                {"sale", time.Minute, time.Minute, false},
		"made before, by a slow clock": {"sale", -time.Minute, 2 * time.Minute, false},
		"made after, by a fast clock":  {"sale", 2 * time.Minute, time.Minute, false},
		"made in the future":           {"sale", 2 * time.Hour, time.Hour, false},
		"reserved in the future":       {"sale", time.Hour, 2 * time.Hour, false},
	} {
		id, err := order.NewID(since.Add(tc.made), bytes.NewReader(make([]byte, 10)))
		require.NoError(t, err)
		o := order.Order{ID: id, ActivityID: tc.activity, ReservedAt: since.Add(tc.reserved)}
		require.Equal(t, tc.want, s.judges(&o, now, margin), name)
	}
}

// A sighting lasts while nothing can be lost, and begins anew after whatever may
// have lost something.
func TestASightingLastsWhileNothingCanBeLost(t *testing.T) {
	redisServer := miniredis.RunT(t)
	clock := time.UnixMilli(1_794_000_000_000)
	redisServer.SetTime(clock)
	run := "1"
	redisServer.Server().SetPreHook(func(c *server.Peer, cmd string, _ ...string) bool {
		if cmd == "INFO" {
			c.WriteBulk(fmt.Sprintf("# Server\r\nrun_id:%s\r\n", run))
		}
		return cmd == "INFO"
	})
	client := redis.NewClient(&redis.Options{Addr: redisServer.Addr()})
	t.Cleanup(func() { require.NoError(t, client.Close()) })
	ctx, k := t.Context(), lua.KeysOf("p")
	load := func() {
		loaded, err := lua.Preheat(ctx, client, lua.Activity{ID: "a", ProductID: "p", Start: clock, End: clock.Add(time.Hour), Total: 9, Limit: 1, State: lua.Open})
		require.NoError(t, err)
		require.Equal(t, lua.Loaded, loaded)
	}
	load()
	redisServer.HSet(k.Users, "u", "q:00000000000000000000000000:1:1:1")
	s := newSightings(client)
	for _, step := range []struct {
		name   string
		do     func()
		proven bool
		anew   bool
	}{
		{"first look", func() {}, true, true},
		{"another", func() {}, true, false},
		{"a buyer more", func() { redisServer.HSet(k.Users, "v", "q:00000000000000000000000001:1:1:1") }, true, false},
		{"a record gone", func() { redisServer.HDel(k.Users, "v") }, true, true},
		{"another", func() {}, true, false},
		{"restarted", func() { run = "2" }, false, false},
		{"proven", func() { redisServer.HSet(k.Activity, "run", run, "epoch", "3") }, true, true},
		{"proven anew between two looks", func() { redisServer.HSet(k.Activity, "epoch", "5") }, true, true},
		{"another", func() {}, true, false},
		{"emptied", redisServer.FlushAll, false, false},
		{"loaded", func() { load(); redisServer.HSet(k.Activity, "epoch", "5") }, true, true},
		{"a run id that is not told", func() { run = ""; redisServer.HSet(k.Activity, "run", "") }, false, false},
	} {
		clock = clock.Add(time.Second)
		redisServer.SetTime(clock)
		step.do()
		now, as, proven, err := s.look(ctx, "p")
		require.NoError(t, err)
		require.Equal(t, step.proven, proven, step.name)
		if proven {
			require.Equal(t, clock, now, step.name)
			require.Equal(t, step.anew, as.since.Equal(now), step.name)
		}
		require.Equal(t, proven, s.fresh("p", time.Hour), step.name)
	}
	redisServer.Close()
	_, _, _, err := s.look(ctx, "p")
	require.Error(t, err)
}
