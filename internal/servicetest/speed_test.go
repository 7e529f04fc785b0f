package servicetest

import (
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// mutter is a test that can fail without ending the one that looks at it.
type mutter struct {
	testing.TB
	said string
}

func (*mutter) Helper() {}

func (m *mutter) Fatal(args ...any) {
	m.said = fmt.Sprint(args...)
	panic(m)
}

func TestSpeed(t *testing.T) {
	require.GreaterOrEqual(t, Slow(), 1.0, "a fast machine stays strict")
	first := Slow()
	require.InDelta(t, first, Slow(), 0, "one factor for the whole process")
	require.GreaterOrEqual(t, Scaled(time.Second), time.Second)
	require.Equal(t, Scaled(2*time.Minute), Patience())
}

func TestLate(t *testing.T) {
	for err, late := range map[error]bool{
		fmt.Errorf("asking: %w", context.DeadlineExceeded):                              true,
		fmt.Errorf("asking: %w", &net.OpError{Op: "read", Err: os.ErrDeadlineExceeded}): true,
		context.Canceled: false,
		io.EOF:           false,
		nil:              false,
	} {
		require.Equal(t, late, Late(err), "%v", err)
	}
}

func TestEventually(t *testing.T) {
	t.Run("asks until it is so, in the test's goroutine", func(t *testing.T) {
		var looks int // the race detector would see another goroutine
		Eventually(t, func() bool { looks++; return looks == 3 })
		require.Equal(t, 3, looks)
	})
	t.Run("gives up, saying what was waited for", func(t *testing.T) {
		m := &mutter{TB: t}
		require.Panics(t, func() { eventually(m, 0, func() bool { return false }, []any{"unit %d", 7}) })
		require.Equal(t, "not so within 0s: unit 7", m.said)
		require.Panics(t, func() { receive(m, 0, make(chan int), nil) })
		require.Equal(t, "nothing came within 0s", m.said)
	})
	t.Run("receives a value or the end", func(t *testing.T) {
		c := make(chan int, 1)
		c <- 7
		require.Equal(t, 7, Receive(t, c))
		close(c)
		require.Zero(t, Receive(t, c))
	})
}
