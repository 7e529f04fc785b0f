package store

import (
	"bytes"
	"context"
	"log/slog"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestAddressesThatAreRefused(t *testing.T) {
	for _, tc := range []struct{ address, says string }{
		{"", `scheme ""`},
		{"postgres://u:hush@h/d", `scheme "postgres"`},
		{"mysql://u:hush@h:3306", "lacks host or database"},
		{"mysql://u:hush@/d", "lacks host or database"},
		{"mysql://u:hush@h/d/e", "lacks host or database"},
		{"mysql://u:hush@h/d?parseTime=true", `parameter "parseTime"`},
		{"mysql://u:hush@h/d?tls=maybe", `tls="maybe"`},
		{"mysql://u:hush%zz@h/d", "not a URL"},
		{"mysql://u:hush@h:port/d", "not a URL"},
		{"sqlite:", "lacks a file"},
		{"sqlite::memory:", "lacks a file"},
		{"sqlite:/no/such/folder/x.db", "opening SQLite /no/such/folder/x.db"},
	} {
		_, err := New(t.Context(), tc.address, nil)
		require.ErrorContains(t, err, tc.says, tc.address)
		require.NotContains(t, err.Error(), "hush")
	}
}

func TestMySQLAddress(t *testing.T) {
	for _, tc := range []struct{ address, addr, database, user, password, tls string }{
		{"mysql://shop:p%40ss%2Fw%3Ard@db.example:3307/seckill", "db.example:3307", "seckill", "shop", "p@ss/w:rd", ""},
		{"mysql://shop@db/seckill?tls=true", "db:3306", "seckill", "shop", "", "true"},
		{"mysql://[::1]/seckill?tls=skip-verify", "[::1]:3306", "seckill", "", "", "skip-verify"},
	} {
		d, err := parse(tc.address, slog.New(slog.DiscardHandler))
		require.NoError(t, err)
		c := d.(*mysqlDialect).config
		require.Equal(t, tc.addr, c.Addr)
		require.Equal(t, tc.database, c.DBName)
		require.Equal(t, tc.user, c.User)
		require.Equal(t, tc.password, c.Passwd)
		require.Equal(t, tc.tls, c.TLSConfig)
	}
}

func TestOpensWhileTheServerIsDown(t *testing.T) {
	// A port that was free a moment ago refuses connections.
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	require.NoError(t, l.Close())
	var logged bytes.Buffer
	log := slog.New(slog.NewTextHandler(&logged, &slog.HandlerOptions{Level: slog.LevelDebug}))
	s, err := New(t.Context(), "mysql://root:hush@"+l.Addr().String()+"/seckill", log)
	require.NoError(t, err)
	defer func() { require.NoError(t, s.Close()) }()

	_, saving := s.SaveOrders(t.Context(), Activity{ID: "a", ProductID: "p"}.crowd(3))
	_, migrating := s.Migrate(t.Context())
	for what, err := range map[string]error{
		"ping": s.Ping(t.Context()), "ready": s.SchemaReady(t.Context()), "save": saving, "migrate": migrating,
	} {
		require.Error(t, err, what)
		require.True(t, IsTransient(err), "%s: %v", what, err)
		require.Contains(t, err.Error(), "connection refused", what)
		require.NotContains(t, err.Error()+logged.String(), "hush", what)
	}
}

func TestPingAndClose(t *testing.T) {
	onEach(t, func(t *testing.T, address string) {
		s, err := New(t.Context(), address, nil)
		require.NoError(t, err)
		require.NoError(t, s.Ping(t.Context()))
		require.NoError(t, s.Close())
		require.Error(t, s.Ping(t.Context()))
	})
}

func TestAnEndedContextIsTransient(t *testing.T) {
	onEach(t, func(t *testing.T, address string) {
		s := open(t, address)
		a := sale(t, s, 10, 1)
		ctx, cancel := context.WithDeadline(t.Context(), time.Unix(1, 0))
		defer cancel()
		_, err := s.SaveOrders(ctx, a.crowd(1))
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.True(t, IsTransient(err))
		require.Zero(t, requireExact(t, s, a.ID))
	})
}
