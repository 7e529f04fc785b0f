package servicetest

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"
)

// MariaDB is a database server that this process owns. Its data outlives Kill
// and Stop, so that Restart finds it again.
type MariaDB struct {
	dir  string
	user string
	port int

	mu        sync.Mutex
	process   *Process
	databases int
}

// StartMariaDB makes an empty data folder in dir, starts a server on a free
// loopback port and waits until it answers (about 5 s). The caller must Stop or
// Kill it. Its durability is the server's default: a commit is on the disk.
func StartMariaDB(ctx context.Context, dir string) (*MariaDB, error) {
	port, err := steadyPort()
	if err != nil {
		return nil, err
	}
	// The server refuses to run as root unless it is told so by name.
	me, err := user.Current()
	if err != nil {
		return nil, fmt.Errorf("asking for the current user: %w", err)
	}
	m := &MariaDB{dir: dir, user: me.Username, port: port}
	path, err := program("mariadb-install-db")
	if err != nil {
		return nil, err
	}
	install := exec.CommandContext(ctx, path, "--no-defaults", "--user="+m.user, "--datadir="+m.data(),
		"--auth-root-authentication-method=normal", "--skip-test-db")
	// A server that starts removes the temporary tables of all others that share
	// its folder for them.
	install.Env = append(os.Environ(), "TMPDIR="+m.dir)
	if out, err := install.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("mariadb-install-db: %w: %s", err, out)
	}
	if err := m.Restart(ctx); err != nil {
		return nil, err
	}
	return m, nil
}

func (m *MariaDB) data() string { return filepath.Join(m.dir, "data") }

// Addr is the server's host and port.
func (m *MariaDB) Addr() string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(m.port)) }

// DSN is the address of database for go-sql-driver: times in UTC, full Unicode,
// one round trip a statement, and a bound on everything.
func (m *MariaDB) DSN(database string) string { return m.config(database).FormatDSN() }

func (m *MariaDB) config(database string) *mysql.Config {
	c := mysql.NewConfig()
	c.User = "root" // of a private server; it has no password
	c.Net = "tcp"
	c.Addr = m.Addr()
	c.DBName = database
	c.ParseTime = true
	c.Loc = time.UTC
	c.InterpolateParams = true
	c.Timeout = Scaled(5 * time.Second)
	c.ReadTimeout = Scaled(30 * time.Second)
	c.WriteTimeout = Scaled(30 * time.Second)
	if err := c.Apply(mysql.Charset("utf8mb4", "")); err != nil {
		panic(err) // a constant is wrong
	}
	return c
}

// Restart kills the server if it runs and starts it on the same port and data.
// It returns when the server answers.
func (m *MariaDB) Restart(ctx context.Context) error {
	if err := m.Kill(); err != nil {
		return err
	}
	path, err := program("mariadbd")
	if err != nil {
		return err
	}
	cmd := exec.Command(path, "--no-defaults", "--user="+m.user, "--datadir="+m.data(),
		"--bind-address=127.0.0.1", "--port="+strconv.Itoa(m.port), "--skip-name-resolve",
		"--tmpdir="+m.dir,
		// Relative to the data folder: a path in a deep folder would be too long.
		"--socket=mariadbd.sock", "--pid-file=mariadbd.pid",
		"--character-set-server=utf8mb4")
	p, err := startProcess("mariadbd", cmd, filepath.Join(m.dir, "mariadbd.log"))
	if err != nil {
		return err
	}
	m.mu.Lock()
	m.process = p
	m.mu.Unlock()
	if err := awaitReady(ctx, p, m.answers); err != nil {
		return errors.Join(err, m.Kill())
	}
	return nil
}

func (m *MariaDB) answers(ctx context.Context) error { return m.Exec(ctx, "SELECT 1") }

// Exec runs one statement as root on a connection of its own.
func (m *MariaDB) Exec(ctx context.Context, statement string) error {
	c := m.config("")
	c.Logger = &mysql.NopLogger{} // refused connections are expected while it starts
	connector, err := mysql.NewConnector(c)
	if err != nil {
		return err
	}
	db := sql.OpenDB(connector)
	_, err = db.ExecContext(ctx, statement)
	return errors.Join(err, db.Close())
}

// CreateDatabase makes an empty database. name must be a plain word.
func (m *MariaDB) CreateDatabase(ctx context.Context, name string) error {
	if err := m.Exec(ctx, "CREATE DATABASE `"+name+"`"); err != nil {
		return fmt.Errorf("creating database %s: %w", name, err)
	}
	return nil
}

// Database makes an empty database for this test and returns its DSN.
func (m *MariaDB) Database(t testing.TB) string {
	t.Helper()
	m.mu.Lock()
	m.databases++
	name := "test_" + strconv.Itoa(m.databases)
	m.mu.Unlock()
	if err := m.CreateDatabase(t.Context(), name); err != nil {
		t.Fatal(err)
	}
	return m.DSN(name)
}

// Kill ends the server at once, as a power cut would.
func (m *MariaDB) Kill() error { return m.signal((*Process).Kill) }

// Stop ends the server gracefully.
func (m *MariaDB) Stop() error { return m.signal((*Process).Stop) }

// Pause freezes the server: connections stay open and nothing answers.
func (m *MariaDB) Pause() error { return m.signal((*Process).Pause) }

// Resume lets a paused server go on.
func (m *MariaDB) Resume() error { return m.signal((*Process).Resume) }

func (m *MariaDB) signal(do func(*Process) error) error {
	m.mu.Lock()
	p := m.process
	m.mu.Unlock()
	if p == nil {
		return nil
	}
	return do(p)
}

// MariaDBForTest starts a server for this test alone, for tests that kill it.
func MariaDBForTest(t testing.TB) *MariaDB {
	t.Helper()
	m, err := StartMariaDB(t.Context(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := m.Kill(); err != nil {
			t.Error(err)
		}
	})
	return m
}

var sharedMariaDB = newShared("mariadb", StartMariaDB)

// SharedMariaDB is the one server that the tests of this process share, started
// by the first. Take a Database of it. Do not stop or pause it; TestMain must
// run Main, which stops it.
func SharedMariaDB(t testing.TB) *MariaDB { return sharedMariaDB.get(t) }
