package backend_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/seckill-edge/seckill/internal/order"
	"github.com/seckill-edge/seckill/internal/queue"
	"github.com/seckill-edge/seckill/internal/servicetest"
)

// Messages of others, as large and odd as the broker takes them, end as dead
// letters, and the good orders in and behind them are stored.
func TestForeignMessages(t *testing.T) {
	t.Parallel()
	long := func(n int) string { return strings.Repeat("x", n) }
	many := map[string]string{long(255): "v"}
	for i := range 800 {
		many[fmt.Sprintf("header %d %s", i, long(90))] = "v"
	}
	for _, tc := range []struct {
		name    string
		message queue.Message // its body has a good order before it
		letters int
	}{
		{"long id", queue.Message{ID: long(255), Body: []byte("\nbad\nentries")}, 2},
		{"large header", queue.Message{ID: long(255), Body: []byte("\nbad"), Headers: map[string]string{"a": long(120_000)}}, 1},
		{"many headers", queue.Message{ID: "many", Body: []byte("\nbad"), Headers: many}, 1},
		{"large entry", queue.Message{ID: "large", Body: []byte("\n" + long(3<<20))}, 1},
		{"bytes", queue.Message{ID: "\xff\x00\n" + long(250), Body: []byte("\n\xff\xfe\x00"), Headers: map[string]string{"\xff": "\xfe\x00"}}, 1},
		{"tried too often", queue.Message{ID: "tried", Body: []byte("\nbad"), Headers: map[string]string{queue.HeaderAttempt: "-9999999999999999999"}}, 1},
	} {
		t.Run(tc.name, func(t *testing.T) {
			onEach(t, func(t *testing.T, w *world) {
				a := w.sale(10, 0)
				w.backend()
				orders := w.reserve(2)
				m := tc.message
				m.Body = append(order.AppendMessage(nil, orders[:1]), m.Body...)
				w.send(m)
				w.publish(orders)
				w.settled(2)
				servicetest.Eventually(t, func() bool { return len(w.broker.saw(queue.Dead)) == tc.letters && w.drained() })
				require.Equal(t, int64(2), w.stored(a))
				for _, letter := range w.broker.saw(queue.Dead) {
					require.NotEmpty(t, letter.Headers[queue.HeaderReason])
					require.LessOrEqual(t, len(letter.ID), queue.MaxNameBytes)
				}
			})
		})
	}
}

// An order that the database refuses is tried a few times, whatever a foreign
// message says of the tries before.
func TestForeignAttempts(t *testing.T) {
	t.Parallel()
	for _, before := range []string{"-1000000", "many", "99999999999999999999"} {
		t.Run(before, func(t *testing.T) {
			onEach(t, func(t *testing.T, w *world) {
				w.sale(10, 0)
				_, err := w.raw.ExecContext(t.Context(), w.curse)
				require.NoError(t, err)
				w.backend()
				cursed := w.reserve(1)[0]
				cursed.UserID = "cursed"
				w.send(queue.Message{ID: "m", Body: order.AppendMessage(nil, []order.Order{cursed}), Headers: map[string]string{
					queue.HeaderAttempt: before, "a": strings.Repeat("x", 120_000),
				}})
				servicetest.Eventually(t, func() bool {
					retried, dead := w.broker.saw(queue.Retry), w.broker.saw(queue.Dead)
					return len(dead) == 1 || len(retried) == 1 && retried[0].Headers[queue.HeaderAttempt] == "1"
				})
			})
		})
	}
}
