package servicetest

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"
	"testing"

	amqp "github.com/rabbitmq/amqp091-go"
)

// RabbitMQ is a broker of one node that this process owns. Its data outlives
// Kill and Stop, so that Restart finds it again.
type RabbitMQ struct {
	dir  string
	node string
	port int

	mu      sync.Mutex
	process *Process
	vhosts  int
}

// rabbitConf keeps a small machine out of alarms that a test did not ask for.
const rabbitConf = `disk_free_limit.absolute = 50MB
raft.wal_max_size_bytes = 64000000
log.file.level = warning
`

// StartRabbitMQ starts a broker on free loopback ports with its data in dir and
// waits until it takes connections (about 8 s). The caller must Stop or Kill it.
func StartRabbitMQ(ctx context.Context, dir string) (*RabbitMQ, error) {
	port, err := steadyPort()
	if err != nil {
		return nil, err
	}
	// epmd, the name server of Erlang nodes, is shared by the whole machine; the
	// port makes the name unique there.
	r := &RabbitMQ{dir: dir, port: port, node: fmt.Sprintf("seckill-%d@localhost", port)}
	if err := os.WriteFile(filepath.Join(dir, "rabbitmq.conf"), []byte(rabbitConf), 0o644); err != nil {
		return nil, fmt.Errorf("writing the configuration of RabbitMQ: %w", err)
	}
	if err := r.Restart(ctx); err != nil {
		return nil, err
	}
	return r, nil
}

// Addr is the broker's host and port.
func (r *RabbitMQ) Addr() string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(r.port)) }

// URL is the address of the default virtual host.
func (r *RabbitMQ) URL() string { return "amqp://guest:guest@" + r.Addr() + "/" }

// Restart kills the broker if it runs and starts it on the same port and data.
// It returns when the broker takes connections.
func (r *RabbitMQ) Restart(ctx context.Context) error {
	if err := r.Kill(); err != nil {
		return err
	}
	path, err := program("rabbitmq-server")
	if err != nil {
		return err
	}
	distPort, err := steadyPort()
	if err != nil {
		return err
	}
	cmd := exec.Command(path)
	cmd.Dir = r.dir // a crash dump goes there
	cmd.Env = append(r.environment(),
		"RABBITMQ_DIST_PORT="+strconv.Itoa(distPort),
		// The script then becomes the server instead of guarding it: the process
		// we own is the one that must be killed and paused.
		"RUNNING_UNDER_SYSTEMD=1",
	)
	p, err := startProcess("rabbitmq-server", cmd, filepath.Join(r.dir, "stdout.log"))
	if err != nil {
		return err
	}
	r.mu.Lock()
	r.process = p
	r.mu.Unlock()
	if err := awaitReady(ctx, p, r.answers); err != nil {
		return errors.Join(err, r.Kill())
	}
	return nil
}

func (r *RabbitMQ) environment() []string {
	return append(os.Environ(),
		"HOME="+r.dir, // the Erlang cookie lives there
		"RABBITMQ_NODENAME="+r.node,
		"RABBITMQ_NODE_IP_ADDRESS=127.0.0.1",
		"RABBITMQ_NODE_PORT="+strconv.Itoa(r.port),
		"RABBITMQ_MNESIA_BASE="+filepath.Join(r.dir, "mnesia"),
		"RABBITMQ_LOG_BASE="+filepath.Join(r.dir, "log"),
		"RABBITMQ_PID_FILE="+filepath.Join(r.dir, "pid"),
		"RABBITMQ_CONFIG_FILE="+filepath.Join(r.dir, "rabbitmq.conf"),
		"RABBITMQ_ENABLED_PLUGINS_FILE="+filepath.Join(r.dir, "plugins"),
		"RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS=-kernel inet_dist_use_interface {127,0,0,1}",
		"ERL_EPMD_ADDRESS=127.0.0.1",
	)
}

func (r *RabbitMQ) answers(context.Context) error {
	conn, err := amqp.DialConfig(r.URL(), amqp.Config{Dial: amqp.DefaultDial(answerWithin())})
	if err != nil {
		return err
	}
	return conn.Close()
}

// Ctl runs rabbitmqctl with args on this broker and returns what it printed.
func (r *RabbitMQ) Ctl(ctx context.Context, args ...string) (string, error) {
	path, err := program("rabbitmqctl")
	if err != nil {
		return "", err
	}
	cmd := exec.CommandContext(ctx, path, append([]string{"--quiet", "-n", r.node}, args...)...)
	cmd.Env = r.environment()
	out, err := cmd.CombinedOutput()
	if err != nil {
		return string(out), fmt.Errorf("rabbitmqctl %v: %w: %s", args, err, out)
	}
	return string(out), nil
}

// NewVHost makes a virtual host, in which nothing is declared, and returns its
// address and name.
func (r *RabbitMQ) NewVHost(ctx context.Context) (url, name string, err error) {
	r.mu.Lock()
	r.vhosts++
	name = "test-" + strconv.Itoa(r.vhosts)
	r.mu.Unlock()
	// One call instead of two: each costs a second to start.
	_, err = r.Ctl(ctx, "eval", fmt.Sprintf(`rabbit_vhost:add(<<"%[1]s">>, <<"test">>),
		rabbit_auth_backend_internal:set_permissions(<<"guest">>, <<"%[1]s">>, <<".*">>, <<".*">>, <<".*">>, <<"test">>).`, name))
	return r.URL() + name, name, err
}

// VHost is NewVHost for a test. It returns the address.
func (r *RabbitMQ) VHost(t testing.TB) string {
	t.Helper()
	url, _, err := r.NewVHost(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return url
}

// Kill ends the broker at once, as a power cut would.
func (r *RabbitMQ) Kill() error { return r.signal((*Process).Kill) }

// Stop ends the broker gracefully.
func (r *RabbitMQ) Stop() error { return r.signal((*Process).Stop) }

// Pause freezes the broker: connections stay open and nothing answers.
func (r *RabbitMQ) Pause() error { return r.signal((*Process).Pause) }

// Resume lets a paused broker go on.
func (r *RabbitMQ) Resume() error { return r.signal((*Process).Resume) }

func (r *RabbitMQ) signal(do func(*Process) error) error {
	r.mu.Lock()
	p := r.process
	r.mu.Unlock()
	if p == nil {
		return nil
	}
	return do(p)
}

// RabbitMQForTest starts a broker for this test alone, for tests that kill it.
func RabbitMQForTest(t testing.TB) *RabbitMQ {
	t.Helper()
	r, err := StartRabbitMQ(t.Context(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := r.Kill(); err != nil {
			t.Error(err)
		}
	})
	return r
}

var sharedRabbitMQ = newShared("rabbitmq", StartRabbitMQ)

// SharedRabbitMQ is the one broker that the tests of this process share, started
// by the first. Take a VHost of it. Do not stop or pause it; TestMain must run
// Main, which stops it.
func SharedRabbitMQ(t testing.TB) *RabbitMQ { return sharedRabbitMQ.get(t) }
