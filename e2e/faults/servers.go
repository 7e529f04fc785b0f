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

	"github.com/seckill-edge/seckill/e2e/history"
	"github.com/seckill-edge/seckill/internal/servicetest"
	"github.com/seckill-edge/seckill/lua"
)

// command is a fault that one server is told to have.
func command(inject, heal func(context.Context, *Field) error, broken ...history.Outage) func(*Field, *rand.Rand) Fault {
	return func(f *Field, _ *rand.Rand) Fault {
		fault := Fault{Inject: func(ctx context.Context) error { return inject(ctx, f) }, Breaks: broken}
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
	forgets := breaks(history.Redis, history.Forgets)
	return []Kind{
		{Name: "redis sleeps", Last: moment, Make: sleeping},
		{Name: "redis forgets scripts", Last: moment, Make: command(redisSays("SCRIPT", "FLUSH"), nil, breaks(history.Redis, history.Fitful))},
		{Name: "redis emptied", Last: moment, Make: command(redisSays("FLUSHALL"), nil, forgets)},
		{Name: "redis loses a key", Last: moment, Make: losing},
		{Name: "redis fails over", Last: moment, Make: failingOver},
	}
}

// sleeping blocks Redis for a drawn time, by its own command.
func sleeping(f *Field, r *rand.Rand) Fault {
	length := between(r, long)
	return Fault{
		Inject: func(ctx context.Context) error {
			return redisSays("DEBUG", "SLEEP", fmt.Sprintf("%.2f", length.Seconds()))(ctx, f)
		},
		Breaks: []history.Outage{breaks(history.Redis, history.Fitful)},
	}
}

// losing deletes one key of the product that is sold.
func losing(f *Field, r *rand.Rand) Fault {
	which := r.IntN(6)
	return Fault{
		Inject: func(ctx context.Context) error {
			k := lua.KeysOf(fmt.Sprint("p", f.sales))
			return redisSays("DEL", []string{k.Activity, k.Stock, k.Frozen, k.Sold, k.Users, k.Outbox}[which])(ctx, f)
		},
		Breaks: []history.Outage{breaks(history.Redis, history.Forgets)},
	}
}

// failingOver kills Redis and puts a replica in its place: another server, which
// has not heard of the last moment.
func failingOver(f *Field, _ *rand.Rand) Fault {
	var replica *servicetest.Redis
	return Fault{
		Breaks: []history.Outage{breaks(history.Redis, history.Away)},
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

func rabbitKinds(within time.Duration) []Kind {
	remove := func(ch *amqp.Channel) error { _, err := ch.QueueDelete(ordersQueue, false, false, false); return err }
	purge := func(ch *amqp.Channel) error { _, err := ch.QueuePurge(ordersQueue, false); return err }
	fitful := breaks(history.Broker, history.Fitful)
	gathering := [2]time.Duration{3 * time.Second, 6 * time.Second}
	underLoad := func(how func(*amqp.Channel) error) func(*Field, *rand.Rand) Fault {
		return command(func(_ context.Context, f *Field) error { return f.broker(how) }, nil, fitful)
	}
	blocked := command(watermark("0.000001"), watermark("0.4"), breaks(history.Broker, history.Refuses))
	return []Kind{
		{Name: "queue deleted", Last: moment, Make: underLoad(remove)},
		{Name: "queue deleted, full", Last: moment, Make: losingMessages(remove, short)},
		{Name: "queue purged, full", Last: moment, Make: losingMessages(purge, short)},
		// The load goes on, on both products: the loss is found by each order's age.
		{Name: "queue deleted, two products", Last: beyond(within), Products: 2, Total: many, Clicks: trickle, Make: losingMessages(remove, gathering)},
		{Name: "queue purged, two products", Last: beyond(within), Products: 2, Total: many, Clicks: trickle, Make: losingMessages(purge, gathering)},
		{Name: "rabbitmq memory alarm", Last: long, Make: blocked},
		{Name: "rabbitmq memory alarm for long", Last: beyond(within), Make: blocked},
	}
}

// losingMessages destroys what is in the queue. The backends are killed before, so
// that there is something: what they had in hand too. The fault lasts on without
// them for a moment only: an operator starts them at once.
func losingMessages(how func(*amqp.Channel) error, gather [2]time.Duration) func(*Field, *rand.Rand) Fault {
	return func(f *Field, r *rand.Rand) Fault {
		backends, gathering := killed(everyBackend...)(f, r), between(r, gather)
		return Fault{
			Inject: func(ctx context.Context) error {
				if err := backends.Inject(ctx); err != nil {
					return err
				}
				if err := pause(ctx, gathering); err != nil {
					return err
				}
				if err := f.broker(how); err != nil {
					return err
				}
				return backends.Heal(ctx)
			},
			Breaks: []history.Outage{
				breaks(history.Broker, history.Fitful), breaks(history.Program, history.Fitful, backendName(0), backendName(1)),
			},
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
	refuses := breaks(history.Database, history.Refuses)
	return []Kind{
		{Name: "mariadb read-only", Last: long, Make: command(readOnly(1), readOnly(0), refuses)},
		{Name: "mariadb read-only for long", Last: plain, Make: command(readOnly(1), readOnly(0), refuses)},
		{Name: "mariadb restored from a backup", Last: short, Holds: true, Make: restored},
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
