package faults

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/seckill-edge/seckill/e2e/history"
	"github.com/seckill-edge/seckill/internal/queue"
	"github.com/seckill-edge/seckill/lua"
)

// spoiltKinds are faults of people and of what else writes where we do.
func spoiltKinds() []Kind {
	return []Kind{
		{Name: "redis loses a key, backend stopped", Last: [2]time.Duration{7 * time.Second, 10 * time.Second}, Make: losingWatched},
		{Name: "redis loses a key, words spoilt", Last: moment, Make: losingSpoilt},
		{Name: "redis loses the buyers, edge killed", Last: short, Make: losingBuyers},
		{Name: "nonsense in the queue", Last: moment, DeadLetters: true, Make: command(sendNonsense, nil, breaks(history.Broker, history.Fitful))},
	}
}

func (f *Field) keys() lua.Keys { return lua.KeysOf(fmt.Sprint("p", f.sales)) }

// losingWatched stops a backend at a moment at which one proves the stock, for
// longer than leases and words last: when it goes on, another has done it.
func losingWatched(f *Field, r *rand.Rand) Fault {
	v, after := anyBackend(f, r), between(r, moment)
	return Fault{
		Inject: func(ctx context.Context) error {
			if err := redisSays("DEL", f.keys().Stock)(ctx, f); err != nil {
				return err
			}
			return errors.Join(pause(ctx, after), v.pause())
		},
		Heal: func(context.Context) error { return v.resume() },
		Breaks: []history.Outage{
			breaks(history.Redis, history.Forgets), breaks(history.Program, history.Fitful, v.breaks.Programs...),
		},
	}
}

// losingSpoilt leaves garbage where edges and backends tell each other how things
// stand, and then something to prove.
func losingSpoilt(f *Field, r *rand.Rand) Fault {
	wrongType := r.IntN(2) == 0
	broken := []history.Outage{breaks(history.Redis, history.Forgets)}
	return Fault{Breaks: broken, Inject: func(ctx context.Context) error {
		const lease = "seckill:lease:{relay}"
		var errs []error
		for _, key := range []string{lease, lease + ":fence", f.keys().Fence, f.keys().Edges, "seckill:backends"} {
			errs = append(errs, redisSays("DEL", key)(ctx, f))
			if wrongType || strings.HasSuffix(key, "backends") {
				errs = append(errs, redisSays("RPUSH", key, "garbage")(ctx, f))
			} else {
				errs = append(errs, redisSays("SET", key, "garbage of the dead")(ctx, f))
			}
		}
		return errors.Join(append(errs, redisSays("DEL", f.keys().Sold)(ctx, f))...)
	}}
}

// losingBuyers lets an edge die that could not publish, and with it the records of
// all buyers: of its orders nothing is left but the outbox.
func losingBuyers(f *Field, r *rand.Rand) Fault {
	carries := between(r, short)
	return Fault{
		Inject: func(ctx context.Context) error {
			err := errors.Join(f.leaveBehind(), pause(ctx, carries), f.Edges[0].Kill())
			return errors.Join(err, redisSays("DEL", f.keys().Users)(ctx, f))
		},
		Heal: func(ctx context.Context) error { return errors.Join(f.joinAgain(), f.StartEdge(ctx, f.Edges[0])) },
		Breaks: atOnce([]history.Outage{
			breaks(history.Redis, history.Forgets), breaks(history.Program, history.Fitful, edgeName(0)),
			breaks(history.Broker, history.Fitful, edgeName(0)),
		}),
	}
}

// sendNonsense publishes what none of our programs would: nothing, too much,
// another version, entries that are cut, and orders that are stored already, for
// somebody else, of another sale, and of more units.
func sendNonsense(ctx context.Context, f *Field) error {
	product := fmt.Sprint("p", f.sales)
	const stored = "SELECT id, user_id, activity_id, reserved_ms FROM orders WHERE product_id = ? LIMIT 1"
	var id, user, activity string
	var at int64
	for {
		err := f.db.QueryRowContext(ctx, stored, product).Scan(&id, &user, &activity, &at)
		if err == nil {
			break
		}
		if !errors.Is(err, sql.ErrNoRows) || pause(ctx, 20*time.Millisecond) != nil {
			return fmt.Errorf("looking for a stored order: %w", err)
		}
	}
	head := "seckill/1\t" + product + "\t"
	bodies := []string{
		"", "{}", "seckill/2\t" + product + "\t" + activity + "\n", head + activity, head + activity + "\n", head + "\xff\n\n",
		strings.Repeat("x", 3<<20), head + activity + strings.Repeat("\n"+id+"\t"+user+"\t1\t1\t1", 300),
		head + activity + "\n" + id + "\t" + user + "\t1\t1",
		fmt.Sprintf("%s%s\n%s\t%s\t999\t1\t%d\n%s\t%s\t0\t1\t%d", head, activity, id, user, at, id, user, at),
		fmt.Sprintf("%s%s\n%s\tthief\t1\t1\t%d", head, activity, id, at),
		fmt.Sprintf("%snone\n%s\t%s\t1\t1\t%d", head, id, user, at),
		fmt.Sprintf("seckill/1\tp0\t%s\n%s\t%s\t1\t1\t%d", activity, id, user, at),
	}
	return f.broker(func(ch *amqp.Channel) error {
		var errs []error
		for i, body := range bodies {
			m := amqp.Publishing{MessageId: strings.Repeat("n", 17*i), Body: []byte(body), DeliveryMode: amqp.Persistent}
			if i%2 == 1 {
				m.Headers = amqp.Table{queue.HeaderAttempt: int64(-3), queue.HeaderReason: []byte{0xff}, "x-death": "garbage", "nested": amqp.Table{"a": []any{1, "b"}}}
			}
			errs = append(errs, ch.PublishWithContext(ctx, "", ordersQueue, false, false, m))
		}
		return errors.Join(errs...)
	})
}
