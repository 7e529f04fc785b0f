package main

import (
	"bytes"
	"context"
	"testing"

	"github.com/alicebob/miniredis/v2"
	"github.com/stretchr/testify/require"

	"github.com/seckill-edge/seckill/internal/killpoint"
	"github.com/seckill-edge/seckill/internal/servicetest"
	"github.com/seckill-edge/seckill/lua"
)

// until runs a backend until it is so.
func (s *shell) until(so func() bool) {
	s.Helper()
	ctx, stop := context.WithCancel(s.Context())
	code := make(chan int)
	var out, log bytes.Buffer
	go func() { code <- Run(ctx, []string{"serve", "--listen", "127.0.0.1:0"}, &out, &log, s.getenv) }()
	servicetest.Eventually(s, so)
	stop()
	require.Zero(s, <-code, log.String())
}

// expires says that Redis will forget the activity.
func (s *shell) expires() bool {
	client, err := lua.NewClient(s.env["SECKILL_REDIS_URL"], "test")
	require.NoError(s, err)
	defer func() { require.NoError(s, client.Close()) }()
	left, err := client.PTTL(s.Context(), lua.KeysOf("1001").Activity).Result()
	require.NoError(s, err)
	return left > 0
}

// Whoever dies between two stores in an activity's life, the next backend goes on
// from there.
func TestKilledInAnActivitysLife(t *testing.T) {
	binary := victim(t)
	s := newShell(t)
	server := miniredis.NewMiniRedis()
	server.ClockTTL(true) // the lease of who is killed ends
	require.NoError(t, server.StartAddr("127.0.0.1:0"))
	t.Cleanup(server.Close)
	s.env["SECKILL_REDIS_URL"] = "redis://" + server.Addr() + "/0"
	s.must("migrate")
	s.must(create()...)
	serve := []string{"serve", "--listen", "127.0.0.1:0"}
	show := func() string { return s.must("activity", "show", "1001") }

	s.dies(binary, killpoint.AfterPreheat, serve...)
	require.Regexp(t, `in SQL +scheduled\nin Redis +held, available 7`, show())
	s.dies(binary, killpoint.AfterOpen, serve...)
	require.Regexp(t, `in SQL +open\nin Redis +held, available 7`, show())
	s.until(func() bool { return bytes.Contains([]byte(show()), []byte("selling")) })

	s.dies(binary, killpoint.AfterChange, "activity", "stock", "1001", "--add", "3")
	require.Regexp(t, `units +10, (.*\n)+in SQL +open\nin Redis +open, available 7, (.*\n)+why +its total is being changed to 10`, show())
	require.Regexp(t, `drift +0`, s.must("activity", "audit", "1001"))
	s.dies(binary, killpoint.AfterResize, serve...)
	require.Regexp(t, `units +10, (.*\n)+in SQL +open\nin Redis +open, available 10, (.*\n)+why +its total is being changed to 10`, show())
	s.until(func() bool { return bytes.Contains([]byte(show()), []byte("selling")) })

	s.dies(binary, killpoint.AfterResize, "activity", "stock", "1001", "--withdraw", "4")
	require.Regexp(t, `units +10, (.*\n)+in SQL +open\nin Redis +open, available 6, (.*\n)+why +its total is being changed to 6`, show())
	require.Regexp(t, `drift +0`, s.must("activity", "audit", "1001"))
	s.until(func() bool { return bytes.Contains([]byte(show()), []byte("selling")) })
	require.Regexp(t, `units +6, `, show())

	s.must("activity", "close", "1001")
	s.dies(binary, killpoint.AfterArchive, serve...)
	require.Regexp(t, `in SQL +archived`, show())
	require.False(t, s.expires())
	s.until(s.expires)
}
