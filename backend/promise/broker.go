package promise

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/seckill-edge/seckill/backend/duty"
	"github.com/seckill-edge/seckill/internal/queue"
)

// broker knows whether the broker still has something to deliver.
type broker struct {
	// failing says that it does not answer now.
	failing atomic.Bool
	// waiting says that the queue had messages in it when it was asked last.
	waiting atomic.Bool
}

const (
	askEvery  = time.Second
	askWithin = 2 * time.Second
)

// watch asks the broker until ctx ends.
func (b *broker) watch(ctx context.Context, q queue.Inspector) {
	b.failing.Store(false)
	b.waiting.Store(false)
	tick := time.NewTicker(askEvery)
	defer tick.Stop()
	for {
		asking, cancel := context.WithTimeout(ctx, askWithin)
		err := duty.Safely(func() error {
			waiting, _, err := q.Depth(asking)
			if err == nil {
				b.waiting.Store(waiting > 0)
			}
			return err
		})
		cancel()
		b.failing.Store(err != nil)
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// delivers says that it answers and has messages to deliver.
func (b *broker) delivers() bool { return b.waiting.Load() && !b.failing.Load() }
