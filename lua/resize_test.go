package lua

import (
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"
)

func TestResize(t *testing.T) {
	onEach(t, func(t *testing.T, c redis.UniversalClient) {
		ctx := t.Context()
		resize := func(change, total int64) Resized {
			t.Helper()
			r, err := Resize(ctx, c, product, "a-1", change, total)
			require.NoError(t, err)
			return r
		}
		_, err := Resize(ctx, c, product, "a-1", 1, 5)
		require.ErrorIs(t, err, ErrNoActivity)
		load(t, c, sale(2, 2))
		var id ids
		reserve(t, c, Request{OrderID: id.next(), UserID: "u", Quantity: 2})
		require.Equal(t, []Outcome{SoldOut}, outcomes(reserve(t, c, Request{OrderID: id.next(), UserID: "v", Quantity: 1})))

		heard := c.Subscribe(ctx, Changes)
		defer func() { require.NoError(t, heard.Close()) }()
		_, err = heard.Receive(ctx)
		require.NoError(t, err)
		require.Equal(t, Resized{Done: true, Total: 5, Available: 3}, resize(1, 5))
		word, err := heard.ReceiveMessage(ctx)
		require.NoError(t, err)
		require.Equal(t, product, word.Payload, "sold-out edges sell again")
		require.Equal(t, []Outcome{Reserved}, outcomes(reserve(t, c, Request{OrderID: id.next(), UserID: "v", Quantity: 1})))

		require.Equal(t, Resized{Done: true, Total: 5, Available: 2}, resize(1, 5), "a repeat")
		require.Equal(t, Resized{Total: 5, Available: 2}, resize(2, 2), "three are reserved")
		require.Equal(t, Resized{Done: true, Total: 3}, resize(3, 3), "all that nobody has")
		require.Equal(t, Resized{Total: 3}, resize(2, 2), "what was refused is not made later")
		require.Equal(t, Resized{Total: 3}, resize(1, 5), "nor is an old one made again")
		s := audit(t, c)
		require.False(t, s.Damaged)
		require.Equal(t, int64(3), s.Total)
		require.Equal(t, int64(3), s.Changes)

		_, err = Resize(ctx, c, product, "a-2", 4, 9)
		require.ErrorIs(t, err, ErrOtherActivity)
		for _, bad := range [][2]int64{{0, 1}, {4, 0}, {4, 1_000_000_001}} {
			_, err = Resize(ctx, c, product, "a-1", bad[0], bad[1])
			require.ErrorContains(t, err, "want a total")
		}
		require.NoError(t, c.Set(ctx, KeysOf(product).Stock, "x", 0).Err())
		_, err = Resize(ctx, c, product, "a-1", 4, 9)
		require.ErrorIs(t, err, ErrDamaged)
	})
}

// A stock that may have forgotten orders is not changed; a rebuild keeps a change
// that it has not read of.
func TestResizeAndRebuild(t *testing.T) {
	onEach(t, func(t *testing.T, c redis.UniversalClient) {
		ctx := t.Context()
		a := sale(5, 1)
		load(t, c, a)
		_, err := Resize(ctx, c, product, "a-1", 1, 7)
		require.NoError(t, err)
		_, made, err := HoldChanging(ctx, c, a, "")
		require.NoError(t, err)
		require.False(t, made)
		require.Equal(t, int64(7), audit(t, c).Total, "the holder had read it before the change")
		_, err = Resize(ctx, c, product, "a-1", 2, 9)
		require.ErrorIs(t, err, ErrUnproven)

		_, _, err = Hold(ctx, c, a, "")
		require.NoError(t, err)
		require.Equal(t, int64(5), audit(t, c).Total, "where none is under way SQL is right")

		a.Total, a.Changes = 6, 2 // what SQL says after a withdrawal that Redis has forgotten
		_, _, err = Hold(ctx, c, a, "")
		require.NoError(t, err)
		s := audit(t, c)
		require.Equal(t, int64(6), s.Total)
		require.Equal(t, int64(2), s.Changes)
		_, _, err = SetState(ctx, c, product, "a-1", Closed)
		require.NoError(t, err)
		require.NoError(t, c.Set(ctx, KeysOf(product).Stock, "6", 0).Err())
		r, err := Resize(ctx, c, product, "a-1", 3, 8)
		require.NoError(t, err)
		require.True(t, r.Done, "what is closed sells nothing")
	})
}

func TestResizeBeforeTheFirstOpening(t *testing.T) {
	onEach(t, func(t *testing.T, c redis.UniversalClient) {
		a := sale(5, 1)
		a.State = OnHold
		load(t, c, a)
		r, err := Resize(t.Context(), c, product, "a-1", 1, 2)
		require.NoError(t, err)
		require.Equal(t, Resized{Done: true, Total: 2, Available: 2}, r)
	})
}
