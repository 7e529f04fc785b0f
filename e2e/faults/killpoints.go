package faults

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/seckill-edge/seckill/e2e/history"
	"github.com/seckill-edge/seckill/e2e/proxy"
	"github.com/seckill-edge/seckill/internal/killpoint"
)

// dieWithin bounds how long a process may take to come to its kill point under
// load on two quiet cores. The relay's is the farthest: its orders must be old enough first.
const dieWithin = 20 * time.Second

// killKinds are deaths at a named line of our own code.
func killKinds() []Kind {
	var all []Kind
	for _, place := range []string{killpoint.AfterReserve, killpoint.AfterPublish} {
		all = append(all, Kind{Name: "edge dies " + place, Last: moment, Make: edgeDies(place)})
	}
	for _, place := range []string{killpoint.BeforeCommit, killpoint.AfterCommit, killpoint.AfterAck, killpoint.AfterSettle} {
		all = append(all, Kind{Name: "backend dies " + place, Last: moment, Make: backendDies(place, nothing, nothing)})
	}
	return append(all,
		Kind{Name: "backend dies " + killpoint.AfterBury, Last: moment, DeadLetters: true, Make: backendDies(killpoint.AfterBury, (*Field).sendGarbage, nothing)},
		Kind{Name: "backend dies " + killpoint.AfterRelay, Last: moment, Make: backendDies(killpoint.AfterRelay, (*Field).leaveBehind, (*Field).joinAgain)})
}

func at(place string, nth int) string { return fmt.Sprint(killpoint.Variable, "=", place, ":", nth) }

// edgeDies starts an edge anew, so that it dies at a place when the sale comes to
// it.
func edgeDies(place string) func(*Field, *rand.Rand) Fault {
	return func(f *Field, r *rand.Rand) Fault {
		e, nth := f.Edges[r.IntN(len(f.Edges))], 1+r.IntN(10)
		return Fault{
			Prepare: func(ctx context.Context) error {
				return errors.Join(e.Stop(), f.StartEdge(ctx, e, at(place, nth)))
			},
			Inject: func(ctx context.Context) error { return dies(ctx, place, e.Done()) },
			Heal:   func(ctx context.Context) error { return f.StartEdge(ctx, e) },
			Breaks: []history.Outage{breaks(history.Program, history.Fitful, edgeName(slices.Index(f.Edges, e)))},
		}
	}
}

// backendDies starts all backends anew, so that one dies at a place: whichever
// comes to it first. bring leads them there.
func backendDies(place string, bring, after func(*Field) error) func(*Field, *rand.Rand) Fault {
	return func(f *Field, r *rand.Rand) Fault {
		nth := 1 + r.IntN(5)
		if place == killpoint.AfterBury || place == killpoint.AfterRelay {
			nth = 1
		}
		return Fault{
			Prepare: func(ctx context.Context) error {
				var errs []error
				for _, b := range f.Backends {
					errs = append(errs, b.Stop(), f.StartBackend(ctx, b, at(place, nth)))
				}
				return errors.Join(errs...)
			},
			Inject: func(ctx context.Context) error {
				if err := bring(f); err != nil {
					return err
				}
				return dies(ctx, place, f.Backends[0].Done(), f.Backends[1].Done())
			},
			Heal: func(ctx context.Context) error {
				errs := []error{after(f)}
				for _, b := range f.Backends { // the other one has the same end before it
					errs = append(errs, b.Kill(), f.StartBackend(ctx, b))
				}
				return errors.Join(errs...)
			},
			Breaks: []history.Outage{breaks(history.Program, history.Fitful, backendName(0), backendName(1))},
		}
	}
}

// dies waits for the first of some processes to end.
func dies(ctx context.Context, place string, done ...<-chan struct{}) error {
	timer := time.NewTimer(scaled(dieWithin))
	defer timer.Stop()
	if len(done) == 1 {
		done = append(done, nil)
	}
	select {
	case <-done[0]:
		return nil
	case <-done[1]:
		return nil
	case <-timer.C:
		return fmt.Errorf("nobody came to %s within %v", place, scaled(dieWithin))
	case <-ctx.Done():
		return ctx.Err()
	}
}

func nothing(*Field) error { return nil }

// sendGarbage publishes a message that nobody can read.
func (f *Field) sendGarbage() error {
	return f.broker(func(ch *amqp.Channel) error {
		return ch.Publish("", ordersQueue, false, false, amqp.Publishing{MessageId: "garbage", Body: []byte("garbage"), DeliveryMode: amqp.Persistent})
	})
}

// leaveBehind cuts an edge from the broker, so that it leaves its orders to the
// relay.
func (f *Field) leaveBehind() error { return f.Edges[0].RabbitMQ.Set(proxy.Mode{Cut: true}) }

func (f *Field) joinAgain() error { return f.Edges[0].RabbitMQ.Set(proxy.Mode{}) }
