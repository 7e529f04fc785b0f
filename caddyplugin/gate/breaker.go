package gate

import (
	"errors"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/sony/gobreaker/v2"

	"github.com/seckill-edge/seckill/lua"
)

// probeAfter is how long an open breaker waits before it lets the next look
// through. It is shorter than lookShut, so that every look then is a probe.
const probeAfter = 100 * time.Millisecond

// breaker stands between one sale and Redis. The first failure opens it: nobody
// is to wait for a Redis that is away. While it is not closed clicks are refused
// from memory, and only the look of the sale goes through, as the probe; its
// success closes the breaker.
type breaker struct {
	circuit *gobreaker.CircuitBreaker[lua.Batch]
	shut    atomic.Bool // not closed, for the hot path
	// failure is the last one, for the log line.
	failure atomic.Value // of error text
}

func newBreaker(product string, log *slog.Logger) *breaker {
	b := &breaker{}
	b.circuit = gobreaker.NewCircuitBreaker[lua.Batch](gobreaker.Settings{
		Name:        product,
		Timeout:     probeAfter,
		ReadyToTrip: func(c gobreaker.Counts) bool { return c.ConsecutiveFailures > 0 },
		OnStateChange: func(_ string, from, to gobreaker.State) {
			b.shut.Store(to != gobreaker.StateClosed)
			switch {
			case from == gobreaker.StateClosed:
				log.Error("Redis does not answer, the entrance is closed; asking again until it does",
					"product", product, "error", b.failure.Load())
			case to == gobreaker.StateClosed:
				log.Info("Redis answers again", "product", product)
			}
		},
	})
	return b
}

// reserve lets a call of buyers through a closed breaker. A probe is no buyer's
// business.
func (b *breaker) reserve(call func() (lua.Batch, error)) (lua.Batch, error) {
	if b.shut.Load() {
		return lua.Batch{}, gobreaker.ErrOpenState
	}
	return b.circuit.Execute(func() (lua.Batch, error) {
		batch, err := call()
		b.note(err)
		return batch, err
	})
}

// look lets a look through, as a probe if the breaker is open. It returns
// gobreaker.ErrOpenState when it is too early for one.
func (b *breaker) look(look func() error) error {
	_, err := b.circuit.Execute(func() (lua.Batch, error) {
		err := look()
		b.note(err)
		return lua.Batch{}, err
	})
	return err
}

func (b *breaker) note(err error) {
	if err != nil {
		b.failure.Store(err.Error())
	}
}

func breakerOpen(err error) bool {
	return errors.Is(err, gobreaker.ErrOpenState) || errors.Is(err, gobreaker.ErrTooManyRequests)
}
