package promise

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/seckill-edge/seckill/backend/duty"
	"github.com/seckill-edge/seckill/internal/queue"
)

// broker knows since when the broker cannot be asked.
type broker struct {
	// spoke is when it answered last, in nanoseconds since 1970; 0 if it has not
	// since the watch began. failing says that it does not answer now.
	spoke   atomic.Int64
	failing atomic.Bool
}

const (
	askEvery  = time.Second
	askWithin = 2 * time.Second
)

// watch asks the broker until ctx ends.
func (b *broker) watch(ctx context.Context, q queue.Inspector) {
	b.spoke.Store(0)
	b.failing.Store(false)
	tick := time.NewTicker(askEvery)
	defer tick.Stop()
	for {
		asking, cancel := context.WithTimeout(ctx, askWithin)
		err := duty.Safely(func() error {
			_, _, err := q.Depth(asking)
			return err
		})
		cancel()
		if err == nil {
			b.spoke.Store(time.Now().UnixNano())
		}
		b.failing.Store(err != nil)
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// away says that it has not answered for so long. One that has never answered was
// away before anybody watched.
func (b *broker) away(now time.Time, long time.Duration) bool {
	return b.failing.Load() && now.Sub(time.Unix(0, b.spoke.Load())) >= long
}
