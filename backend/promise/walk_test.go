package promise

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A broker that delivers is left the orders that it may still bring, and never so long
// that the next walk finds no time to store those that it has lost.
func TestWhatIsLeftToTheBroker(t *testing.T) {
	for _, tc := range []struct {
		within, after, took, want time.Duration
	}{
		{30 * time.Second, 15 * time.Second, 0, 20 * time.Second},
		{30 * time.Second, 15 * time.Second, 500 * time.Millisecond, 19 * time.Second},
		{30 * time.Second, 15 * time.Second, 2 * time.Second, 15 * time.Second},
		{12 * time.Second, 6 * time.Second, 0, 8 * time.Second},
		{12 * time.Second, 6 * time.Second, 220 * time.Millisecond, 6800 * time.Millisecond},
		{12 * time.Second, 6 * time.Second, time.Minute, 6 * time.Second},
	} {
		k := &Keeper{Config: Config{Within: tc.within, After: tc.after}}
		require.Equal(t, tc.want, k.leaveUntil(tc.took), "%+v", tc)
	}
}
