package queue

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/seckill-edge/seckill/internal/servicetest"
)

func testClosed(t *testing.T, b Broker) {
	used, unused := b.Publisher(Options{}), b.Publisher(Options{})
	send(t, used, Orders, "a")
	for _, p := range []Publisher{used, unused} {
		require.NoError(t, p.Close(t.Context()))
		require.NoError(t, p.Close(t.Context()), "a second time")
		err := p.Publish(t.Context(), Orders, Message{ID: "b"})
		require.ErrorIs(t, err, ErrNotSent)
		require.ErrorIs(t, err, ErrClosed)
		require.ErrorIs(t, p.Ready(), ErrClosed)
	}
	holds(t, b, 1, 0)
}

// testCloseWaits: whatever a call says that Close raced with is true.
func testCloseWaits(t *testing.T, b Broker) {
	const callers = 32
	p := b.Publisher(Options{})
	send(t, p, Orders, "a")
	outcomes := make(chan error, callers)
	for range callers {
		go func() { outcomes <- p.Publish(context.WithoutCancel(t.Context()), Orders, Message{ID: "b"}) }()
	}
	require.NoError(t, p.Close(t.Context()))
	sent := 1
	for range callers {
		err := <-outcomes
		if err == nil {
			sent++
			continue
		}
		require.ErrorIs(t, err, ErrNotSent)
		require.ErrorIs(t, err, ErrClosed)
	}
	holds(t, b, sent, 0)
}

func testNoTarget(t *testing.T, b Broker) {
	p := publisher(t, b, Options{})
	require.ErrorIs(t, p.Publish(t.Context(), "nowhere", Message{ID: "a"}), ErrNotSent)
	holds(t, b, 0, 0)
}

func testBlockedOut(t *testing.T, b Broker) {
	send(t, publisher(t, b, Options{}), Orders, "a", "b")
	out := make(chan Delivery) // nobody takes
	stop := consumeInto(t, b.Consumer(Options{}), out)
	servicetest.Eventually(t, func() bool {
		waiting, _, err := b.Depth(t.Context())
		return err == nil && waiting < 2
	}, "one is in the consumer's hand")
	stop()
	holds(t, b, 2, 0)
}

func testEndedContext(t *testing.T, b Broker) {
	p := publisher(t, b, Options{})
	send(t, p, Orders, "a")
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	err := p.Publish(gone, Orders, Message{ID: "b"})
	require.Error(t, err)
	require.True(t, errors.Is(err, ErrNotSent) || errors.Is(err, ErrUnknown), "%v", err)
	require.NoError(t, b.Consumer(Options{}).Consume(gone, make(chan Delivery)))
}

// testUnfit: what no broker can carry is refused by itself, and harms nothing that
// is sent beside it.
func testUnfit(t *testing.T, b Broker) {
	p := publisher(t, b, Options{})
	long := func(n int) string { return strings.Repeat("x", n) }
	send(t, p, Orders, "first", long(255))
	fits, many := map[string]string{long(255): "v", "long": long(defaultFrame - 1000)}, map[string]string{}
	for i := range 2000 {
		many[fmt.Sprint("header ", i)] = long(64)
	}
	for name, m := range map[string]Message{
		"id":           {ID: long(256)},
		"header name":  {ID: "a", Headers: map[string]string{long(256): "v"}},
		"no name":      {ID: "a", Headers: map[string]string{"": "v"}},
		"header value": {ID: "a", Headers: map[string]string{"a": long(defaultFrame)}},
		"nearly":       {ID: long(200), Headers: map[string]string{"a": long(defaultFrame - 200)}},
		"routing":      {ID: "a", Headers: map[string]string{"CC": "b"}},
		"many headers": {ID: "a", Headers: many},
	} {
		err := p.Publish(t.Context(), Orders, m)
		require.ErrorIs(t, err, ErrUnfit, name)
		require.ErrorIs(t, err, ErrNotSent, name)
		require.NoError(t, p.Ready(), "the session goes on")
	}
	require.NoError(t, p.Publish(t.Context(), Orders, Message{ID: "last", Headers: fits, Body: []byte(long(3 << 20))}))
	holds(t, b, 3, 0)
	out, _ := consume(t, b, Options{})
	next(t, out)
	next(t, out)
	d := next(t, out)
	require.Equal(t, fits, d.Message().Headers)
	require.Len(t, d.Message().Body, 3<<20)
	require.NoError(t, d.Ack())
}
