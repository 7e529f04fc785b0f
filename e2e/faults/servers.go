package faults

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/seckill-edge/seckill/lua"
)

// command is a fault that one server is told to have.
func command(inject, heal func(context.Context, *Field) error) func(*Field, *rand.Rand) Fault {
	return func(f *Field, _ *rand.Rand) Fault {
		fault := Fault{Inject: func(ctx context.Context) error { return inject(ctx, f) }}
		if heal != nil {
			fault.Heal = func(ctx context.Context) error { return heal(ctx, f) }
		}
		return fault
	}
}

// redisSays runs one Redis command, past the proxies.
func redisSays(args ...any) func(context.Context, *Field) error {
	return func(ctx context.Context, f *Field) error {
		if err := f.redis.Do(ctx, args...).Err(); err != nil {
			return fmt.Errorf("redis %v: %w", args, err)
		}
		return nil
	}
}

func redisKinds() []Kind {
	return []Kind{
		{Name: "redis sleeps", Last: moment, Make: sleeping},
		{Name: "redis out of memory", Last: short, Make: command(redisSays("CONFIG", "SET", "maxmemory", "1mb"), redisSays("CONFIG", "SET", "maxmemory", "0"))},
		// A replica whose master is away.
		{Name: "redis read-only", Last: short, Make: command(redisSays("REPLICAOF", "127.0.0.1", "1"), redisSays("REPLICAOF", "NO", "ONE"))},
		{Name: "redis without replicas", Last: short, Make: command(redisSays("CONFIG", "SET", "min-replicas-to-write", "1"), redisSays("CONFIG", "SET", "min-replicas-to-write", "0"))},
		{Name: "redis forgets scripts", Last: moment, Make: command(redisSays("SCRIPT", "FLUSH"), nil)},
		{Name: "redis emptied", Last: moment, Make: command(redisSays("FLUSHALL"), nil)},
		{Name: "redis loses a key", Last: moment, Make: losing},
	}
}

// sleeping blocks Redis for a drawn time, by its own command.
func sleeping(f *Field, r *rand.Rand) Fault {
	length := between(r, long)
	return Fault{Inject: func(ctx context.Context) error {
		return redisSays("DEBUG", "SLEEP", fmt.Sprintf("%.2f", length.Seconds()))(ctx, f)
	}}
}

// losing deletes one key of the product that is sold.
func losing(f *Field, r *rand.Rand) Fault {
	which := r.IntN(6)
	return Fault{Inject: func(ctx context.Context) error {
		k := lua.KeysOf(fmt.Sprint("p", f.sales))
		return redisSays("DEL", []string{k.Activity, k.Stock, k.Frozen, k.Sold, k.Users, k.Outbox}[which])(ctx, f)
	}}
}

// broker runs do on a channel of its own, past the proxies.
func (f *Field) broker(do func(*amqp.Channel) error) (err error) {
	conn, err := amqp.DialConfig(f.RabbitMQ.URL(), amqp.Config{Dial: amqp.DefaultDial(5 * time.Second)})
	if err != nil {
		return fmt.Errorf("dialling the broker: %w", err)
	}
	defer func() { err = errors.Join(err, conn.Close()) }()
	ch, err := conn.Channel()
	if err != nil {
		return fmt.Errorf("a channel of the broker: %w", err)
	}
	return do(ch)
}

const (
	ordersQueue = "seckill.orders"
	retryQueue  = "seckill.orders.retry.5s"
	deadQueue   = "seckill.orders.dead"
)

func rabbitKinds() []Kind {
	return []Kind{
		{Name: "queue deleted", Last: moment, Make: command(func(_ context.Context, f *Field) error {
			return f.broker(func(ch *amqp.Channel) error { _, err := ch.QueueDelete(ordersQueue, false, false, false); return err })
		}, nil)},
		{Name: "queue purged", Last: moment, Make: purging},
		{Name: "rabbitmq memory alarm", Last: long, Make: command(watermark("0.000001"), watermark("0.4"))},
	}
}

// purging empties the queue, after the consumers were kept from emptying it
// themselves for a moment: else there is nothing to purge.
func purging(f *Field, _ *rand.Rand) Fault {
	frozen := func(do func(victim) error) error {
		return each(choice(everyBackend, f, nil), do)
	}
	return Fault{Inject: func(ctx context.Context) error {
		if err := frozen(func(v victim) error { return v.pause() }); err != nil {
			return err
		}
		err := pause(ctx, 600*time.Millisecond)
		return errors.Join(err,
			f.broker(func(ch *amqp.Channel) error { _, err := ch.QueuePurge(ordersQueue, false); return err }),
			frozen(func(v victim) error { return v.resume() }))
	}}
}

// watermark sets from which share of the memory on the broker blocks publishers.
func watermark(share string) func(context.Context, *Field) error {
	return func(ctx context.Context, f *Field) error {
		_, err := f.RabbitMQ.Ctl(ctx, "set_vm_memory_high_watermark", share)
		return err
	}
}

func databaseKinds() []Kind {
	return []Kind{
		{Name: "mariadb read-only", Last: long, Make: command(readOnly(1), readOnly(0))},
	}
}

func readOnly(on int) func(context.Context, *Field) error {
	return func(ctx context.Context, f *Field) error {
		return f.MariaDB.Exec(ctx, fmt.Sprint("SET GLOBAL read_only = ", on))
	}
}

// pause waits for d, unless ctx ends.
func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
