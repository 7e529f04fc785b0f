package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"testing"

	"github.com/go-sql-driver/mysql"
	"github.com/stretchr/testify/require"

	"github.com/seckill-edge/seckill/internal/servicetest"
)

// TestCrowd is the promise of the README: a thousand buyers, a hundred units, a
// hundred orders, and all stores agree. Without -short also on real servers.
func TestCrowd(t *testing.T) {
	rush, err := servicetest.Build(t.Context(), t.TempDir(), "bench/rush")
	require.NoError(t, err)
	servers := map[string]func(*testing.T) []string{"embedded": func(*testing.T) []string { return nil }}
	if !testing.Short() {
		servers["real"] = realServers
	}
	for name, args := range servers {
		t.Run(name, func(t *testing.T) { crowd(t, rush, startSale(t, args(t)...)) })
	}
}

// realServers are the flags that lead to servers of this test's own.
func realServers(t *testing.T) []string {
	db, err := mysql.ParseDSN(servicetest.SharedMariaDB(t).Database(t))
	require.NoError(t, err)
	return []string{
		"--redis", "redis://" + servicetest.RedisForTest(t).Addr() + "/0",
		"--rabbitmq", servicetest.SharedRabbitMQ(t).VHost(t),
		"--database", fmt.Sprintf("mysql://%s:%s@%s/%s", db.User, db.Passwd, db.Addr, db.DBName),
	}
}

func crowd(t *testing.T, rush string, s *sale) {
	var report struct {
		Outcomes []struct {
			Outcome string
			Clicks  int
		}
		Check struct {
			Told, Unknown, Sold, Stored int64
			Audit                       struct {
				Total, Available, Frozen, Sold, Outbox, Queued, Drift int64
				Orders                                                map[string]int64
			}
		}
		OK bool
	}
	cmd := exec.Command(rush, "--url", s.Shop, "--product", s.Product, "--buyers", "1000", "--console", s.Console, "--json")
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	require.NoError(t, cmd.Run(), stdout.String()+stderr.String())
	require.NoError(t, json.Unmarshal(stdout.Bytes(), &report))

	require.True(t, report.OK)
	clicks := map[string]int{}
	for _, o := range report.Outcomes {
		clicks[o.Outcome] += o.Clicks
	}
	// A slow machine may answer "queued" before Redis has; that buyer then reads
	// "rejected" and is no order.
	require.GreaterOrEqual(t, clicks["queued"], 100)
	require.Equal(t, 1000, clicks["queued"]+clicks["sold out"], "%v", clicks)
	c := report.Check
	require.EqualValues(t, 100, c.Told)
	require.EqualValues(t, 0, c.Unknown)
	require.EqualValues(t, 100, c.Sold)
	require.EqualValues(t, 100, c.Stored)
	require.EqualValues(t, 100, c.Audit.Orders["created"])
	require.Zero(t, c.Audit.Available+c.Audit.Frozen+c.Audit.Outbox+c.Audit.Queued+c.Audit.Drift)
}

// TestPayingCrowd lets buyers pay, cancel and abandon, and come again for what
// returns: in the end every unit is paid for. Without -short also on real servers.
func TestPayingCrowd(t *testing.T) {
	rush, err := servicetest.Build(t.Context(), t.TempDir(), "bench/rush")
	require.NoError(t, err)
	servers := map[string]func(*testing.T) []string{"embedded": func(*testing.T) []string { return nil }}
	if !testing.Short() {
		servers["real"] = realServers
	}
	for name, args := range servers {
		t.Run(name, func(t *testing.T) {
			s := startSale(t, append(args(t), "--units", "60", "--pay-window", "2s")...)
			cmd := exec.Command(rush, "--url", s.Shop, "--product", s.Product, "--buyers", "300", "--console", s.Console,
				"--pay", "70", "--cancel", "10", "--abandon", "20", "--json")
			var stdout, stderr bytes.Buffer
			cmd.Stdout, cmd.Stderr = &stdout, &stderr
			require.NoError(t, cmd.Run(), stdout.String()+stderr.String())
			var report struct {
				Life  struct{ Paid, Late, Cancelled, Abandoned int64 }
				Check struct {
					Audit struct {
						Available, Frozen, Sold, Drift int64
						Units                          map[string]int64
					}
				}
				OK bool
			}
			require.NoError(t, json.Unmarshal(stdout.Bytes(), &report))
			require.True(t, report.OK)
			a := report.Check.Audit
			require.EqualValues(t, 60, a.Sold)
			require.EqualValues(t, 60, a.Units["paid"])
			require.EqualValues(t, 60, report.Life.Paid-report.Life.Late)
			require.Positive(t, a.Units["cancelled"])
			require.Positive(t, a.Units["expired"])
			require.Zero(t, a.Available+a.Frozen+a.Drift)
		})
	}
}

// TestSignal runs the command as a process of its own and ends it as a user does.
func TestSignal(t *testing.T) {
	for name, signal := range map[string]os.Signal{"Ctrl-C": os.Interrupt, "SIGTERM": syscall.SIGTERM} {
		t.Run(name, func(t *testing.T) {
			temp := t.TempDir()
			home := t.TempDir()
			cmd := exec.Command(os.Args[0], "--listen", "127.0.0.1:0", "--console", "127.0.0.1:0", "--json")
			cmd.Env = append(os.Environ(), asCommand+"=1", "TMPDIR="+temp, "HOME="+home)
			stdout, err := cmd.StdoutPipe()
			require.NoError(t, err)
			var stderr bytes.Buffer
			cmd.Stderr = &stderr
			require.NoError(t, cmd.Start())
			_, ready := bufio.NewReader(stdout).ReadString('\n')
			require.NoError(t, cmd.Process.Signal(signal))
			err = cmd.Wait()
			require.Empty(t, stderr.String())
			require.NoError(t, err)
			require.NoError(t, ready)
			for _, folder := range []string{temp, home} {
				left, err := os.ReadDir(folder)
				require.NoError(t, err)
				require.Empty(t, left)
			}
		})
	}
}
