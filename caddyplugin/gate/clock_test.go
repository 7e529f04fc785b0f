package gate

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/seckill-edge/seckill/lua"
)

// What is sold out stays so until a later look says otherwise; after the server's
// clock has gone back every look counts as later.
func TestSoldOutAndTheServersClock(t *testing.T) {
	at := time.Now().Truncate(time.Millisecond)
	for _, tc := range []struct {
		name  string
		look  time.Time
		left  int64
		still bool
	}{
		{"an earlier look", at.Add(-time.Second), 5, true},
		{"the same moment", at, 5, true},
		{"a later look", at.Add(time.Millisecond), 5, false},
		{"the clock went back", at.Add(-time.Hour), 5, false},
		{"the clock went back, none left", at.Add(-time.Hour), 0, true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := &sale{gate: &Gate{}}
			s.sellOut(at)
			s.see(lua.Snapshot{Available: tc.left, Now: tc.look}, at)
			require.Equal(t, tc.still, s.soldOut.Load())
		})
	}
}
