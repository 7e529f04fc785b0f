package faults

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"strings"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/redis/go-redis/v9"

	"github.com/seckill-edge/seckill/internal/servicetest"
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
		{Name: "redis fails over", Last: moment, Make: failingOver},
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

// failingOver kills Redis and puts a replica in its place: another server, which
// has not heard of the last moment.
func failingOver(f *Field, _ *rand.Rand) Fault {
	var replica *servicetest.Redis
	return Fault{
		Prepare: func(ctx context.Context) (err error) {
			_, port, _ := net.SplitHostPort(f.Redis.Addr())
			if replica, err = f.startRedis(ctx, "--replicaof", "127.0.0.1 "+port); err != nil {
				return err
			}
			return linked(ctx, replica)
		},
		Inject: func(context.Context) error { return f.Redis.Kill() },
		Heal:   func(ctx context.Context) error { return f.replaceRedis(ctx, replica) },
	}
}

// linked waits until a replica has all that its master has.
func linked(ctx context.Context, replica *servicetest.Redis) error {
	c := redis.NewClient(&redis.Options{Addr: replica.Addr(), Protocol: 2})
	defer c.Close()
	for {
		info, err := c.Info(ctx, "replication").Result()
		if err == nil && strings.Contains(info, "master_link_status:up") {
			return nil
		}
		if wait := pause(ctx, 20*time.Millisecond); wait != nil {
			return errors.Join(wait, err)
		}
	}
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
	remove := func(ch *amqp.Channel) error { _, err := ch.QueueDelete(ordersQueue, false, false, false); return err }
	purge := func(ch *amqp.Channel) error { _, err := ch.QueuePurge(ordersQueue, false); return err }
	return []Kind{
		{Name: "queue deleted", Last: moment, Make: command(func(_ context.Context, f *Field) error { return f.broker(remove) }, nil)},
		{Name: "queue deleted, full", Last: moment, Make: losingMessages(remove)},
		{Name: "queue purged, full", Last: moment, Make: losingMessages(purge)},
		{Name: "rabbitmq memory alarm", Last: long, Make: command(watermark("0.000001"), watermark("0.4"))},
	}
}

// losingMessages destroys what is in the queue. The backends are killed before, so
// that there is something: what they had in hand too.
func losingMessages(how func(*amqp.Channel) error) func(*Field, *rand.Rand) Fault {
	return func(f *Field, r *rand.Rand) Fault {
		backends, gathering := killed(everyBackend...)(f, r), between(r, short)
		return Fault{
			Inject: func(ctx context.Context) error {
				if err := backends.Inject(ctx); err != nil {
					return err
				}
				if err := pause(ctx, gathering); err != nil {
					return err
				}
				return f.broker(how)
			},
			Heal: backends.Heal,
		}
	}
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
		{Name: "mariadb restored from a backup", Last: short, Make: restored},
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
