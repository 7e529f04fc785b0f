package store

import (
	"context"
	"crypto/rand"
	"fmt"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	mysqldriver "github.com/go-sql-driver/mysql"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/seckill-edge/seckill/internal/order"
	"github.com/seckill-edge/seckill/internal/servicetest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(servicetest.Main(m)) }

// database is one kind of database that the suite runs on.
type database struct {
	name string
	// fresh makes an empty one and returns its address.
	fresh func(t testing.TB) string
}

func sqliteFile(t testing.TB) string {
	return "sqlite:" + filepath.Join(t.TempDir(), "with space & 100%.db")
}

func sharedMariaDB(t testing.TB) string {
	return mysqlURL(t, servicetest.SharedMariaDB(t).Database(t))
}

// mysqlURL turns the driver's address into ours.
func mysqlURL(t testing.TB, dsn string) string {
	c, err := mysqldriver.ParseDSN(dsn)
	require.NoError(t, err)
	return fmt.Sprintf("mysql://%s:%s@%s/%s", c.User, c.Passwd, c.Addr, c.DBName)
}

// databases is what every test of the suite runs on. With -short it is the one
// that needs nothing installed.
func databases() []database {
	all := []database{{"SQLite", sqliteFile}}
	if !testing.Short() {
		all = append(all, database{"MariaDB", sharedMariaDB})
	}
	return all
}

// onEach runs test on an empty, migrated database of each kind.
func onEach(t *testing.T, test func(t *testing.T, address string)) {
	for _, d := range databases() {
		t.Run(d.name, func(t *testing.T) {
			address := d.fresh(t)
			_, err := open(t, address).Migrate(t.Context())
			require.NoError(t, err)
			test(t, address)
		})
	}
}

var epoch = time.Date(2026, 11, 11, 10, 0, 0, 0, time.UTC)

// open makes a store that ends with the test. Its clock stands at epoch.
func open(t testing.TB, address string) *Store {
	s, err := New(context.Background(), address, nil, WithClock(func() time.Time { return epoch }))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	return s
}

var counter atomic.Int64

// sale makes an open activity of a product of its own.
func sale(t testing.TB, s *Store, total int64, limit int) Activity {
	n := counter.Add(1)
	a := Activity{
		ID: fmt.Sprintf("sale-%d", n), ProductID: fmt.Sprintf("P_%d", n), Title: "Singles’ Day 🎉",
		Start: epoch, End: epoch.Add(time.Hour), Total: total, Limit: limit, State: Open,
	}
	require.NoError(t, s.CreateActivity(context.Background(), a))
	return a
}

// wants makes an order with a new id.
func (a Activity) wants(user string, quantity, number int) order.Order {
	id, err := order.NewID(epoch.Add(time.Duration(counter.Add(1))*time.Millisecond), rand.Reader)
	if err != nil {
		panic(err)
	}
	return order.Order{
		ID: id, ActivityID: a.ID, ProductID: a.ProductID,
		UserID: user, Quantity: quantity, Claim: number, ReservedAt: epoch,
	}
}

// crowd makes n orders of one unit by n buyers.
func (a Activity) crowd(n int) []order.Order {
	orders := make([]order.Order, n)
	for i := range orders {
		orders[i] = a.wants(fmt.Sprintf("user-%d", counter.Add(1)), 1, 1)
	}
	return orders
}

// requireExact checks what must hold whatever has happened: reserved is the units
// of the orders that hold stock, and no more than total.
func requireExact(t require.TestingT, s *Store, activity string) (reserved int64) {
	a, err := s.Activity(context.Background(), activity)
	require.NoError(t, err)
	totals, err := s.Totals(context.Background(), activity)
	require.NoError(t, err)
	var held int64
	for state, total := range totals {
		if state.HoldsStock() {
			held += total.Units
		}
	}
	require.Equal(t, held, a.Reserved, "reserved of %s", activity)
	require.LessOrEqual(t, a.Reserved, a.Total)
	return a.Reserved
}
