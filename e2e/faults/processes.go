package faults

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/seckill-edge/seckill/e2e/history"
	"github.com/seckill-edge/seckill/e2e/stack"
)

// victim is a process that a fault can hit.
type victim struct {
	kill, stop, pause, resume func() error
	start                     func(context.Context) error
	// breaks is what is broken while it has ended; Cause is set by how it is hit.
	breaks history.Outage
}

func (f *Field) edge(e *stack.Edge) victim {
	return victim{
		kill: e.Kill, stop: e.Stop, pause: e.Pause, resume: e.Resume,
		start:  func(ctx context.Context) error { return f.StartEdge(ctx, e) },
		breaks: breaks(history.Program, history.Away, edgeName(slices.Index(f.Edges, e))),
	}
}

func (f *Field) backend(b *stack.Backend) victim {
	return victim{
		kill: b.Kill, stop: b.Stop, pause: b.Pause, resume: b.Resume,
		start:  func(ctx context.Context) error { return f.StartBackend(ctx, b) },
		breaks: breaks(history.Program, history.Away, backendName(slices.Index(f.Backends, b))),
	}
}

func anyEdge(f *Field, r *rand.Rand) victim    { return f.edge(f.Edges[r.IntN(len(f.Edges))]) }
func anyBackend(f *Field, r *rand.Rand) victim { return f.backend(f.Backends[r.IntN(len(f.Backends))]) }

func theRedis(f *Field, _ *rand.Rand) victim {
	return victim{
		kill: f.Redis.Kill, stop: f.Redis.Stop, pause: f.Redis.Pause, resume: f.Redis.Resume, start: f.Redis.Restart,
		breaks: breaks(history.Redis, history.Away),
	}
}

func theRabbitMQ(f *Field, _ *rand.Rand) victim {
	q := f.RabbitMQ
	return victim{kill: q.Kill, stop: q.Stop, pause: q.Pause, resume: q.Resume, start: q.Restart, breaks: breaks(history.Broker, history.Away)}
}

func theMariaDB(f *Field, _ *rand.Rand) victim {
	m := f.MariaDB
	return victim{kill: m.Kill, stop: m.Stop, pause: m.Pause, resume: m.Resume, start: m.Restart, breaks: breaks(history.Database, history.Away)}
}

// choose picks a victim.
type choose func(*Field, *rand.Rand) victim

// killed, stopped, restarted: SIGKILL and a start, SIGSTOP and SIGCONT, SIGTERM
// and a start.
func killed(who ...choose) func(*Field, *rand.Rand) Fault {
	return hit(who, history.Away, func(v victim) error { return v.kill() }, victim.begin)
}

func stopped(who ...choose) func(*Field, *rand.Rand) Fault {
	return hit(who, history.Silent, func(v victim) error { return v.pause() }, func(v victim, _ context.Context) error { return v.resume() })
}

func restarted(who ...choose) func(*Field, *rand.Rand) Fault {
	return hit(who, history.Away, func(v victim) error { return v.stop() }, victim.begin)
}

func (v victim) begin(ctx context.Context) error { return v.start(ctx) }

// hit makes a fault of what is done to its victims and what heals them.
func hit(who []choose, cause history.Cause, do func(victim) error, heal func(victim, context.Context) error) func(*Field, *rand.Rand) Fault {
	return func(f *Field, r *rand.Rand) Fault {
		all := choice(who, f, r)
		var broken []history.Outage
		for _, v := range all {
			v.breaks.Cause = cause
			broken = append(broken, v.breaks)
		}
		return Fault{
			Inject: func(context.Context) error { return each(all, do) },
			Heal:   func(ctx context.Context) error { return each(all, func(v victim) error { return heal(v, ctx) }) },
			Breaks: atOnce(broken),
		}
	}
}

func choice(who []choose, f *Field, r *rand.Rand) []victim {
	all := make([]victim, len(who))
	for i, one := range who {
		all[i] = one(f, r)
	}
	return all
}

func each(all []victim, do func(victim) error) error {
	var errs []error
	for _, v := range all {
		errs = append(errs, do(v))
	}
	return errors.Join(errs...)
}

func processKinds(within time.Duration) []Kind {
	return []Kind{
		{Name: "edge killed", Last: short, Make: killed(anyEdge)},
		{Name: "edge stopped", Last: long, Make: stopped(anyEdge)},
		{Name: "edge restarted", Last: short, Make: restarted(anyEdge)},
		{Name: "backend killed", Last: short, Make: killed(anyBackend)},
		{Name: "backend stopped", Last: long, Make: stopped(anyBackend)},
		{Name: "backend restarted", Last: short, Make: restarted(anyBackend)},
		{Name: "backends killed", Last: short, Make: killed(everyBackend...)},
		{Name: "redis killed", Last: short, Make: killed(theRedis)},
		{Name: "redis killed, always", Fsync: always, Last: short, Make: killed(theRedis)},
		{Name: "redis stopped", Last: short, Make: stopped(theRedis)},
		{Name: "redis stopped, few units", Before: soon, Last: short, Total: 40, AskAgain: within + 2*time.Second, Make: stopped(theRedis)},
		{Name: "redis stopped for long", Last: plain, Make: stopped(theRedis)},
		{Name: "redis killed for long", Last: plain, Make: killed(theRedis)},
		{Name: "redis restarted", Last: short, Make: restarted(theRedis)},
		{Name: "redis and edge killed", Last: short, Forgetful: true, Make: killed(theRedis, anyEdge)},
		{Name: "redis and edge killed, always", Fsync: always, Last: short, Make: killed(theRedis, anyEdge)},
		{Name: "redis and backend killed", Last: short, Make: killed(theRedis, anyBackend)},
		{Name: "rabbitmq killed", Last: short, Make: killed(theRabbitMQ)},
		{Name: "rabbitmq stopped", Last: long, Make: stopped(theRabbitMQ)},
		{Name: "rabbitmq killed for long", Last: beyond(within), Make: killed(theRabbitMQ)},
		{Name: "rabbitmq stopped for long", Last: beyond(within), Make: stopped(theRabbitMQ)},
		{Name: "rabbitmq and edge killed", Last: short, Make: killed(theRabbitMQ, anyEdge)},
		{Name: "mariadb killed", Last: short, Make: killed(theMariaDB)},
		{Name: "mariadb stopped", Last: long, Make: stopped(theMariaDB)},
		{Name: "mariadb killed for long", Last: plain, Make: killed(theMariaDB)},
		{Name: "mariadb stopped for long", Last: plain, Make: stopped(theMariaDB)},
		{Name: "mariadb and backend killed", Last: short, Make: killed(theMariaDB, anyBackend)},
		{Name: "everything killed", Last: moment, Forgetful: true, Make: killed(everything...)},
		{Name: "everything killed, always", Fsync: always, Last: moment, Make: killed(everything...)},
	}
}

var everyBackend = []choose{
	func(f *Field, _ *rand.Rand) victim { return f.backend(f.Backends[0]) },
	func(f *Field, _ *rand.Rand) victim { return f.backend(f.Backends[1]) },
}

// everything is what a power cut hits, in the order in which it is started again.
var everything = append([]choose{
	theRedis, theMariaDB, theRabbitMQ,
	func(f *Field, _ *rand.Rand) victim { return f.edge(f.Edges[0]) },
	func(f *Field, _ *rand.Rand) victim { return f.edge(f.Edges[1]) },
}, everyBackend...)
