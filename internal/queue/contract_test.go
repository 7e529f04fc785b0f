package queue

import (
	"context"
	"fmt"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/seckill-edge/seckill/internal/servicetest"
)

// soon bounds every wait for what must happen.
var soon = servicetest.Patience()

// contract is what every broker does.
var contract = map[string]func(*testing.T, Broker){
	"delivers what it confirmed":      testDelivers,
	"keeps nothing of the caller's":   testCallerReuses,
	"redelivers what is given back":   testRequeue,
	"redelivers what a session left":  testSessionEnd,
	"bounds what is unacknowledged":   testPrefetch,
	"keeps dead letters apart":        testDead,
	"judges dead letters":             testJudge,
	"delays a retry":                  testRetry,
	"says no after Close":             testClosed,
	"closes only after the last call": testCloseWaits,
	"refuses a target it has not":     testNoTarget,
	"stops while nobody takes":        testBlockedOut,
	"refuses what cannot be carried":  testUnfit,
	"ends with the caller's context":  testEndedContext,
}

func TestContract(t *testing.T) {
	brokers := map[string]func(*testing.T) string{
		"memory": memoryOf,
	}
	if !testing.Short() {
		brokers["rabbitmq"] = func(t *testing.T) string { return servicetest.SharedRabbitMQ(t).VHost(t) }
	}
	for broker, address := range brokers {
		for name, run := range contract {
			t.Run(broker+"/"+name, func(t *testing.T) {
				t.Parallel()
				run(t, open(t, address(t)))
			})
		}
	}
}

// memoryOf names a broker that no other run of the test has used.
func memoryOf(t *testing.T) string { return fmt.Sprintf("memory:%s-%p", t.Name(), t) }

func open(t *testing.T, address string) Broker {
	t.Helper()
	b, err := Open(address)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, b.Close()) })
	return b
}

func publisher(t *testing.T, b Broker, o Options) Publisher {
	t.Helper()
	p := b.Publisher(o)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), soon)
		defer cancel()
		require.NoError(t, p.Close(ctx))
	})
	return p
}

// consume runs a consumer until the test ends or stop is called.
func consume(t *testing.T, b Broker, o Options) (out chan Delivery, stop func()) {
	t.Helper()
	out = make(chan Delivery, o.withDefaults().Prefetch)
	return out, consumeInto(t, b.Consumer(o), out)
}

func consumeInto(t *testing.T, c Consumer, out chan Delivery) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- c.Consume(ctx, out) }()
	stop = sync.OnceFunc(func() {
		cancel()
		require.NoError(t, <-ended)
		require.Error(t, c.Ready())
	})
	t.Cleanup(stop)
	servicetest.Eventually(t, func() bool { return c.Ready() == nil })
	return stop
}

func next(t *testing.T, out <-chan Delivery) Delivery {
	t.Helper()
	return servicetest.Receive(t, out, "nothing was delivered")
}

func send(t *testing.T, p Publisher, to Target, ids ...string) {
	t.Helper()
	for _, id := range ids {
		require.NoError(t, p.Publish(t.Context(), to, Message{ID: id, Body: []byte("body of " + id)}))
	}
}

// holds waits until the broker holds so many messages.
func holds(t *testing.T, b Broker, waiting, dead int) {
	t.Helper()
	servicetest.Eventually(t, func() bool {
		w, d, err := b.Depth(t.Context())
		return err == nil && w == waiting && d == dead
	}, "%d wait, %d are dead", waiting, dead)
}

func testDelivers(t *testing.T, b Broker) {
	const callers, each = 16, 50
	p := publisher(t, b, Options{})
	out, _ := consume(t, b, Options{})
	var wg sync.WaitGroup
	failures := make(chan error, callers*each)
	for caller := range callers {
		wg.Go(func() {
			for i := range each {
				id := fmt.Sprintf("%d-%d", caller, i)
				failures <- p.Publish(t.Context(), Orders, Message{
					ID: id, Body: []byte("body of " + id), Headers: map[string]string{HeaderAttempt: id},
				})
			}
		})
	}
	wg.Wait()
	for range callers * each {
		require.NoError(t, <-failures)
	}
	seen := map[string]bool{}
	for len(seen) < callers*each {
		d := next(t, out)
		m := d.Message()
		require.False(t, d.Redelivered())
		require.Equal(t, "body of "+m.ID, string(m.Body))
		require.Equal(t, m.ID, m.Headers[HeaderAttempt])
		seen[m.ID] = true
		require.NoError(t, d.Ack())
	}
	holds(t, b, 0, 0)
}

func testCallerReuses(t *testing.T, b Broker) {
	p := publisher(t, b, Options{})
	m := Message{ID: "a", Body: []byte("first"), Headers: map[string]string{"k": "first"}}
	require.NoError(t, p.Publish(t.Context(), Orders, m))
	copy(m.Body, "other")
	m.Headers["k"] = "other"
	out, _ := consume(t, b, Options{})
	d := next(t, out)
	require.Equal(t, "first", string(d.Message().Body))
	require.Equal(t, "first", d.Message().Headers["k"])
	require.NoError(t, d.Ack())
	require.ErrorIs(t, d.Ack(), ErrStale, "a second time")
}

func testRequeue(t *testing.T, b Broker) {
	send(t, publisher(t, b, Options{}), Orders, "a")
	out, _ := consume(t, b, Options{})
	for i := range 3 {
		d := next(t, out)
		require.Equal(t, "a", d.Message().ID)
		require.Equal(t, i > 0, d.Redelivered())
		require.NoError(t, d.Requeue())
	}
	require.NoError(t, next(t, out).Ack())
	holds(t, b, 0, 0)
}

func testSessionEnd(t *testing.T, b Broker) {
	send(t, publisher(t, b, Options{}), Orders, "a", "b", "c")
	out, stop := consume(t, b, Options{})
	first, second, third := next(t, out), next(t, out), next(t, out)
	require.NoError(t, second.Ack())
	holds(t, b, 0, 0) // delivered ones are not waiting
	stop()
	require.ErrorIs(t, first.Ack(), ErrStale)
	require.ErrorIs(t, third.Requeue(), ErrStale)
	holds(t, b, 2, 0)

	again, _ := consume(t, b, Options{})
	for _, id := range []string{"a", "c"} {
		d := next(t, again)
		require.Equal(t, id, d.Message().ID)
		require.True(t, d.Redelivered())
		require.NoError(t, d.Ack())
	}
	require.ErrorIs(t, first.Ack(), ErrStale)
	holds(t, b, 0, 0)
}

func testPrefetch(t *testing.T, b Broker) {
	p := publisher(t, b, Options{})
	for i := range 10 {
		send(t, p, Orders, strconv.Itoa(i))
	}
	out := make(chan Delivery, 10)
	consumeInto(t, b.Consumer(Options{Prefetch: 3}), out)
	holds(t, b, 7, 0)
	servicetest.Eventually(t, func() bool { return len(out) == 3 })
	require.NoError(t, (<-out).Ack())
	holds(t, b, 6, 0)
	servicetest.Eventually(t, func() bool { return len(out) == 3 })
}

func testDead(t *testing.T, b Broker) {
	p := publisher(t, b, Options{})
	send(t, p, Dead, "wrong", "wrong too")
	send(t, p, Orders, "right")
	out, _ := consume(t, b, Options{})
	d := next(t, out)
	require.Equal(t, "right", d.Message().ID)
	require.NoError(t, d.Ack())
	holds(t, b, 0, 2)
}

func testJudge(t *testing.T, b Broker) {
	p := publisher(t, b, Options{})
	for _, id := range []string{"keep", "replay", "drop", "later"} {
		require.NoError(t, p.Publish(t.Context(), Dead, Message{ID: id, Body: []byte(id), Headers: map[string]string{
			HeaderAttempt: "3", HeaderReason: "unreadable", "traceparent": "kept",
		}}))
	}
	var shown []string
	judged, err := b.Judge(t.Context(), 3, func(m Message) Verdict {
		shown = append(shown, m.ID)
		require.Equal(t, "unreadable", m.Headers[HeaderReason])
		return map[string]Verdict{"replay": Replay, "drop": Drop}[m.ID]
	})
	require.NoError(t, err)
	require.Equal(t, 3, judged)
	require.Equal(t, []string{"keep", "replay", "drop"}, shown)
	holds(t, b, 1, 2)
	out, _ := consume(t, b, Options{})
	d := next(t, out)
	require.Equal(t, Message{ID: "replay", Body: []byte("replay"), Headers: map[string]string{"traceparent": "kept"}}, d.Message())
	require.NoError(t, d.Ack())

	shown = nil
	judged, err = b.Judge(t.Context(), 9, func(m Message) Verdict {
		shown = append(shown, m.ID)
		return Drop
	})
	require.NoError(t, err)
	require.Equal(t, 2, judged)
	require.ElementsMatch(t, []string{"keep", "later"}, shown)
	holds(t, b, 0, 0)
}

func testRetry(t *testing.T, b Broker) {
	started := time.Now()
	send(t, publisher(t, b, Options{}), Retry, "a")
	holds(t, b, 1, 0)
	out, _ := consume(t, b, Options{})
	d := next(t, out)
	require.GreaterOrEqual(t, time.Since(started), RetryDelay)
	require.Equal(t, "a", d.Message().ID)
	require.NoError(t, d.Ack())
	holds(t, b, 0, 0)
}
