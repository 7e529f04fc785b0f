package pay

import (
	"cmp"
	"context"
	"time"

	"github.com/seckill-edge/seckill/backend/duty"
	"github.com/seckill-edge/seckill/internal/order"
)

const (
	// expireEvery is how late an order expires at most while all is well.
	expireEvery = 500 * time.Millisecond
	longPause   = 10 * time.Second
	// expireBatch bounds what one transaction moves and what Redis is told at once.
	expireBatch = 500
)

// RunExpiry expires orders whose time is up, until ctx ends. One process at a time
// is enough, and more do no harm. It catches up with what became due while nobody
// looked, batch by batch; after a failure it pauses for longer each time. tell is
// given each pass's failure, also a *duty.PanicError, nil if there was none.
func (s *Service) RunExpiry(ctx context.Context, tell func(error)) {
	for pause := expireEvery; ; {
		err := duty.Safely(func() error {
			_, err := s.ExpireDue(ctx)
			return err
		})
		if ctx.Err() != nil {
			return
		}
		tell(err)
		if pause *= 2; err == nil {
			pause = expireEvery
		}
		pause = min(pause, longPause)
		timer := time.NewTimer(pause)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return
		}
	}
}

// ExpireDue expires what is due now, by the database's clock, and returns how many
// orders that were. It goes on until a batch is not full, and returns the first
// failure.
func (s *Service) ExpireDue(ctx context.Context) (expired int, err error) {
	now, err := s.Store.Now(ctx)
	if err != nil {
		return 0, err
	}
	for {
		orders, failed := s.Store.Expire(ctx, now, expireBatch)
		err = cmp.Or(err, failed)
		if len(orders) > 0 {
			expired += len(orders)
			s.Metrics.Ended(order.Expired, len(orders))
			// Any window but none: an expired order had one.
			s.tell(ctx, orders, time.Second)
			s.Log.Info("pay: orders expired", "orders", len(orders))
		}
		if len(orders) < expireBatch || ctx.Err() != nil {
			return expired, err
		}
	}
}
