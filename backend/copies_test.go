package backend_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/seckill-edge/seckill/internal/order"
	"github.com/seckill-edge/seckill/internal/queue"
	"github.com/seckill-edge/seckill/internal/servicetest"
	"github.com/seckill-edge/seckill/lua"
)

// entry is a line of a message.
func entry(o order.Order, quantity, claim int) string {
	return fmt.Sprintf("%s\t%s\t%d\t%d\t%d", o.ID, o.UserID, quantity, claim, o.ReservedAt.UnixMilli())
}

func (w *world) sendEntries(id string, o order.Order, lines ...string) {
	body := "seckill/1\t" + o.ProductID + "\t" + o.ActivityID
	for _, line := range lines {
		body += "\n" + line
	}
	w.send(queue.Message{ID: id, Body: []byte(body)})
}

// Copies of one order that say different things are one order, in whatever sequence
// and company they come: what the first is stored as stays, and no unit moves twice.
func TestCopiesOfOneOrderThatDiffer(t *testing.T) {
	t.Parallel()
	const good, larger, bad = "good", "larger", "bad"
	for _, tc := range []struct {
		name     string
		messages [][]string
		want     lua.Mark
	}{
		{"larger later", [][]string{{good}, {larger}, {good}}, lua.MarkSettled},
		{"larger in the same message", [][]string{{good, larger}}, lua.MarkSettled},
		{"bad later", [][]string{{good}, {bad}, {good}}, lua.MarkSettled},
		{"bad in the same message", [][]string{{bad, good}}, lua.MarkSettled},
		{"bad first", [][]string{{bad}, {good}, {larger}}, lua.MarkSettled},
	} {
		t.Run(tc.name, func(t *testing.T) {
			onEach(t, func(t *testing.T, w *world) {
				a := w.sale(10, 0)
				w.backend()
				o, last := w.reserve(1)[0], w.reserve(1)[0]
				require.NoError(t, lua.Confirm(t.Context(), w.redis, w.product, []string{o.ID, last.ID}))
				lines := map[string]string{good: entry(o, 1, 1), larger: entry(o, 2, 1), bad: entry(o, 1, 0)}
				dead, stored := 0, int64(0) // a bad entry decides nothing about the order
				for i, message := range tc.messages {
					var parts []string
					for _, kind := range message {
						parts = append(parts, lines[kind])
						if kind == bad {
							dead++
						} else {
							stored = 1
						}
					}
					w.sendEntries(fmt.Sprint("m", i), o, parts...)
					servicetest.Eventually(t, func() bool { // one batch after the other
						return w.drained() && len(w.broker.saw(queue.Dead)) == dead && w.stored(a) >= stored
					})
				}
				w.publish([]order.Order{last})
				mark := func(o order.Order) lua.Mark {
					record, err := lua.RecordOf(t.Context(), w.redis, w.product, o.UserID)
					require.NoError(t, err)
					require.Len(t, record, 1)
					return record[0].Mark
				}
				servicetest.Eventually(t, func() bool { return mark(last) == lua.MarkSettled && mark(o) == tc.want })
				audit, err := w.service().Audit(t.Context(), w.product)
				require.NoError(t, err)
				require.Zero(t, audit.Drift, "%+v", audit)
				require.Zero(t, audit.Frozen)
				require.Equal(t, int64(2), w.stored(a))
			})
		})
	}
}

// An order under the id of another buyer's moves no unit of either.
func TestForeignID(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, w *world) {
		a := w.sale(10, 0)
		w.backend()
		first := w.reserve(1)
		w.publish(first)
		w.settled(1)
		second := w.reserve(1)
		thief := second[0]
		thief.ID = first[0].ID
		w.sendEntries("thief", thief, entry(thief, 1, 1), entry(thief, 1, 0))
		servicetest.Eventually(t, func() bool { return w.drained() && len(w.broker.saw(queue.Dead)) == 1 })
		w.publish(second)
		w.settled(2)
		require.Equal(t, int64(2), w.stored(a))
	})
}
