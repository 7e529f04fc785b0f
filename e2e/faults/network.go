package faults

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/seckill-edge/seckill/e2e/history"
	"github.com/seckill-edge/seckill/e2e/proxy"
	"github.com/seckill-edge/seckill/e2e/stack"
)

// pick takes one line out of a program's.
type pick struct {
	server history.Server
	of     func(stack.Lines) *proxy.Proxy
}

var (
	toRedis    = pick{history.Redis, func(l stack.Lines) *proxy.Proxy { return l.Redis }}
	toRabbitMQ = pick{history.Broker, func(l stack.Lines) *proxy.Proxy { return l.RabbitMQ }}
	toDatabase = pick{history.Database, func(l stack.Lines) *proxy.Proxy { return l.Database }}
)

// wire is the line of one program.
type wire struct {
	*proxy.Proxy
	program string
}

// lines are those between some programs and one server: of all edges, all
// backends, all of both, or one program.
func (f *Field) lines(p pick, r *rand.Rand) []wire {
	var ofEdges, ofBackends []wire
	for i, e := range f.Edges {
		if l := p.of(e.Lines); l != nil {
			ofEdges = append(ofEdges, wire{l, edgeName(i)})
		}
	}
	for i, b := range f.Backends {
		ofBackends = append(ofBackends, wire{p.of(b.Lines), backendName(i)})
	}
	all := slices.Concat(ofEdges, ofBackends)
	switch n := r.IntN(4); {
	case n == 0:
		return all
	case n == 1 && len(ofEdges) > 0:
		return ofEdges
	case n == 2:
		return ofBackends
	}
	return []wire{all[r.IntN(len(all))]}
}

// spoiled treats lines in a way that is drawn.
func spoiled(p pick, cause history.Cause, draw func(*rand.Rand) proxy.Mode) func(*Field, *rand.Rand) Fault {
	return func(f *Field, r *rand.Rand) Fault {
		lines, mode := f.lines(p, r), draw(r)
		set := func(m proxy.Mode) error {
			var errs []error
			for _, line := range lines {
				errs = append(errs, line.Set(m))
			}
			return errors.Join(errs...)
		}
		// All of its backends without a database are the database's absence.
		broken := breaks(p.server, cause)
		if everybody := len(f.Edges) + len(f.Backends); len(lines) < everybody && (p.server != history.Database || len(lines) < len(f.Backends)) {
			for _, l := range lines {
				broken.Programs = append(broken.Programs, l.program)
			}
		}
		return Fault{
			Breaks: []history.Outage{broken},
			Inject: func(context.Context) error { return set(mode) },
			Heal:   func(context.Context) error { return set(proxy.Mode{}) },
		}
	}
}

func cut(*rand.Rand) proxy.Mode { return proxy.Mode{Cut: true} }

// slow is a delay around the time-outs: 100 to 700 ms a round trip.
func slow(r *rand.Rand) proxy.Mode {
	way := proxy.Way{Delay: between(r, [2]time.Duration{50 * time.Millisecond, 350 * time.Millisecond})}
	return proxy.Mode{Up: way, Down: way}
}

// deaf loses what goes one way or both; mostly the answers, which is the worst:
// everything is done, and nobody knows.
func deaf(r *rand.Rand) proxy.Mode {
	lost := proxy.Way{Deaf: true}
	switch r.IntN(4) {
	case 0:
		return proxy.Mode{Up: lost}
	case 1:
		return proxy.Mode{Up: lost, Down: lost}
	}
	return proxy.Mode{Down: lost}
}

// deafAndKilled: an edge cannot hear Redis, tells its buyers "queued" all the same,
// and dies with what it knows of them.
func deafAndKilled(f *Field, r *rand.Rand) Fault {
	e, after := f.Edges[r.IntN(len(f.Edges))], between(r, short)
	line, name := e.Redis, edgeName(slices.Index(f.Edges, e))
	return Fault{
		Breaks: []history.Outage{breaks(history.Redis, history.Fitful, name), breaks(history.Program, history.Fitful, name)},
		Inject: func(ctx context.Context) error {
			if err := line.Set(proxy.Mode{Down: proxy.Way{Deaf: true}}); err != nil {
				return err
			}
			return errors.Join(pause(ctx, after), e.Kill(), line.Set(proxy.Mode{}))
		},
		Heal: func(ctx context.Context) error { return f.StartEdge(ctx, e) },
	}
}

func networkKinds() []Kind {
	return []Kind{
		{Name: "line to redis cut", Last: short, Make: spoiled(toRedis, history.Away, cut)},
		{Name: "line to redis slow", Last: long, Make: spoiled(toRedis, history.Fitful, slow)},
		{Name: "line to redis deaf", Last: short, Make: spoiled(toRedis, history.Silent, deaf)},
		{Name: "line to redis deaf, edge killed", Last: short, Make: deafAndKilled},
		{Name: "line to rabbitmq cut", Last: long, Make: spoiled(toRabbitMQ, history.Away, cut)},
		{Name: "line to rabbitmq slow", Last: long, Make: spoiled(toRabbitMQ, history.Fitful, slow)},
		{Name: "line to rabbitmq deaf", Last: long, Make: spoiled(toRabbitMQ, history.Silent, deaf)},
		{Name: "line to mariadb cut", Last: long, Make: spoiled(toDatabase, history.Away, cut)},
		{Name: "line to mariadb slow", Last: long, Make: spoiled(toDatabase, history.Fitful, slow)},
		{Name: "line to mariadb deaf", Last: long, Make: spoiled(toDatabase, history.Silent, deaf)},
	}
}
