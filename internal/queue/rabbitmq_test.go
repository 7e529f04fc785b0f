package queue

import (
	"bytes"
	"log/slog"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"testing"

	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/require"

	"github.com/seckill-edge/seckill/internal/servicetest"
)

// TestRabbitMQ needs a RabbitMQ for all but the first case.
func TestRabbitMQ(t *testing.T) {
	cases := map[string]func(*testing.T){"tells no password": testSecrets}
	if !testing.Short() {
		cases["refused login"] = testRefusedLogin
		cases["unrouted"] = testUnrouted
		cases["full"] = testFull
		cases["queue deleted"] = testQueueDeleted
	}
	for name, run := range cases {
		t.Run(name, run)
	}
}

func testSecrets(t *testing.T) {
	for _, address := range []string{
		"amqp://user:geheim@127.0.0.1:1/", "amqp://user:geheim@127.0.0.1:port/",
		"amqp://user:geheim%@127.0.0.1:1/", "http://user:geheim@127.0.0.1", "://geheim",
	} {
		b, err := Open(address)
		if err == nil {
			var log bytes.Buffer
			p := b.Publisher(Options{Log: slog.New(slog.NewTextHandler(&log, nil))})
			err = p.Publish(t.Context(), Orders, Message{ID: "a"})
			require.ErrorIs(t, err, ErrNotSent)
			require.Error(t, p.Ready())
			require.NotContains(t, p.Ready().Error(), "geheim")
			require.NoError(t, p.Close(t.Context()))
			require.Equal(t, 1, strings.Count(log.String(), "\n"), "one line when it is lost: %s", &log)
			require.NotContains(t, log.String(), "geheim")
			_, _, depthErr := b.Depth(t.Context())
			require.ErrorContains(t, depthErr, "127.0.0.1:1")
			require.NotContains(t, depthErr.Error(), "geheim")
			require.NoError(t, b.Close())
		}
		require.Error(t, err)
		require.NotContains(t, err.Error(), "geheim")
	}
}

func testRefusedLogin(t *testing.T) {
	u, err := url.Parse(servicetest.SharedRabbitMQ(t).URL())
	require.NoError(t, err)
	u.User = url.UserPassword("guest", "geheim")
	p := publisher(t, open(t, u.String()), Options{})
	err = p.Publish(t.Context(), Orders, Message{ID: "a"})
	require.ErrorIs(t, err, ErrNotSent)
	require.ErrorContains(t, err, "password not allowed")
	require.NotContains(t, err.Error(), "geheim")
}

// testUnrouted mixes messages that have a queue with others that have none: each
// caller must be told of his own.
func testUnrouted(t *testing.T) {
	address := servicetest.SharedRabbitMQ(t).VHost(t)
	b := open(t, address)
	p := publisher(t, b, Options{})
	send(t, p, Orders, "a")
	onChannel(t, address, func(ch *amqp.Channel) {
		require.NoError(t, ch.QueueUnbind(ordersQueue, string(Orders), exchange, nil))
	})
	const callers, each = 32, 40
	var wg sync.WaitGroup
	outcomes := map[Target]chan error{Orders: make(chan error, callers*each), Dead: make(chan error, callers*each)}
	for range callers {
		wg.Go(func() {
			for i := range each {
				for to, outcome := range outcomes {
					outcome <- p.Publish(t.Context(), to, Message{ID: strconv.Itoa(i)})
				}
			}
		})
	}
	wg.Wait()
	for range callers * each {
		require.NoError(t, <-outcomes[Dead])
		require.ErrorIs(t, <-outcomes[Orders], ErrUnrouted)
	}
	holds(t, b, 1, callers*each)
}

func testFull(t *testing.T) {
	r := servicetest.SharedRabbitMQ(t)
	address, vhost, err := r.NewVHost(t.Context())
	require.NoError(t, err)
	_, err = r.Ctl(t.Context(), "set_policy", "-p", vhost, "--apply-to", "queues", "short", `^seckill\.orders$`, `{"max-length":5}`)
	require.NoError(t, err)
	b := open(t, address)
	p := publisher(t, b, Options{})
	confirmed := map[string]bool{}
	for i := 0; ; i++ {
		require.Less(t, i, 1000, "the queue never got full")
		id := strconv.Itoa(i)
		if err = p.Publish(t.Context(), Orders, Message{ID: id}); err != nil {
			break
		}
		confirmed[id] = true
	}
	require.ErrorIs(t, err, ErrUnknown)
	require.GreaterOrEqual(t, len(confirmed), 5)
	require.NoError(t, p.Ready(), "a full queue is no broken connection")

	// The oldest were kept, and there is room again.
	out, _ := consume(t, b, Options{})
	for len(confirmed) > 0 {
		d := next(t, out)
		delete(confirmed, d.Message().ID)
		require.NoError(t, d.Ack())
	}
	servicetest.Eventually(t, func() bool { return p.Publish(t.Context(), Orders, Message{}) == nil })
}

// testQueueDeleted: an operator's mistake is mended by the next session.
func testQueueDeleted(t *testing.T) {
	address := servicetest.SharedRabbitMQ(t).VHost(t)
	b := open(t, address)
	var log lines
	p := publisher(t, b, Options{})
	send(t, p, Orders, "a")
	out, _ := consume(t, b, Options{Log: slog.New(slog.NewTextHandler(&log, nil))})
	require.NoError(t, next(t, out).Ack())
	onChannel(t, address, func(ch *amqp.Channel) {
		_, err := ch.QueueDelete(ordersQueue, false, false, false)
		require.NoError(t, err)
	})
	servicetest.Eventually(t, func() bool { return p.Publish(t.Context(), Orders, Message{ID: "b"}) == nil })
	d := next(t, out)
	require.Equal(t, "b", d.Message().ID)
	require.NoError(t, d.Ack())
	require.Equal(t, []string{"queue connected", "queue not available, trying again for ever", "queue connected"}, log.messages())
}

func onChannel(t *testing.T, address string, do func(*amqp.Channel)) {
	t.Helper()
	conn, err := amqp.Dial(address)
	require.NoError(t, err)
	ch, err := conn.Channel()
	require.NoError(t, err)
	do(ch)
	require.NoError(t, conn.Close())
}

// lines keeps what is logged.
type lines struct {
	mu   sync.Mutex
	text []string
}

func (l *lines) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.text = append(l.text, string(b))
	return len(b), nil
}

func (l *lines) messages() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	var messages []string
	for _, line := range l.text {
		_, rest, _ := strings.Cut(line, `msg="`)
		message, _, _ := strings.Cut(rest, `"`)
		messages = append(messages, message)
	}
	return messages
}
