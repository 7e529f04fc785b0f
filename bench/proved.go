package main

import (
	"bytes"
	"context"
	"crypto/rand"
	"fmt"
	"net/http"
	"time"

	"github.com/seckill-edge/seckill/bench/load"
	"github.com/seckill-edge/seckill/bench/login"
	"github.com/seckill-edge/seckill/caddyplugin/ticket"
	"github.com/seckill-edge/seckill/internal/order"
)

const (
	// provedBuyers come again and again, each with a token and a ticket of his own.
	provedBuyers = 20_000
	// provedSecret signs tokens and, with another purpose, tickets. It guards nothing.
	provedSecret = "a secret of the benchmark, which guards nothing"
	provedIssuer = "https://login.bench.test"
	// provedFor is how long tokens and tickets are good.
	provedFor = 50 * time.Second
)

// proof is what a buyer sends with a click; all are of one length.
type proof struct{ token, ticket string }

// proofs makes what the login service and the edge have given the buyers of a
// product, whose activity has the same id.
func proofs(product string) ([]proof, error) {
	keys, err := ticket.NewKeys([]string{provedSecret})
	if err != nil {
		return nil, err
	}
	shop, err := login.New("bench", provedSecret, provedIssuer, "shop")
	if err != nil {
		return nil, err
	}
	now := time.Now()
	all := make([]proof, provedBuyers)
	for i := range all {
		user := statusUser(i)
		if all[i].token, err = shop.Token(user, now.Add(provedFor)); err != nil {
			return nil, err
		}
		id, err := order.NewID(now, rand.Reader)
		if err != nil {
			return nil, err
		}
		holder := ticket.Holder{UserID: user, ProductID: product, ActivityID: product}
		all[i].ticket = keys.Sign(holder, order.OwnID(id, product, user), now.Add(provedFor))
	}
	return all, nil
}

// measureProved lets buyers with signed tokens and tickets click on a product that
// is sold out, where every limit and every proof is on.
func measureProved(ctx context.Context, s *stack, o options, r *report, bare float64) error {
	product, end, err := s.newSale(ctx, "proved", 1)
	if err != nil {
		return err
	}
	defer end()
	all, err := proofs(product)
	if err != nil {
		return fmt.Errorf("making tokens and tickets: %w", err)
	}
	head := "POST /seckill/" + product + " HTTP/1.1\r\nHost: " + s.proved + "\r\nContent-Length: 0\r\nAuthorization: Bearer "
	request := []byte(head + all[0].token + "\r\nSeckill-Ticket: " + all[0].ticket + "\r\n\r\n")
	inToken := len(head)
	inTicket := bytes.Index(request, []byte(all[0].ticket))
	refused, err := load.Do(ctx, load.Run{
		Addr: s.proved, Request: request, Connections: o.connections, Duration: o.duration(),
		Fill: func(request []byte, number uint64) {
			p := all[number%provedBuyers]
			copy(request[inToken:], p.token)
			copy(request[inTicket:], p.ticket)
		},
	})
	if err != nil {
		return fmt.Errorf("loading a sold-out product that wants proofs: %w", err)
	}
	// The buyer of the only unit may come again, and is told of his order again.
	if again := refused.Status[http.StatusAccepted]; again == 0 || again > refused.Total()/1000+1 || len(refused.Status) != 2 {
		return fmt.Errorf("one unit, but buyers with proofs were answered %v", refused.Status)
	}
	r.figure("refusals with all limits and proofs /s", refused.PerSecond(http.StatusGone))
	r.figure("with proofs p99 ms", ms(refused.P99))
	r.ratio("proved", refused.PerSecond(http.StatusGone)/bare)
	return nil
}
