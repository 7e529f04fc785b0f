package gate

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/seckill-edge/seckill/internal/order"
	"github.com/seckill-edge/seckill/lua"
)

// stored is an archive with one order.
type stored struct {
	id string
	Archived
}

func (s stored) Order(_ context.Context, id string) (Archived, bool, error) {
	return s.Archived, id == s.id, nil
}

// agedID is an id that was made for a user so long ago.
func agedID(t *testing.T, user string, age time.Duration) string {
	id, err := order.NewID(time.Now().Add(-age), new(noise))
	require.NoError(t, err)
	return order.OwnID(id, product, user)
}

// Redis has restarted behind a closed activity, which nobody proves again: what is
// stored is told, what was never there is not there, and an order of the last hour, of
// which nothing is known, is neither.
func TestNothingIsProvenBehindAClosedActivity(t *testing.T) {
	eachRedis(t, func(t *testing.T, url string) {
		paid := stored{agedID(t, "a", 48*time.Hour), Archived{ProductID: product, UserID: "a", Quantity: 1, State: order.Paid}}
		b := setup(t, url, func(_ *Config, d *Deps) { d.Archive = paid })
		a := b.preheat(t, 10)
		b.click(t, "x")
		_, _, err := lua.SetState(t.Context(), b.redis, product, a.ID, lua.Closed)
		require.NoError(t, err)
		require.NoError(t, b.redis.HSet(t.Context(), lua.KeysOf(product).Activity, "run", "another").Err())
		for name, edge := range map[string]*bench{"it has sold": b, "new": setup(t, url, func(_ *Config, d *Deps) { d.Archive = paid })} {
			f, err := edge.Fate(t.Context(), product, "a", paid.id)
			require.NoError(t, err, name)
			require.Equal(t, order.Paid, f.State, name)
			_, err = edge.Fate(t.Context(), product, "a", agedID(t, "b", time.Minute))
			require.ErrorIs(t, err, ErrNoOrder, name)
			_, err = edge.Fate(t.Context(), product, "a", agedID(t, "a", lostFor+time.Minute))
			require.ErrorIs(t, err, ErrNoOrder, name)
			_, err = edge.Fate(t.Context(), product, "a", agedID(t, "a", time.Minute))
			require.ErrorIs(t, err, ErrUnavailable, name)
		}
		// A stream of such an order ends; its client asks anew, and hears the same.
		s, err := b.Follow(product, "a", Fate{OrderID: agedID(t, "a", 0), State: order.Queued})
		require.NoError(t, err)
		_, more := next(t, s)
		require.False(t, more)
	})
}

// An edge that has never sold a product knows as little of what an empty Redis has had.
func TestANewEdgeOfAnEmptyRedis(t *testing.T) {
	eachRedis(t, func(t *testing.T, url string) {
		b := setup(t, url)
		b.preheat(t, 10)
		d := b.click(t, "a")
		require.Equal(t, lua.Reserved, d.Outcome)
		require.NoError(t, b.redis.FlushAll(t.Context()).Err())
		for _, id := range []string{d.OrderID, agedID(t, "a", time.Minute)} {
			f, err := setup(t, url).Fate(t.Context(), product, "a", id)
			require.ErrorIs(t, err, ErrUnavailable, "%+v", f)
		}
	})
}

// A note that names the order which a buyer got instead is no proof of that order.
func TestTheOrderInsteadMayBeForgotten(t *testing.T) {
	eachRedis(t, func(t *testing.T, url string) {
		b := setup(t, url)
		b.preheat(t, 10)
		d := b.click(t, "a")
		other := agedID(t, "a", time.Second)
		_, err := lua.NoteRefusals(t.Context(), b.redis, product, time.Hour, []lua.RefusalNote{{
			Refusal: lua.Refusal{OrderID: other, Instead: d.OrderID, Quantity: 1}, UserID: "a", Until: time.Now().Add(time.Minute),
		}})
		require.NoError(t, err)
		f, err := b.Fate(t.Context(), product, "a", other)
		require.NoError(t, err)
		require.Equal(t, d.OrderID, f.OrderID)
		require.NoError(t, b.redis.Del(t.Context(), lua.KeysOf(product).Users).Err())
		f, err = b.Fate(t.Context(), product, "a", other)
		require.ErrorIs(t, err, ErrUnavailable, "%+v", f)
	})
}
