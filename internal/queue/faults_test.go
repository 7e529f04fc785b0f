package queue

import (
	"context"
	"errors"
	"log/slog"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/seckill-edge/seckill/internal/servicetest"
)

// tick is how often a test looks whether what must happen has.
const tick = 10 * time.Millisecond

// brief is a confirm time-out that a test can wait for.
var brief = servicetest.Scaled(time.Second)

// faults are done to one broker of its own, one after another.
var faults = []struct {
	name string
	run  func(*testing.T, *servicetest.RabbitMQ)
}{
	{"comes later", testBrokerLater},
	{"killed in the middle", testBrokerKilled},
	{"frozen", testBrokerFrozen},
	{"short of memory", testBrokerAlarm},
}

func TestFaults(t *testing.T) {
	if !testing.Short() {
		r := servicetest.RabbitMQForTest(t)
		for _, f := range faults {
			t.Run(f.name, func(t *testing.T) { f.run(t, r) })
		}
	}
}

func testBrokerLater(t *testing.T, r *servicetest.RabbitMQ) {
	address := r.VHost(t)
	require.NoError(t, r.Kill())
	b := open(t, address)
	var log lines
	o := Options{Log: slog.New(slog.NewTextHandler(&log, nil))}
	p := publisher(t, b, o)
	require.ErrorIs(t, p.Publish(t.Context(), Orders, Message{ID: "early"}), ErrNotSent)
	require.Error(t, p.Ready())
	out := make(chan Delivery, 1)
	c := b.Consumer(Options{})
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- c.Consume(ctx, out) }()
	require.Error(t, c.Ready())

	require.NoError(t, r.Restart(t.Context()))
	servicetest.Eventually(t, func() bool { return p.Ready() == nil && c.Ready() == nil })
	send(t, p, Orders, "a")
	d := next(t, out)
	require.Equal(t, "a", d.Message().ID)
	require.NoError(t, d.Ack())
	cancel()
	require.NoError(t, <-ended)
	require.Equal(t, []string{"queue not available, trying again for ever", "queue connected"}, log.messages())
}

// testBrokerKilled: what was confirmed before, during and after a power cut is
// delivered.
func testBrokerKilled(t *testing.T, r *servicetest.RabbitMQ) {
	const callers, enough = 16, 400
	b := open(t, r.VHost(t))
	p := publisher(t, b, Options{})
	out, _ := consume(t, b, Options{})

	done := make(chan struct{})
	confirmed := make(chan string, 100)
	var wg sync.WaitGroup
	for caller := range callers {
		wg.Go(func() { publishUntil(t, done, p, strconv.Itoa(caller)+"-", confirmed) })
	}
	owed, seen := map[string]bool{}, map[string]bool{}
	killed, restarted := false, make(chan error, 1)
	deadline := time.After(soon)
	for after := 0; after < enough || len(owed) > 0; {
		select {
		case id := <-confirmed:
			if !seen[id] {
				owed[id] = true
			}
			switch {
			case len(seen) > enough && !killed:
				killed = true
				require.NoError(t, r.Kill())
				go func() { restarted <- r.Restart(context.WithoutCancel(t.Context())) }()
			case killed && p.Ready() == nil && len(restarted) > 0:
				if after++; after == enough {
					close(done)
				}
			}
		case d := <-out:
			seen[d.Message().ID] = true
			delete(owed, d.Message().ID)
			if err := d.Ack(); err != nil {
				require.ErrorIs(t, err, ErrStale)
			}
		case <-deadline:
			require.FailNow(t, "confirmed, but not delivered", "%d: %v", len(owed), owed)
		}
	}
	require.NoError(t, <-restarted)
	drainWhile(&wg, confirmed, out)
}

func publishUntil(t *testing.T, done <-chan struct{}, p Publisher, prefix string, confirmed chan<- string) {
	for i := 0; ; i++ {
		select {
		case <-done:
			return
		default:
		}
		id := prefix + strconv.Itoa(i)
		err := p.Publish(context.WithoutCancel(t.Context()), Orders, Message{ID: id, Body: make([]byte, 200)})
		switch {
		case err == nil:
			confirmed <- id
		case errors.Is(err, ErrNotSent):
			awaitReadyAgain(done, p)
		case !errors.Is(err, ErrUnknown):
			t.Errorf("unexpected: %v", err)
			return
		}
	}
}

// awaitReadyAgain polls, as an edge would.
func awaitReadyAgain(done <-chan struct{}, p Publisher) {
	ticker := time.NewTicker(tick)
	defer ticker.Stop()
	for p.Ready() != nil {
		select {
		case <-done:
			return
		case <-ticker.C:
		}
	}
}

// drainWhile lets the last callers end.
func drainWhile(wg *sync.WaitGroup, confirmed <-chan string, out <-chan Delivery) {
	ended := make(chan struct{})
	go func() { wg.Wait(); close(ended) }()
	for {
		select {
		case <-ended:
			return
		case <-confirmed:
		case d := <-out:
			_ = d.Ack() // what comes now was judged already
		}
	}
}

// testBrokerFrozen: connections stay open, nothing answers, and the socket gets
// full. Every call ends before the broker goes on.
func testBrokerFrozen(t *testing.T, r *servicetest.RabbitMQ) {
	b := open(t, r.VHost(t))
	p := b.Publisher(Options{ConfirmTimeout: brief})
	send(t, p, Orders, "a")
	out, stop := consume(t, b, Options{})
	d := next(t, out)
	require.NoError(t, r.Pause())
	t.Cleanup(func() { require.NoError(t, r.Resume()) })

	const callers, big = 64, 1 << 20
	outcomes := make(chan error, callers)
	for range callers {
		go func() { outcomes <- p.Publish(t.Context(), Orders, Message{ID: "big", Body: make([]byte, big)}) }()
	}
	for range callers {
		err := <-outcomes
		require.True(t, errors.Is(err, ErrUnknown) || errors.Is(err, ErrNotSent), "%v", err)
	}

	ctx, cancel := context.WithTimeout(t.Context(), brief)
	defer cancel()
	_, _, err := b.Depth(ctx)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	_ = d.Ack() // told to nobody; what matters is that it returns
	stop()
	require.ErrorIs(t, d.Requeue(), ErrStale)
	require.NoError(t, p.Close(t.Context()))
}

func testBrokerAlarm(t *testing.T, r *servicetest.RabbitMQ) {
	b := open(t, r.VHost(t))
	p := publisher(t, b, Options{ConfirmTimeout: brief})
	send(t, p, Orders, "a")
	_, err := r.Ctl(t.Context(), "set_vm_memory_high_watermark", "0.0001")
	require.NoError(t, err)
	// The broker says so only to who publishes. What was on its way is unknown.
	servicetest.Eventually(t, func() bool { return CauseOf(Probe(t.Context(), p)) == Blocked })
	require.ErrorIs(t, p.Publish(t.Context(), Orders, Message{ID: "c"}), ErrNotSent, "at once: who waits for the confirm does not know")
	require.ErrorContains(t, p.Ready(), "takes no messages now")

	_, err = r.Ctl(t.Context(), "set_vm_memory_high_watermark", "0.6")
	require.NoError(t, err)
	servicetest.Eventually(t, func() bool { return p.Ready() == nil })
	send(t, p, Orders, "d")
}
