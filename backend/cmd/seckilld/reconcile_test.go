package main

import (
	"crypto/rand"
	"encoding/json"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/seckill-edge/seckill/backend/reconcile"
	"github.com/seckill-edge/seckill/internal/order"
	"github.com/seckill-edge/seckill/internal/servicetest"
	"github.com/seckill-edge/seckill/lua"
)

// redises are what the command is tested on.
func redises() map[string]func(s *shell) {
	all := map[string]func(s *shell){"embedded": func(*shell) {}}
	if !testing.Short() {
		all["real"] = func(s *shell) {
			s.env["SECKILL_REDIS_URL"] = servicetest.RedisForTest(s.T, "--appendonly", "yes").URL()
		}
	}
	return all
}

// sells opens a sale of 7 units of product 1001 and reserves one for each buyer,
// some time ago, of which the broker has confirmed nothing.
func (s *shell) sells(buyers ...string) (redis.UniversalClient, []order.Order) {
	s.must("migrate")
	s.must(create()...)
	s.must("activity", "preheat", "1001", "--accept-redis-risk")
	s.must("activity", "open", "1001", "--accept-redis-risk")
	c, err := lua.NewClient(s.env["SECKILL_REDIS_URL"], "test")
	require.NoError(s, err)
	s.Cleanup(func() { require.NoError(s, c.Close()) })
	view, _, err := lua.Audit(s.Context(), c, "1001")
	require.NoError(s, err)
	orders := make([]order.Order, len(buyers))
	for i, buyer := range buyers {
		id, err := order.NewID(time.Now(), rand.Reader)
		require.NoError(s, err)
		orders[i] = order.Order{ID: id, ProductID: "1001", ActivityID: view.ID, UserID: buyer, Quantity: 1, Claim: 1, ReservedAt: view.Now.Add(-time.Minute)}
		reply, err := lua.Reserve(s.Context(), c, "1001", view.Epoch, []lua.Request{{OrderID: id, UserID: buyer, Quantity: 1}})
		require.NoError(s, err)
		require.Equal(s, lua.Reserved, reply.Results[0].Outcome)
		record := lua.FormatRecord([]lua.Entry{{Mark: lua.MarkQueued, OrderID: id, Quantity: 1, Claim: 1, At: orders[i].ReservedAt}})
		require.NoError(s, c.HSet(s.Context(), lua.KeysOf("1001").Users, buyer, record).Err())
	}
	return c, orders
}

// What differs is said, by a dry run without touching it; the exit status says
// whether anything is left.
func TestReconcileByCommand(t *testing.T) {
	for name, prepare := range redises() {
		t.Run(name, func(t *testing.T) {
			s := newShell(t)
			prepare(s)
			c, orders := s.sells("ann", "bob")
			keys := lua.KeysOf("1001")
			require.NoError(t, c.HDel(t.Context(), keys.Outbox, orders[1].ID).Err())
			require.NoError(t, c.MSet(t.Context(), keys.Stock, 6, keys.Frozen, 1, "seckill:stok:{1001}", 1).Err())

			code, out, err := s.run("reconcile", "--dry-run")
			require.Equal(t, exitDrift, code)
			require.Equal(t, "seckilld reconcile: the stores disagree\n", err)
			require.Regexp(t, `product +1001\n`, out)
			require.Regexp(t, `compared +2 buyers; orders that hold units: 2 in Redis, 0 in SQL; given back: 0 in Redis\n`, out)
			require.Regexp(t, `unknown_key +seckill:stok:\{1001\} +for you to judge\n`, out)
			require.Regexp(t, `unpublished +`+orders[0].ID+` +Redis has it as queued, 1 unit; SQL has none +not mended\n`, out)
			require.Regexp(t, `lost_after_publish +`+orders[1].ID+` +Redis has it as queued, 1 unit; SQL has none +not mended\n`, out)
			require.Regexp(t, `released_twice +available units: Redis has 6, right is 5 +not mended\n`, out)
			require.Equal(t, "6", c.Get(t.Context(), keys.Stock).Val(), "a dry run changes nothing")
			require.EqualValues(t, 1, c.HLen(t.Context(), keys.Outbox).Val())

			reports := func(code int, args ...string) reconcile.Report {
				got, out, err := s.run(append([]string{"reconcile", "1001", "--json"}, args...)...)
				require.Equal(t, code, got, err)
				var said struct {
					Dry     bool               `json:"dry_run"`
					Reports []reconcile.Report `json:"reports"`
				}
				require.NoError(t, json.Unmarshal([]byte(out), &said))
				require.Equal(t, len(args) > 0, said.Dry)
				require.Len(t, said.Reports, 1)
				return said.Reports[0]
			}
			report := reports(exitDrift, "--dry-run")
			require.Len(t, report.Findings, 5)
			require.Empty(t, report.Mended)
			require.Equal(t, 2, report.Counts["released_twice"], "available and frozen")

			require.NoError(t, c.Del(t.Context(), "seckill:stok:{1001}").Err())
			require.NoError(t, c.MSet(t.Context(), keys.Stock, 5, keys.Frozen, 2).Err())
			report = reports(exitDone)
			require.Equal(t, report.Counts, report.Mended)
			require.Len(t, report.Findings, 2)
			for _, f := range report.Findings {
				require.True(t, f.Mended)
				require.Equal(t, reconcile.Publish, f.Mend)
			}
			require.Zero(t, c.HLen(t.Context(), keys.Outbox).Val())
		})
	}
}

func TestReconcileUsage(t *testing.T) {
	s := newShell(t)
	s.must("migrate")
	require.Empty(t, s.must("reconcile"), "nothing is on sale")
	require.JSONEq(t, `{"dry_run":false,"reports":[]}`, s.must("reconcile", "--json"))
	for _, tc := range []struct {
		args []string
		code int
		says string
	}{
		{[]string{"reconcile", "1001", "1002"}, exitUsage, "at most 1"},
		{[]string{"reconcile", "--colour"}, exitUsage, "--colour"},
		{[]string{"reconcile", "9"}, exitRefused, "product 9"},
		{[]string{"reconcile", "--redis", "redis://u:secret@127.0.0.1:1/0"}, exitFailed, "127.0.0.1:1"},
	} {
		s.must("reconcile")
		if tc.code == exitFailed {
			s.must(create()...)
			s.must("activity", "preheat", "1001", "--accept-redis-risk")
		}
		code, out, err := s.run(tc.args...)
		require.Equal(t, tc.code, code, "%v: %s%s", tc.args, out, err)
		require.Empty(t, out)
		require.Contains(t, err, tc.says)
		require.NotContains(t, err, "secret")
	}
	// One that cannot be finished says what it has found until then.
	c, err := lua.NewClient(s.env["SECKILL_REDIS_URL"], "test")
	require.NoError(t, err)
	defer func() { require.NoError(t, c.Close()) }()
	require.NoError(t, c.Set(t.Context(), "seckill:stok:{1001}", 1, 0).Err())
	code, out, words := s.run("reconcile", "--rabbitmq", "amqp://u:secret@127.0.0.1:1/")
	require.Equal(t, exitFailed, code)
	require.Regexp(t, `unknown_key +seckill:stok:\{1001\}`, out)
	require.Contains(t, words, "127.0.0.1:1")
	require.NotContains(t, words, "secret")
	require.Contains(t, s.must("reconcile", "--help"), "Examples:")
}
