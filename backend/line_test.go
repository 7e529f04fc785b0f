package backend_test

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/seckill-edge/seckill/backend"
	"github.com/seckill-edge/seckill/internal/queue"
)

// line forwards TCP connections to a server until it is cut. To the one behind
// it, a line that is cut is a server that has crashed.
type line struct {
	listener net.Listener
	to       string
	running  sync.WaitGroup

	mu    sync.Mutex
	down  bool
	conns map[net.Conn]struct{}
}

func newLine(t testing.TB, to string) *line {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	l := &line{listener: listener, to: to, conns: map[net.Conn]struct{}{}}
	l.running.Go(l.accept)
	t.Cleanup(func() {
		require.NoError(t, listener.Close())
		l.cut()
		l.running.Wait()
	})
	return l
}

func (l *line) addr() string { return l.listener.Addr().String() }

func (l *line) accept() {
	for {
		client, err := l.listener.Accept()
		if err != nil {
			return
		}
		server, err := net.Dial("tcp", l.to)
		if err != nil || !l.keep(client, server) {
			client.Close()
			if server != nil {
				server.Close()
			}
			continue
		}
		l.running.Go(func() { pipe(client, server) })
		l.running.Go(func() { pipe(server, client) })
	}
}

func pipe(to, from net.Conn) {
	_, _ = io.Copy(to, from)
	to.Close()
	from.Close()
}

func (l *line) keep(conns ...net.Conn) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, c := range conns {
		l.conns[c] = struct{}{}
	}
	return !l.down
}

func (l *line) cut() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.down = true
	for c := range l.conns {
		c.Close()
	}
	clear(l.conns)
}

func (l *line) mend() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.down = false
}

// witness is a broker that remembers what its publishers sent where.
type witness struct {
	queue.Broker
	mu   sync.Mutex
	sent map[queue.Target][]queue.Message
	// mistake, if not nil, is run before a dead letter is sent.
	mistake func()
}

func (w *witness) Publisher(o queue.Options) queue.Publisher {
	return &witnessed{w.Broker.Publisher(o), w}
}

func (w *witness) saw(to queue.Target) []queue.Message {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.sent[to]
}

type witnessed struct {
	queue.Publisher
	by *witness
}

func (p *witnessed) Publish(ctx context.Context, to queue.Target, m queue.Message) error {
	if to == queue.Dead && p.by.mistake != nil {
		p.by.mistake()
	}
	err := p.Publisher.Publish(ctx, to, m)
	if err != nil {
		return err
	}
	p.by.mu.Lock()
	defer p.by.mu.Unlock()
	if p.by.sent == nil {
		p.by.sent = map[queue.Target][]queue.Message{}
	}
	p.by.sent[to] = append(p.by.sent[to], m)
	return nil
}

func get(t testing.TB, b *backend.Backend, path string) *httptest.ResponseRecorder {
	r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "http://127.0.0.1"+path, nil)
	out := httptest.NewRecorder()
	b.Handler().ServeHTTP(out, r)
	return out
}
