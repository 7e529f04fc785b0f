package backend

import (
	"context"
	"errors"
	"fmt"

	"github.com/seckill-edge/seckill/backend/duty"
	"github.com/seckill-edge/seckill/backend/readiness"
	"github.com/seckill-edge/seckill/backend/store"
	"github.com/seckill-edge/seckill/internal/queue"
	"github.com/seckill-edge/seckill/lua"
)

// NotReady names the parts that keep orders from being stored, with the reason; empty
// when all is well. It tries, within ctx, what the work needs of each server, writes
// included. See package readiness.
func (b *Backend) NotReady(ctx context.Context) map[string]error {
	type check struct {
		name string
		err  error
	}
	checks := []func() check{
		func() check { return check{readiness.Redis, lua.Writable(ctx, b.deps.Redis)} },
		func() check {
			err := b.databaseReady(ctx)
			if store.LacksSchema(err) || errors.Is(err, store.ErrNewerSchema) {
				return check{readiness.Schema, err}
			}
			return check{readiness.Database, err}
		},
		func() check { return check{readiness.Queue, queue.Probe(ctx, b.publisher)} },
		func() check { return check{readiness.Consumer, b.consumer.Ready()} },
	}
	answers := make(chan check, len(checks))
	for _, ask := range checks {
		go func() {
			answer := check{name: readiness.Backend}
			if err := duty.Safely(func() error { answer = ask(); return nil }); err != nil {
				answer.err = err
			}
			answers <- answer
		}()
	}
	missing := map[string]error{}
	for range checks {
		if c := <-answers; c.err != nil {
			missing[c.name] = c.err
		}
	}
	return missing
}

// databaseReady tries a read and a write, unless the database has lost something.
func (b *Backend) databaseReady(ctx context.Context) error {
	if err := b.deps.Store.SchemaReady(ctx); err != nil {
		return err
	}
	if err := b.tide.Err(); errors.Is(err, store.ErrBehind) {
		return err
	}
	return b.deps.Store.Writable(ctx)
}

// Warnings name what an operator should look after though orders are stored, with
// the reason. It asks the broker within ctx.
func (b *Backend) Warnings(ctx context.Context) map[string]string {
	out := map[string]string{}
	for kind, words := range b.guard.problems() {
		out["redis_"+string(kind)] = words
	}
	switch _, dead, err := b.deps.Broker.Depth(ctx); {
	case err != nil: // NotReady says so
	case dead == 1:
		out["dead_letters"] = "1 dead letter: seckilld dead list"
	case dead > 1:
		out["dead_letters"] = fmt.Sprintf("%d dead letters: seckilld dead list", dead)
	}
	return out
}
