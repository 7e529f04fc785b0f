package backend

import (
	"context"
	"errors"
	"fmt"

	"github.com/seckill-edge/seckill/backend/duty"
	"github.com/seckill-edge/seckill/backend/store"
)

// NotReady names what keeps orders from being stored, with the reason; empty
// when all is well. It asks each server within ctx.
func (b *Backend) NotReady(ctx context.Context) map[string]error {
	type check struct {
		name string
		err  error
	}
	checks := []func() check{
		func() check { return check{"redis", b.deps.Redis.Ping(ctx).Err()} },
		func() check {
			err := b.deps.Store.SchemaReady(ctx)
			if store.LacksSchema(err) || errors.Is(err, store.ErrNewerSchema) {
				return check{"schema", err}
			}
			if behind := b.tide.Err(); err == nil && errors.Is(behind, store.ErrBehind) {
				err = behind
			}
			return check{"database", err}
		},
		func() check { return check{"queue", b.publisher.Ready()} },
		func() check { return check{"consumer", b.consumer.Ready()} },
	}
	answers := make(chan check, len(checks))
	for _, ask := range checks {
		go func() {
			answer := check{name: "backend"}
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
