package store

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"
	"gorm.io/gorm"

	"github.com/seckill-edge/seckill/internal/order"
	"github.com/seckill-edge/seckill/internal/servicetest"
)

// servers starts databases that can be killed. With -short there is none.
func servers() map[string]func(testing.TB) *servicetest.MariaDB {
	if testing.Short() {
		return nil
	}
	return map[string]func(testing.TB) *servicetest.MariaDB{"MariaDB": servicetest.MariaDBForTest}
}

func onEachServer(t *testing.T, test func(t *testing.T, m *servicetest.MariaDB, address string)) {
	for name, start := range servers() {
		t.Run(name, func(t *testing.T) {
			m := start(t)
			address := mysqlURL(t, m.Database(t))
			_, err := open(t, address).Migrate(t.Context())
			require.NoError(t, err)
			test(t, m, address)
		})
	}
}

func requireAll(t *testing.T, got []Saved, isRepeat bool) {
	for _, g := range got {
		require.Equal(t, order.Created, g.State)
		require.Equal(t, isRepeat, g.Repeat)
	}
}

func TestServerKilledInMidTransaction(t *testing.T) {
	onEachServer(t, func(t *testing.T, m *servicetest.MariaDB, address string) {
		s := open(t, address)
		a := sale(t, s, 1000, 1)
		first := a.crowd(100)
		_, err := s.SaveOrders(t.Context(), first)
		require.NoError(t, err)

		var killed error
		var once sync.Once
		// The rows are in and the units are not reserved yet.
		require.NoError(t, s.db.Callback().Create().After("gorm:create").Register("test:kill", func(*gorm.DB) {
			once.Do(func() { killed = m.Kill() })
		}))
		batch := append(a.crowd(200), first[:50]...)
		_, err = s.SaveOrders(t.Context(), batch)
		require.NoError(t, killed)
		require.Error(t, err)
		require.True(t, IsTransient(err), "%v", err)
		_, err = s.SaveOrders(t.Context(), batch)
		require.Error(t, err)
		require.True(t, IsTransient(err), "while it is down: %v", err)

		require.NoError(t, m.Restart(t.Context()))
		got, err := s.SaveOrders(t.Context(), batch)
		require.NoError(t, err, "the same store finds the server again")
		requireAll(t, got[:200], false)
		requireAll(t, got[200:], true)
		require.EqualValues(t, 300, requireExact(t, s, a.ID))
	})
}

func TestCommitWhoseAnswerIsLost(t *testing.T) {
	onEachServer(t, func(t *testing.T, m *servicetest.MariaDB, address string) {
		cut := newCutter(t, m.Addr())
		s := open(t, strings.Replace(address, m.Addr(), cut.addr(), 1))
		a := sale(t, s, 1000, 1)
		batch := a.crowd(200)
		cut.armed.Store(true)
		_, err := s.SaveOrders(t.Context(), batch)
		require.Error(t, err)
		require.True(t, IsTransient(err), "%v", err)
		require.False(t, cut.armed.Load(), "the connection was cut")

		got, err := s.SaveOrders(t.Context(), batch)
		require.NoError(t, err)
		requireAll(t, got, true)
		require.EqualValues(t, 200, requireExact(t, s, a.ID))
	})
}

// Somebody else locks the same activities the other way round. The server ends
// the transaction that has written less, which is ours.
func TestADeadlockIsTriedAgain(t *testing.T) {
	onEachServer(t, func(t *testing.T, _ *servicetest.MariaDB, address string) {
		var logged bytes.Buffer
		s, err := New(t.Context(), address, slog.New(slog.NewTextHandler(&logged,
			&slog.HandlerOptions{Level: slog.LevelDebug})))
		require.NoError(t, err)
		defer func() { require.NoError(t, s.Close()) }()
		a, b := sale(t, s, 1000, 1), sale(t, s, 1000, 1)
		if b.ID < a.ID {
			a, b = b, a
		}
		locked := make(chan struct{})
		var once sync.Once
		require.NoError(t, s.db.Callback().Query().After("gorm:query").Register("test:locked", func(*gorm.DB) {
			once.Do(func() { close(locked) })
		}))
		other := open(t, address)
		var group errgroup.Group
		require.NoError(t, other.db.Transaction(func(tx *gorm.DB) error {
			rows := make([]orderRow, 100)
			for i, o := range b.crowd(len(rows)) {
				rows[i] = newOrderRow(&o, order.Rejected, order.ReasonOversold, epoch)
			}
			require.NoError(t, tx.Create(rows).Error)
			_, err := lockActivities(tx, []*order.Order{{ActivityID: b.ID}})
			require.NoError(t, err)
			group.Go(func() error {
				_, err := s.SaveOrders(t.Context(), append(a.crowd(10), b.crowd(10)...))
				return err
			})
			<-locked
			_, err = lockActivities(tx, []*order.Order{{ActivityID: a.ID}})
			return err
		}))
		require.NoError(t, group.Wait())
		require.Contains(t, logged.String(), "Deadlock found")
		require.EqualValues(t, 10, requireExact(t, s, a.ID))
		require.EqualValues(t, 10, requireExact(t, s, b.ID))
	})
}

func TestServerThatHangs(t *testing.T) {
	onEachServer(t, func(t *testing.T, m *servicetest.MariaDB, address string) {
		s := open(t, address)
		a := sale(t, s, 1000, 1)
		batch := a.crowd(100)
		require.NoError(t, m.Pause())
		ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
		defer cancel()
		_, err := s.SaveOrders(ctx, batch)
		require.NoError(t, m.Resume())
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.True(t, IsTransient(err))
		_, err = s.SaveOrders(t.Context(), batch)
		require.NoError(t, err)
		require.EqualValues(t, 100, requireExact(t, s, a.ID))
	})
}

func TestServerThatIsReadOnly(t *testing.T) {
	onEachServer(t, func(t *testing.T, _ *servicetest.MariaDB, address string) {
		s := open(t, address)
		a := sale(t, s, 1000, 1)
		batch := a.crowd(10)
		// Root may write nevertheless, so a buyer of less rights is needed.
		for _, statement := range []string{
			"CREATE USER shop@'%' IDENTIFIED BY 'p@ss/w:rd'", "GRANT ALL ON *.* TO shop@'%'",
			"REVOKE SUPER, READ_ONLY ADMIN ON *.* FROM shop@'%'", "SET GLOBAL read_only = 1",
		} {
			require.NoError(t, s.db.Exec(statement).Error)
		}
		shop := open(t, strings.Replace(address, "root:", "shop:p%40ss%2Fw%3Ard", 1))
		require.NoError(t, shop.Ping(t.Context()))
		_, err := shop.SaveOrders(t.Context(), batch)
		require.Error(t, err)
		require.True(t, IsTransient(err), "%v", err)
		require.NoError(t, s.db.Exec("SET GLOBAL read_only = 0").Error)
		_, err = shop.SaveOrders(t.Context(), batch)
		require.NoError(t, err)
		require.EqualValues(t, 10, requireExact(t, s, a.ID))

		intruder := open(t, strings.Replace(address, "root:", "shop:wrong-hush", 1))
		err = intruder.Ping(t.Context())
		require.ErrorContains(t, err, "Access denied")
		require.NotContains(t, err.Error(), "hush")
		require.True(t, IsTransient(err), "no order is to blame")
	})
}

// cutter forwards connections to a server. Once armed, it passes the next COMMIT
// on, waits for the server's answer, and closes the connection instead of
// handing the answer over.
type cutter struct {
	listener net.Listener
	server   string
	armed    atomic.Bool
	all      sync.WaitGroup
}

func newCutter(t *testing.T, server string) *cutter {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	c := &cutter{listener: l, server: server}
	c.all.Go(c.accept)
	t.Cleanup(func() {
		require.NoError(t, l.Close())
		c.all.Wait()
	})
	return c
}

func (c *cutter) addr() string { return c.listener.Addr().String() }

func (c *cutter) accept() {
	for {
		client, err := c.listener.Accept()
		if err != nil {
			return
		}
		server, err := net.Dial("tcp", c.server)
		if err != nil {
			_ = client.Close()
			continue
		}
		var cutting atomic.Bool
		c.all.Go(func() {
			c.forward(server, client, func(data []byte) bool {
				// The whole statement; READ COMMITTED is another.
				if bytes.HasSuffix(data, []byte("\x03COMMIT")) && c.armed.CompareAndSwap(true, false) {
					cutting.Store(true)
				}
				return true
			})
		})
		c.all.Go(func() {
			c.forward(client, server, func([]byte) bool { return !cutting.Load() })
		})
	}
}

// forward copies until one side ends or pass says no, then closes both.
func (c *cutter) forward(to io.WriteCloser, from io.ReadCloser, pass func([]byte) bool) {
	defer func() { _, _ = to.Close(), from.Close() }()
	buffer := make([]byte, 1<<16)
	for {
		n, err := from.Read(buffer)
		if err != nil || !pass(buffer[:n]) {
			return
		}
		if _, err := to.Write(buffer[:n]); err != nil {
			return
		}
	}
}
