package stack

import (
	"errors"

	"github.com/seckill-edge/seckill/e2e/proxy"
)

// Lines are the ways from one program to its servers, each through a proxy of its
// own; all nil in a stack without proxies. Database is nil for an edge.
type Lines struct {
	Redis, RabbitMQ, Database *proxy.Proxy
}

// addresses is where a program looks for its servers.
type addresses struct{ redis, rabbitmq, database string }

// connect makes the lines of one program.
func (s *Stack) connect(database bool) (Lines, error) {
	if !s.options.Proxied {
		return Lines{}, nil
	}
	var l Lines
	var err, err2, err3 error
	l.Redis, err = proxy.New(s.Redis.Addr())
	l.RabbitMQ, err2 = proxy.New(s.RabbitMQ.Addr())
	if database {
		l.Database, err3 = proxy.New(s.MariaDB.Addr())
	}
	return l, errors.Join(err, err2, err3)
}

// addressesOf is where a program with these lines finds its servers.
func (s *Stack) addressesOf(l Lines) addresses {
	at := [3]string{s.Redis.Addr(), s.RabbitMQ.Addr(), s.MariaDB.Addr()}
	for i, p := range [3]*proxy.Proxy{l.Redis, l.RabbitMQ, l.Database} {
		if p != nil {
			at[i] = p.Addr()
		}
	}
	return addresses{
		redis:    "redis://" + at[0] + "/0",
		rabbitmq: "amqp://guest:guest@" + at[1] + "/",
		database: "mysql://" + databaseUser + ":" + databasePassword + "@" + at[2] + "/" + databaseName,
	}
}

func (l Lines) close() {
	for _, p := range [3]*proxy.Proxy{l.Redis, l.RabbitMQ, l.Database} {
		if p != nil {
			p.Close()
		}
	}
}
