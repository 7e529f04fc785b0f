package faults

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/seckill-edge/seckill/e2e/proxy"
	"github.com/seckill-edge/seckill/e2e/stack"
)

// pick takes one line out of a program's.
type pick func(stack.Lines) *proxy.Proxy

func toRedis(l stack.Lines) *proxy.Proxy    { return l.Redis }
func toRabbitMQ(l stack.Lines) *proxy.Proxy { return l.RabbitMQ }
func toDatabase(l stack.Lines) *proxy.Proxy { return l.Database }

// lines are those between some programs and one server: of all edges, all
// backends, all of both, or one program.
func (f *Field) lines(p pick, r *rand.Rand) []*proxy.Proxy {
	var ofEdges, ofBackends []*proxy.Proxy
	for _, e := range f.Edges {
		if line := p(e.Lines); line != nil {
			ofEdges = append(ofEdges, line)
		}
	}
	for _, b := range f.Backends {
		ofBackends = append(ofBackends, p(b.Lines))
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
	return []*proxy.Proxy{all[r.IntN(len(all))]}
}

// spoiled treats lines in a way that is drawn.
func spoiled(p pick, draw func(*rand.Rand) proxy.Mode) func(*Field, *rand.Rand) Fault {
	return func(f *Field, r *rand.Rand) Fault {
		lines, mode := f.lines(p, r), draw(r)
		set := func(m proxy.Mode) error {
			var errs []error
			for _, line := range lines {
				errs = append(errs, line.Set(m))
			}
			return errors.Join(errs...)
		}
		return Fault{
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
	line := e.Redis
	return Fault{
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
		{Name: "line to redis cut", Last: short, Make: spoiled(toRedis, cut)},
		{Name: "line to redis slow", Last: long, Make: spoiled(toRedis, slow)},
		{Name: "line to redis deaf", Last: short, Make: spoiled(toRedis, deaf)},
		{Name: "line to redis deaf, edge killed", Last: short, Make: deafAndKilled},
		{Name: "line to rabbitmq cut", Last: long, Make: spoiled(toRabbitMQ, cut)},
		{Name: "line to rabbitmq slow", Last: long, Make: spoiled(toRabbitMQ, slow)},
		{Name: "line to rabbitmq deaf", Last: long, Make: spoiled(toRabbitMQ, deaf)},
		{Name: "line to mariadb cut", Last: long, Make: spoiled(toDatabase, cut)},
		{Name: "line to mariadb slow", Last: long, Make: spoiled(toDatabase, slow)},
		{Name: "line to mariadb deaf", Last: long, Make: spoiled(toDatabase, deaf)},
	}
}
