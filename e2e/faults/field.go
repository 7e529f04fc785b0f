// Package faults drives sales on private servers and real processes, breaks
// something at a random moment under load, heals it, and has the history of the
// sale judged (e2e/history). A seed chooses everything that is chosen: the
// moment, the length and the victim of a fault, the size of the sale and what its
// buyers do. Only what the operating system interleaves is left to chance.
//
// cmd/faults runs the whole matrix; the test of this package a short one.
package faults

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/go-sql-driver/mysql"
	"github.com/redis/go-redis/v9"

	seckill "github.com/seckill-edge/seckill"
	"github.com/seckill-edge/seckill/e2e/stack"
	"github.com/seckill-edge/seckill/internal/servicetest"
)

const (
	edges    = 2
	backends = 2
)

// Promise is the edges' resolve_within in these sales, unless told otherwise: shorter
// than the default so that a round is, longer on a slow machine.
func Promise() time.Duration { return scaled(12 * time.Second).Round(time.Second) }

// slowest is the slowest machine for which time is given: one that is slower is full
// of somebody else's work for a moment.
const slowest = 7

// scaled is d on two quiet cores, and longer on a slow machine.
func scaled(d time.Duration) time.Duration {
	return min(servicetest.Scaled(d), slowest*d)
}

// Field is a whole product to break, reused from round to round; each round
// sells a product of its own. It is not safe for concurrent use.
type Field struct {
	*stack.Stack
	redis *redis.Client
	db    *sql.DB
	sales int
	fsync string
}

// Open starts a field in a folder of its own among the system's temporary files,
// with programs that stack.Build has built in a folder, with kill points. The edges
// promise a fate within so long. Close must be called, also after an error.
func Open(ctx context.Context, programs string, within time.Duration) (*Field, error) {
	dir, err := os.MkdirTemp("", "seckill-faults-")
	if err != nil {
		return nil, err
	}
	if err := os.Chmod(dir, 0o755); err != nil { // MariaDB may run as another user
		return nil, err
	}
	f := &Field{fsync: everysec}
	if f.Stack, err = stack.Start(ctx, dir, stack.Options{
		Proxied: true, Programs: programs, Caddyfile: caddyfile(within),
		RedisArgs: redisArgs(everysec), BackendArgs: []string{"--resolve-within", within.String()},
	}); err != nil {
		return f, err
	}
	f.redis = clientOf(f.Redis)
	if f.db, err = witness(f.MariaDB.DSN("seckill")); err != nil {
		return f, err
	}
	for range backends {
		if _, err := f.AddBackend(ctx); err != nil {
			return f, err
		}
	}
	for range edges {
		if _, err := f.AddEdge(ctx); err != nil {
			return f, err
		}
	}
	return f, nil
}

// Our own user of Redis keeps his rights when the programs lose theirs.
const kitUser, kitPassword = "kit", "kit"

func clientOf(r *servicetest.Redis) *redis.Client {
	return redis.NewClient(&redis.Options{
		Addr: r.Addr(), Username: kitUser, Password: kitPassword, Protocol: 2, MaxRetries: -1, ReadTimeout: 5 * time.Second,
	})
}

// startRedis starts a further Redis beside the field's own.
func (f *Field) startRedis(ctx context.Context, args ...string) (*servicetest.Redis, error) {
	dir, err := os.MkdirTemp(f.Dir(), "redis-")
	if err != nil {
		return nil, err
	}
	return servicetest.StartRedis(ctx, dir, append(redisArgs(f.fsync), args...)...)
}

// replaceRedis makes a replica the Redis of the field.
func (f *Field) replaceRedis(ctx context.Context, replica *servicetest.Redis) error {
	errs := []error{f.redis.Close()}
	f.Redis, f.redis = replica, clientOf(replica)
	replica.Configure(redisArgs(f.fsync)...)
	errs = append(errs, f.redis.Do(ctx, "REPLICAOF", "NO", "ONE").Err())
	for _, e := range f.Edges {
		e.Redis.Retarget(replica.Addr())
	}
	for _, b := range f.Backends {
		b.Redis.Retarget(replica.Addr())
	}
	return errors.Join(errs...)
}

// Close ends everything and removes the folder.
func (f *Field) Close() error {
	var errs []error
	if f.redis != nil {
		errs = append(errs, f.redis.Close())
	}
	if f.db != nil {
		errs = append(errs, f.db.Close())
	}
	if f.Stack != nil {
		errs = append(errs, f.Stop(), os.RemoveAll(f.Dir()))
	}
	return errors.Join(errs...)
}

// witness reads SQL without our code. A connection that a fault has broken is no
// news.
func witness(dsn string) (*sql.DB, error) {
	config, err := mysql.ParseDSN(dsn)
	if err != nil {
		return nil, err
	}
	config.Logger = &mysql.NopLogger{}
	connector, err := mysql.NewConnector(config)
	if err != nil {
		return nil, err
	}
	return sql.OpenDB(connector), nil
}

// caddyfile is the repository's, with the shorter promise.
func caddyfile(within time.Duration) []byte {
	const line = "\t\tlimit ip {$SECKILL_LIMIT_IP:20/1s burst 40}\n"
	return []byte(strings.Replace(string(seckill.Caddyfile), line,
		line+"\t\tresolve_within "+within.String()+"\n", 1))
}

// The two ways Redis can keep its append-only file.
const (
	everysec = "everysec"
	always   = "always"
)

func redisArgs(fsync string) []string {
	return []string{
		"--appendfsync", fsync, "--enable-debug-command", "local", "--maxmemory-policy", "noeviction",
		"--user", kitUser, "on", ">" + kitPassword, "~*", "&*", "+@all",
	}
}

// setFsync changes how Redis keeps its file, now and after a restart.
func (f *Field) setFsync(ctx context.Context, fsync string) error {
	if fsync == f.fsync {
		return nil
	}
	f.Redis.Configure(redisArgs(fsync)...)
	if err := f.redis.ConfigSet(ctx, "appendfsync", fsync).Err(); err != nil {
		return fmt.Errorf("appendfsync %s: %w", fsync, err)
	}
	f.fsync = fsync
	return nil
}

// sale is what one round sells.
type sale struct {
	product string
	total   int64
	limit   int
}

// open makes the activity of a round and opens it.
func (f *Field) open(ctx context.Context, total int64, limit int) (sale, error) {
	f.sales++
	s := sale{fmt.Sprint("p", f.sales), total, limit}
	for _, args := range [][]string{
		{
			"activity", "create", "--product", s.product, "--title", "Sale", "--total", fmt.Sprint(total), "--limit", fmt.Sprint(limit),
			"--start", "2026-01-01T00:00:00+08:00", "--end", "2100-01-01T00:00:00+08:00", "--manual",
		},
		{"activity", "preheat", s.product},
		{"activity", "open", s.product},
	} {
		if _, err := f.Seckilld(ctx, args...); err != nil {
			return s, err
		}
	}
	return s, nil
}

// close ends the activity of a round, so that the backends' passes stay short.
func (f *Field) close(ctx context.Context, s sale) error {
	_, err := f.Seckilld(ctx, "activity", "close", s.product)
	return err
}
