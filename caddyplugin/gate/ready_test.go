package gate

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/alicebob/miniredis/v2"
	"github.com/stretchr/testify/require"

	"github.com/seckill-edge/seckill/internal/queue"
)

// blocked is a publisher whose broker is short of memory: it says so only to those
// who send.
type blocked struct{ queue.Publisher }

func (blocked) Publish(context.Context, queue.Target, queue.Message) error {
	return fmt.Errorf("%w: %w", queue.ErrNotSent, queue.ErrBlocked)
}

// An edge that sends nothing notices a broker that takes nothing.
func TestReadyTriesWhetherTheBrokerTakesMessages(t *testing.T) {
	b := setup(t, "redis://"+miniredis.RunT(t).Addr())
	require.NoError(t, b.Ready(t.Context()))
	b = setup(t, "redis://"+miniredis.RunT(t).Addr(), func(_ *Config, d *Deps) { d.Publisher = blocked{d.Publisher} })
	missing, ok := errors.AsType[*NotReady](b.Ready(t.Context()))
	require.True(t, ok)
	require.Equal(t, PartQueue, missing.Part)
	require.Equal(t, string(queue.Blocked), missing.Cause())
}
