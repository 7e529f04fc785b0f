package lua

import (
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"
)

// TestMovesAreTold: one message a script call that has moved something, with all its
// orders; none for a call that has not.
func TestMovesAreTold(t *testing.T) {
	onEach(t, func(t *testing.T, c redis.UniversalClient) {
		var id ids
		load(t, c, sale(10, 2))
		one, two := id.next(), id.next()
		reserve(t, c, Request{OrderID: one, UserID: "u", Quantity: 1}, Request{OrderID: two, UserID: "v", Quantity: 1})
		sub := c.Subscribe(t.Context(), Moves)
		t.Cleanup(func() { require.NoError(t, sub.Close()) })
		_, err := sub.ReceiveTimeout(t.Context(), 5*time.Second)
		require.NoError(t, err)
		both := []Move{{UserID: "u", OrderID: one}, {UserID: "v", OrderID: two}}
		change(t, c, MarkCreated, both...)
		change(t, c, MarkCreated, both...)
		change(t, c, MarkPaid, both[0])
		change(t, c, MarkExpired, both[1])
		for _, want := range []string{one + " " + two, one, two} {
			message, err := sub.ReceiveTimeout(t.Context(), 5*time.Second)
			require.NoError(t, err)
			require.Equal(t, product+" "+want, message.(*redis.Message).Payload)
		}
		require.Equal(t, Moved(0), change(t, c, MarkPaid, both[0])[0])
	})
}
