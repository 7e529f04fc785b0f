package faults

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/seckill-edge/seckill/e2e/history"
)

// Sales in which nothing runs out: units for everybody, and clicks a second on each
// product.
const (
	many    = 20_000
	trickle = 40
)

// refusals are the ways in which a Redis that reads refuses to write, and how each
// is ended.
var refusals = []struct {
	name         string
	inject, heal func(context.Context, *Field) error
}{
	{"out of memory", redisSays("CONFIG", "SET", "maxmemory", "1mb"), redisSays("CONFIG", "SET", "maxmemory", "0")},
	// A replica whose master is away.
	{"read-only", redisSays("REPLICAOF", "127.0.0.1", "1"), redisSays("REPLICAOF", "NO", "ONE")},
	{"without replicas", redisSays("CONFIG", "SET", "min-replicas-to-write", "1"), redisSays("CONFIG", "SET", "min-replicas-to-write", "0")},
	{"cannot persist", unwritable, writable},
}

// refusingKinds are a Redis that is there and does not take what a purchase needs.
func refusingKinds() []Kind {
	var all []Kind
	for _, r := range refusals {
		all = append(all,
			Kind{Name: "redis " + r.name, Last: short, Make: command(r.inject, r.heal, breaks(history.Redis, history.Refuses))},
			Kind{Name: "redis " + r.name + " for long", Last: plain, Make: command(r.inject, r.heal, breaks(history.Redis, history.Refuses))})
	}
	return append(all,
		Kind{Name: "redis user loses a right", Last: plain, Make: losingRights},
		Kind{Name: "redis paused", Last: [2]time.Duration{9 * time.Second, 14 * time.Second}, Total: many, Plenty: true, Clicks: trickle, Make: again(2*time.Second, paused)},
		Kind{Name: "redis sleeps again and again", Last: [2]time.Duration{9 * time.Second, 14 * time.Second}, Total: many, Plenty: true, Clicks: trickle, Make: again(2*time.Second, asleep)},
	)
}

// unwritable lets Redis fail to save a snapshot, after which it refuses to write:
// a folder is where the file should be.
func unwritable(ctx context.Context, f *Field) error {
	at, err := f.snapshot(ctx)
	if err != nil {
		return err
	}
	// An earlier snapshot of these servers may be there.
	if err := errors.Join(os.RemoveAll(at), os.MkdirAll(filepath.Join(at, "in the way"), 0o755)); err != nil {
		return err
	}
	if err := errors.Join(redisSays("CONFIG", "SET", "save", "3600 1")(ctx, f), redisSays("BGSAVE")(ctx, f)); err != nil {
		return err
	}
	return f.awaitSaved(ctx, "err")
}

func writable(ctx context.Context, f *Field) error {
	at, err := f.snapshot(ctx)
	if err != nil {
		return err
	}
	err = errors.Join(os.RemoveAll(at), redisSays("BGSAVE")(ctx, f))
	return errors.Join(err, f.awaitSaved(ctx, "ok"), redisSays("CONFIG", "SET", "save", "")(ctx, f))
}

// snapshot is the file that Redis's snapshots go to.
func (f *Field) snapshot(ctx context.Context) (string, error) {
	dir, err := f.redis.ConfigGet(ctx, "dir").Result()
	if err != nil {
		return "", fmt.Errorf("asking Redis for its folder: %w", err)
	}
	return filepath.Join(dir["dir"], "dump.rdb"), nil
}

// awaitSaved waits until the last snapshot has ended so.
func (f *Field) awaitSaved(ctx context.Context, how string) error {
	for {
		info, err := f.redis.Info(ctx, "persistence").Result()
		if err == nil && strings.Contains(info, "rdb_bgsave_in_progress:0") && strings.Contains(info, "rdb_last_bgsave_status:"+how) {
			return nil
		}
		if wait := pause(ctx, 20*time.Millisecond); wait != nil {
			return errors.Join(wait, err)
		}
	}
}

// losingRights takes a right from the user of edges and backends, and gives it back.
func losingRights(f *Field, r *rand.Rand) Fault {
	right := []string{"hset", "evalsha", "@write"}[r.IntN(3)]
	return command(redisSays("ACL", "SETUSER", "default", "-"+right), redisSays("ACL", "SETUSER", "default", "+@all"),
		breaks(history.Redis, history.Refuses))(f, r)
}

// pausedEvery is from one pause to the next.
const pausedEvery = 5 * time.Second

// again does something to Redis every few seconds until it is healed.
func again(length time.Duration, do func(context.Context, *Field, time.Duration) error) func(*Field, *rand.Rand) Fault {
	return func(f *Field, _ *rand.Rand) Fault {
		var stop context.CancelFunc
		var done chan error
		broken := []history.Outage{breaks(history.Redis, history.Fitful)}
		return Fault{
			Breaks: broken,
			Inject: func(ctx context.Context) error {
				ctx, stop = context.WithCancel(ctx)
				done = make(chan error, 1)
				go func() {
					for {
						broken[0].Times++
						err := do(ctx, f, length)
						if err != nil || pause(ctx, pausedEvery-length) != nil {
							done <- err
							return
						}
					}
				}()
				return nil
			},
			Heal: func(context.Context) error {
				stop()
				if err := <-done; err != nil && !errors.Is(err, context.Canceled) {
					return err
				}
				return nil
			},
		}
	}
}

// paused lets Redis answer nobody, and waits for its end.
func paused(ctx context.Context, f *Field, length time.Duration) error {
	if err := redisSays("CLIENT", "PAUSE", length.Milliseconds())(ctx, f); err != nil {
		return err
	}
	return pause(context.WithoutCancel(ctx), length)
}

func asleep(ctx context.Context, f *Field, length time.Duration) error {
	return redisSays("DEBUG", "SLEEP", length.Seconds())(context.WithoutCancel(ctx), f)
}
