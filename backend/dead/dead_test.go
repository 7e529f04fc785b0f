package dead_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/seckill-edge/seckill/backend/activities"
	"github.com/seckill-edge/seckill/backend/dead"
	"github.com/seckill-edge/seckill/backend/store"
	"github.com/seckill-edge/seckill/internal/order"
	"github.com/seckill-edge/seckill/internal/queue"
	"github.com/seckill-edge/seckill/internal/servicetest"
	"github.com/seckill-edge/seckill/lua"
)

// replay replays one letter or all and waits until nothing waits any more.
func (w *world) replay(id string, want dead.Done) {
	w.Helper()
	done, err := w.service.Replay(w.Context(), id)
	require.NoError(w, err)
	require.Equal(w, want, done)
}

// The unit of a buried order is sold to another buyer. Its letter, replayed before
// and after that one is stored, sells nothing.
func TestReplaySellsNothingTwice(t *testing.T) {
	onEach(t, func(t *testing.T, w *world) {
		w.sale(1)
		w.exec(w.curse)
		w.backend(true)
		cursed := w.reserve("cursed")
		w.send(queue.Orders, lastTry(message(cursed)))
		w.dead(1)
		w.becomes(cursed, lua.MarkRejected)
		w.row(cursed, order.Rejected, order.ReasonDead)
		require.Equal(t, int64(1), w.snapshot().Available)
		w.exec(w.lift)

		lucky := w.reserve("lucky") // his message is still on its way
		w.replay(cursed.ID, dead.Done{Letters: 1, Orders: 1, Rejected: 1})
		w.dead(0)
		w.send(queue.Orders, message(lucky))
		w.becomes(lucky, lua.MarkSettled)
		w.send(queue.Orders, message(cursed)) // somebody moves a copy by hand
		w.dead(0)
		w.row(lucky, order.Created, "")
		w.row(cursed, order.Rejected, order.ReasonDead)
		require.Equal(t, lua.MarkRejected, w.mark(cursed))
		w.agree(1)
	})
}

// A letter that nobody has noted in SQL, because an older backend has buried it,
// and whose unit was given back.
func TestReplayOfWhatWasGivenBackWithoutARow(t *testing.T) {
	onEach(t, func(t *testing.T, w *world) {
		for name, forget := range map[string]func(o order.Order){
			"given back": func(o order.Order) {
				_, err := lua.Release(t.Context(), w.redis, o.ProductID, lua.MarkRejected, []lua.Move{{UserID: o.UserID, OrderID: o.ID}})
				require.NoError(t, err)
			},
			"forgotten": func(o order.Order) {
				_, err := lua.Release(t.Context(), w.redis, o.ProductID, lua.MarkRejected, []lua.Move{{UserID: o.UserID, OrderID: o.ID}})
				require.NoError(t, err)
				require.NoError(t, w.redis.HDel(t.Context(), lua.KeysOf(o.ProductID).Users, o.UserID).Err())
			},
		} {
			w.sale(1)
			o := w.reserve("early")
			forget(o)
			w.send(queue.Dead, message(o))
			lucky := w.reserve("lucky")
			w.replay(dead.All, dead.Done{Letters: 1, Orders: 1, Rejected: 1})
			stop := w.backend(true)
			w.row(o, order.Rejected, order.ReasonDead)
			w.send(queue.Orders, message(lucky))
			w.becomes(lucky, lua.MarkSettled)
			w.dead(0)
			w.row(o, order.Rejected, order.ReasonDead)
			require.NotEqual(t, lua.MarkQueued, w.mark(o), name)
			w.agree(1)
			stop()
		}
	})
}

// What still holds its unit is stored, once, however often it is replayed.
func TestReplayOfWhatIsStillFrozen(t *testing.T) {
	onEach(t, func(t *testing.T, w *world) {
		w.sale(3)
		o, twice := w.reserve("a"), w.reserve("b")
		w.send(queue.Dead, message(o))
		w.send(queue.Dead, message(twice))
		w.send(queue.Dead, message(twice))
		w.replay(dead.All, dead.Done{Letters: 3, Orders: 3})
		w.backend(true)
		w.becomes(o, lua.MarkSettled)
		w.becomes(twice, lua.MarkSettled)
		w.row(o, order.Created, "")
		w.agree(2)
		w.send(queue.Dead, message(o))
		w.replay(o.ID, dead.Done{Letters: 1, Orders: 1})
		w.dead(0)
		w.agree(2)
	})
}

// A backend dies between burying and acknowledging, or before Redis is told. The
// letter is there twice then, and its unit is given back once.
func TestKilledAfterBurying(t *testing.T) {
	onEach(t, func(t *testing.T, w *world) {
		w.sale(2)
		w.exec(w.curse)
		cursed := w.reserve("cursed")
		stop := w.backend(false)
		w.send(queue.Orders, lastTry(message(cursed)))
		w.row(cursed, order.Rejected, order.ReasonDead)
		w.dead(1)
		stop()
		require.Equal(t, lua.MarkQueued, w.mark(cursed), "Redis was not told")
		require.Equal(t, int64(1), w.snapshot().Frozen)

		w.send(queue.Orders, lastTry(message(cursed))) // not acknowledged: it comes again
		w.backend(true)
		w.dead(2)
		w.becomes(cursed, lua.MarkRejected)
		w.agree(0)
		w.exec(w.lift)
		shown, err := w.service.Show(t.Context(), cursed.ID)
		require.NoError(t, err)
		require.Len(t, shown, 2)
		require.Contains(t, shown[1].Fates[0].IfReplayed(), "stored as rejected")
		w.replay(cursed.ID, dead.Done{Letters: 2, Orders: 2, Rejected: 2})
		w.dead(0)
		w.row(cursed, order.Rejected, order.ReasonDead)
		w.agree(0)
	})
}

// A bad entry takes nothing from the order that it names, stored or not: Redis has it,
// and it is stored from there.
func TestBadEntries(t *testing.T) {
	onEach(t, func(t *testing.T, w *world) {
		w.sale(3)
		w.backend(true)
		good, bad := w.reserve("good"), w.reserve("bad")
		body := order.AppendMessage(nil, []order.Order{good})
		body = fmt.Appendf(body, "\n%s\t%s\t1000\t1\t%d", bad.ID, bad.UserID, bad.ReservedAt.UnixMilli())
		body = fmt.Appendf(body, "\n%s\t%s\tmany", good.ID, good.UserID)
		body = append(body, "\n\x1b[2J\xff"...)
		w.send(queue.Orders, queue.Message{ID: "mixed", Body: body})
		w.dead(3)
		w.becomes(good, lua.MarkSettled)
		_, err := w.store.Order(t.Context(), bad.ID)
		require.ErrorIs(t, err, store.ErrNotFound)
		require.Equal(t, lua.MarkQueued, w.mark(bad))
		w.send(queue.Orders, message(bad)) // from whoever finds it there
		w.becomes(bad, lua.MarkSettled)
		w.row(bad, order.Created, "")
		w.agree(2)

		letters, total, err := w.service.List(t.Context(), 2)
		require.NoError(t, err)
		require.Equal(t, 3, total)
		require.Len(t, letters, 2)
		require.Equal(t, "mixed/0", letters[0].ID)
		require.Equal(t, bad.ID, letters[0].Bad[0].OrderID)
		require.Equal(t, w.activity.ProductID, letters[0].ProductID)
		require.Contains(t, letters[0].Reason, "quantity")
		require.False(t, letters[0].Since.IsZero())
		servicetest.Eventually(t, func() bool { // RabbitMQ needs a moment to have them back
			shown, err := w.service.Show(t.Context(), "mixed/1")
			return err == nil && shown[0].Fates[0].Stored.State == order.Created
		})
		_, err = w.service.Replay(t.Context(), "mixed/1")
		require.ErrorIs(t, err, activities.ErrRefused)
		require.ErrorContains(t, err, "come straight back; drop it")
		_, err = w.service.Replay(t.Context(), dead.All)
		require.ErrorIs(t, err, activities.ErrRefused)
		w.dead(3)
		w.agree(2)
	})
}

// Letters that share an id and nothing else are told apart by their bodies, and an
// id alone does nothing to either.
func TestIDsOfSeveralLetters(t *testing.T) {
	onEach(t, func(t *testing.T, w *world) {
		w.sale(3)
		a, b := w.reserve("a"), w.reserve("b")
		for _, m := range []queue.Message{
			{ID: "same", Body: message(a).Body},
			{ID: "same", Body: message(b).Body},
			{ID: "same", Body: message(b).Body},
			{ID: "/0", Body: []byte("one")},
			{ID: "/0", Body: []byte("other")},
			{Body: []byte("third")},
		} {
			w.send(queue.Dead, m)
		}
		w.dead(6)
		letters, _, err := w.service.List(t.Context(), 6)
		require.NoError(t, err)
		ids := map[string]int{}
		for _, l := range letters {
			ids[l.ID]++
		}
		require.Len(t, ids, 5, "a letter that is there twice has one id")
		first, second := letters[0].ID, letters[1].ID
		require.Regexp(t, `^same#[0-9a-f]{12}$`, first)
		require.Regexp(t, `^body-[0-9a-f]{12}$`, letters[3].ID)
		for _, do := range []func(context.Context, string) (dead.Done, error){w.service.Replay, w.service.Drop} {
			_, err = do(t.Context(), "same")
			require.ErrorIs(t, err, activities.ErrRefused)
			require.ErrorContains(t, err, first)
			require.ErrorContains(t, err, second)
		}
		shown, err := w.service.Show(t.Context(), second)
		require.NoError(t, err)
		require.Len(t, shown, 2)
		w.replay(first, dead.Done{Letters: 1, Orders: 1})
		done, err := w.service.Drop(t.Context(), "same")
		require.NoError(t, err, "one is left")
		require.Equal(t, dead.Done{Letters: 2, Orders: 2}, done)
		w.send(queue.Dead, message(b))
		w.replay(dead.All, dead.Done{Letters: 1, Orders: 1, Kept: 3})
		w.backend(true)
		w.dead(3)
	})
}

// Two messages without an id, each with an entry that cannot be read.
func TestEntriesOfMessagesWithoutID(t *testing.T) {
	onEach(t, func(t *testing.T, w *world) {
		w.sale(3)
		w.backend(true)
		for _, user := range []string{"a", "b"} {
			o := w.reserve(user)
			body := order.AppendMessage(nil, []order.Order{o})
			w.send(queue.Orders, queue.Message{Body: append(body, "\nnobody"...)})
		}
		w.dead(2)
		letters, _, err := w.service.List(t.Context(), 2)
		require.NoError(t, err)
		require.NotEqual(t, letters[0].ID, letters[1].ID)
		require.Regexp(t, `^body-[0-9a-f]{12}/0$`, letters[0].ID)
	})
}

func TestRefusals(t *testing.T) {
	onEach(t, func(t *testing.T, w *world) {
		w.sale(2)
		o := w.reserve("a")
		w.send(queue.Dead, message(o))
		replay := func() (err error) {
			_, err = w.service.Replay(t.Context(), o.ID)
			return err
		}
		_, err := w.activities().Hold(t.Context(), o.ProductID)
		require.NoError(t, err)
		err = replay()
		require.ErrorIs(t, err, activities.ErrRefused)
		require.ErrorContains(t, err, "held")
		require.NoError(t, w.redis.FlushDB(t.Context()).Err())
		servicetest.Eventually(t, func() bool { err = replay(); return err != nil && strings.Contains(err.Error(), "not in Redis") })
		w.dead(1)
		_, err = w.service.Replay(t.Context(), "nobody's")
		require.ErrorIs(t, err, store.ErrNotFound)
		_, err = w.service.Show(t.Context(), "nobody's")
		require.ErrorIs(t, err, store.ErrNotFound)
		ended, cancel := context.WithCancel(t.Context())
		cancel()
		_, err = w.service.Drop(ended, o.ID)
		require.ErrorIs(t, err, context.Canceled)
		w.dead(1)
	})
}

func TestDrop(t *testing.T) {
	onEach(t, func(t *testing.T, w *world) {
		w.sale(1)
		o := w.reserve("a")
		w.send(queue.Dead, message(o))
		w.send(queue.Dead, queue.Message{Body: []byte("seckill/9\x00\x1b]0;owned\x07"), Headers: map[string]string{queue.HeaderReason: "not seckill/1", queue.HeaderAttempt: "7"}})
		w.dead(2)
		letters, _, err := w.service.List(t.Context(), 10)
		require.NoError(t, err)
		unnamed := letters[1]
		require.Regexp(t, "^body-[0-9a-f]{12}$", unnamed.ID)
		require.ErrorIs(t, unnamed.Wrong, order.ErrMessage)
		require.Equal(t, "not seckill/1", unnamed.Reason)
		require.Equal(t, 7, unnamed.Attempt)
		require.True(t, unnamed.Since.IsZero())
		w.dead(2)
		done, err := w.service.Drop(t.Context(), unnamed.ID)
		require.NoError(t, err)
		require.Equal(t, dead.Done{Letters: 1}, done)
		w.dead(1)
		done, err = w.service.Drop(t.Context(), dead.All)
		require.NoError(t, err)
		require.Equal(t, dead.Done{Letters: 1, Orders: 1}, done)
		w.dead(0)
		require.Equal(t, lua.MarkQueued, w.mark(o), "what still holds its unit is the reconciler's")
	})
}

func TestEscape(t *testing.T) {
	for text, want := range map[string]string{
		"01h/7":              "01h/7",
		"手机 é":               "手机 é",
		"a\nb\tc":            `a\nb\tc`,
		"\x1b[31m\x00\xff":   `\x1b[31m\x00\xff`,
		"left\u202eright":    `left\u202eright`,
		"\u009b2J\u2028\"\\": `\u009b2J\u2028\"\\`,
	} {
		require.Equal(t, want, dead.Escape(text))
		plain := strings.NewReplacer(`\"`, `"`, `\\`, `\`).Replace(want)
		require.Equal(t, plain, dead.Plain(text))
	}
}
