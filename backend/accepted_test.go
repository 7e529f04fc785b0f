package backend

import (
	"log/slog"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/seckill-edge/seckill/backend/metrics"
	"github.com/seckill-edge/seckill/backend/rails"
)

// Where a Redis that is not fit is accepted, nobody is asked to make sure of what
// it does not tell; what it does tell is still shown.
func TestAcceptedRedisNeedNotTell(t *testing.T) {
	t.Parallel()
	problems := []rails.Problem{{Kind: rails.Unknown, Words: "it does not tell"}, {Kind: rails.Persistence, Words: "it forgets"}}
	for _, tc := range []struct {
		accepted bool
		shown    map[rails.Kind]string
	}{
		{false, map[rails.Kind]string{rails.Unknown: "it does not tell", rails.Persistence: "it forgets"}},
		{true, map[rails.Kind]string{rails.Persistence: "it forgets"}},
	} {
		g := &guard{gauge: metrics.New().NewGuard([]string{"unknown", "persistence"}), accepted: tc.accepted, log: slog.New(slog.DiscardHandler)}
		g.set(problems)
		require.Equal(t, tc.shown, g.last)
	}
}
