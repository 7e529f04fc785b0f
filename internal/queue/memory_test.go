package queue

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

func TestMemoryBounds(t *testing.T) {
	cases := map[string]struct {
		limits memoryLimits
		to     Target
		first  Message
		fits   bool // a second one
	}{
		"messages":       {memoryLimits{messages: 1, bytes: 99}, Orders, Message{ID: "a"}, false},
		"two messages":   {memoryLimits{messages: 2, bytes: 99}, Orders, Message{ID: "a"}, true},
		"bytes":          {memoryLimits{messages: 9, bytes: 9}, Orders, Message{Body: make([]byte, 9)}, false},
		"bytes of all":   {memoryLimits{messages: 9, bytes: 9}, Orders, Message{ID: "123", Body: []byte("456"), Headers: map[string]string{"7": "89"}}, false},
		"delayed":        {memoryLimits{messages: 1, bytes: 99}, Retry, Message{ID: "a"}, false},
		"dead":           {memoryLimits{deadMessages: 1, deadBytes: 9}, Dead, Message{ID: "a"}, false},
		"bytes of dead":  {memoryLimits{deadMessages: 9, deadBytes: 1}, Dead, Message{ID: "a"}, false},
		"dead lie apart": {memoryLimits{messages: 1, bytes: 99, deadMessages: 2, deadBytes: 9}, Dead, Message{ID: "a"}, true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			p := newMemory(tc.limits).Publisher(Options{})
			require.NoError(t, p.Publish(t.Context(), tc.to, tc.first))
			err := p.Publish(t.Context(), tc.to, Message{ID: "b"})
			if tc.fits {
				require.NoError(t, err)
				return
			}
			require.ErrorIs(t, err, ErrFull)
			require.ErrorIs(t, err, ErrNotSent)
		})
	}
}

func TestMemoryHasRoomAfterAck(t *testing.T) {
	b := newMemory(memoryLimits{messages: 1, bytes: 9})
	p := publisher(t, b, Options{})
	require.NoError(t, p.Publish(t.Context(), Orders, Message{}))
	out, _ := consume(t, b, Options{})
	d := next(t, out)
	require.ErrorIs(t, p.Publish(t.Context(), Orders, Message{}), ErrFull, "delivered counts until acknowledged")
	require.NoError(t, d.Requeue())
	d = next(t, out)
	require.ErrorIs(t, p.Publish(t.Context(), Orders, Message{}), ErrFull)
	require.NoError(t, d.Ack())
	require.NoError(t, p.Publish(t.Context(), Orders, Message{}))
}

func TestMemoryIsSharedByName(t *testing.T) {
	a, again, other := open(t, memoryOf(t)), open(t, memoryOf(t)), open(t, memoryOf(t)+"-other")
	send(t, publisher(t, a, Options{}), Orders, "a")
	require.NoError(t, a.Close())
	holds(t, again, 1, 0)
	holds(t, other, 0, 0)
}

func TestMemoryRetriesOnTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newMemory(defaultMemoryLimits)
		p := b.Publisher(Options{})
		out := make(chan Delivery, 4)
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() { ended <- b.Consumer(Options{}).Consume(ctx, out) }()

		started := time.Now()
		send(t, p, Retry, "first")
		time.Sleep(time.Second) // of the test's own clock
		send(t, p, Retry, "second")
		require.Equal(t, "first", (<-out).Message().ID)
		require.Equal(t, RetryDelay, time.Since(started))
		require.Equal(t, "second", (<-out).Message().ID)
		require.Equal(t, RetryDelay+time.Second, time.Since(started))
		cancel()
		require.NoError(t, <-ended)
	})
}
