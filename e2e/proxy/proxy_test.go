package proxy

import (
	"bufio"
	"io"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/seckill-edge/seckill/internal/servicetest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// echo answers each line with name and the line.
func echo(t *testing.T, name string) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				for lines := bufio.NewScanner(c); lines.Scan(); {
					_, _ = io.WriteString(c, name+" "+lines.Text()+"\n")
				}
			}()
		}
	}()
	t.Cleanup(func() { require.NoError(t, l.Close()); <-done })
	return l.Addr().String()
}

func proxyTo(t *testing.T, target string) *Proxy {
	t.Helper()
	p, err := New(target)
	require.NoError(t, err)
	t.Cleanup(p.Close)
	return p
}

// client is a connection that is asked line by line.
type client struct {
	net.Conn
	*bufio.Reader
}

func dial(t *testing.T, p *Proxy) client {
	t.Helper()
	c, err := net.Dial("tcp", p.Addr())
	require.NoError(t, err)
	t.Cleanup(func() { _ = c.Close() })
	return client{c, bufio.NewReader(c)}
}

// ask sends a line and waits for the answer, at most within.
func (c client) ask(line string, within time.Duration) (string, error) {
	_ = c.SetDeadline(time.Now().Add(within))
	if _, err := io.WriteString(c.Conn, line+"\n"); err != nil {
		return "", err
	}
	return c.ReadString('\n')
}

func TestItPassesOn(t *testing.T) {
	c := dial(t, proxyTo(t, echo(t, "a")))
	for range 3 {
		got, err := c.ask("hi", servicetest.Scaled(time.Second))
		require.NoError(t, err)
		require.Equal(t, "a hi\n", got)
	}
}

func TestCutRefusesAndHealingTakesBack(t *testing.T) {
	p := proxyTo(t, echo(t, "a"))
	c := dial(t, p)
	_, err := c.ask("hi", servicetest.Scaled(time.Second))
	require.NoError(t, err)
	require.NoError(t, p.Set(Mode{Cut: true}))
	_, err = c.ask("hi", servicetest.Scaled(time.Second))
	require.Error(t, err)
	_, err = net.Dial("tcp", p.Addr())
	require.Error(t, err)
	require.NoError(t, p.Set(Mode{}))
	got, err := dial(t, p).ask("again", servicetest.Scaled(time.Second))
	require.NoError(t, err)
	require.Equal(t, "a again\n", got)
}

func TestDelay(t *testing.T) {
	p := proxyTo(t, echo(t, "a"))
	c := dial(t, p)
	require.NoError(t, p.Set(Mode{Up: Way{Delay: 60 * time.Millisecond}, Down: Way{Delay: 60 * time.Millisecond}}))
	begun := time.Now()
	_, err := c.ask("hi", servicetest.Scaled(2*time.Second))
	require.NoError(t, err)
	require.GreaterOrEqual(t, time.Since(begun), 120*time.Millisecond)
}

func TestDeafDirections(t *testing.T) {
	for name, mode := range map[string]Mode{"up": {Up: Way{Deaf: true}}, "down": {Down: Way{Deaf: true}}} {
		t.Run(name, func(t *testing.T) {
			p := proxyTo(t, echo(t, "a"))
			c := dial(t, p)
			require.NoError(t, p.Set(mode))
			_, err := c.ask("hi", 50*time.Millisecond)
			var timeout net.Error
			require.ErrorAs(t, err, &timeout)
			require.True(t, timeout.Timeout())
			require.NoError(t, p.Set(Mode{}))
			_, err = c.ask("hi", servicetest.Scaled(time.Second))
			require.Error(t, err, "a stream that has lost bytes must end")
			_, err = dial(t, p).ask("hi", servicetest.Scaled(time.Second))
			require.NoError(t, err)
		})
	}
}

func TestRetarget(t *testing.T) {
	p := proxyTo(t, echo(t, "a"))
	old := dial(t, p)
	_, err := old.ask("hi", servicetest.Scaled(time.Second))
	require.NoError(t, err)
	p.Retarget(echo(t, "b"))
	_, err = old.ask("hi", servicetest.Scaled(time.Second))
	require.Error(t, err)
	got, err := dial(t, p).ask("hi", servicetest.Scaled(time.Second))
	require.NoError(t, err)
	require.Equal(t, "b hi\n", got)
}
