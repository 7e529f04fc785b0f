package main

import (
	"context"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net"
	"net/http"
	"net/url"
	"sync"
	"time"
)

// clickTimeout bounds one click, from dialling to the last byte of the answer.
const clickTimeout = 15 * time.Second

// maxBody is the most bytes read of an answer.
const maxBody = 64 << 10

// crowd is a number of buyers who all want the same thing.
type crowd struct {
	edge        *url.URL // with the prefix of its calls, such as /seckill
	product     string
	userHeader  string
	tokens      []string // what proves who each buyer is; nil: he says so in userHeader
	tickets     bool     // fetch a ticket for each click
	buyers      int
	clicks      int                      // a buyer, one after the other over one connection
	concurrency int                      // buyers at a time
	seed        uint64                   // of the buyers' names and of the order in which they come
	source      func(buyer int) net.Addr // nil: the system chooses

	// served are buyers who were promised an order, or perhaps; over says that
	// somebody was told that the sale has ended. Both belong to who is told.
	served map[int]bool
	over   bool
}

// run lets every buyer click and hands each answer to tell, one at a time. It
// returns when all have clicked or ctx has ended; a click that ctx interrupts is
// told as one without an answer, later ones never happen.
func (c *crowd) run(ctx context.Context, tell func(answer)) {
	c.let(ctx, rand.New(rand.NewPCG(c.seed, 0)).Perm(c.buyers), tell)
}

// let lets some buyers click, as run does.
func (c *crowd) let(ctx context.Context, who []int, tell func(answer)) {
	buyers := make(chan int)
	answers := make(chan answer, c.concurrency)
	var workers sync.WaitGroup
	for range min(c.concurrency, len(who)) {
		workers.Go(func() {
			for b := range buyers {
				c.shop(ctx, b, answers)
			}
		})
	}
	go func() {
		defer close(answers)
		defer workers.Wait()
		defer close(buyers)
		for _, b := range who {
			select {
			case buyers <- b:
			case <-ctx.Done():
				return
			}
		}
	}()
	for a := range answers {
		tell(a)
	}
}

// shop is one buyer's visit.
func (c *crowd) shop(ctx context.Context, buyer int, out chan<- answer) {
	client := c.client(buyer)
	defer client.CloseIdleConnections()
	for range c.clicks {
		if ctx.Err() != nil {
			return
		}
		start := time.Now()
		a := c.purchase(ctx, client, buyer)
		a.buyer, a.took = buyer, time.Since(start)
		out <- a
	}
}

// client makes the browser of one buyer: one connection, kept alive, from his
// own address.
func (c *crowd) client(buyer int) *http.Client {
	dialer := &net.Dialer{Timeout: clickTimeout}
	if c.source != nil {
		dialer.LocalAddr = c.source(buyer)
	}
	return &http.Client{
		Transport: &http.Transport{
			DialContext:        dialer.DialContext,
			MaxConnsPerHost:    1,
			DisableCompression: true,
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		Timeout:       clickTimeout,
	}
}

// name is what a buyer calls himself: under another seed somebody else comes.
func (c *crowd) name(buyer int) string { return fmt.Sprintf("buyer-%d-%d", c.seed, buyer) }

// ask sends one request as a buyer, with the fields of proof. An error means that it is
// not known what the edge did with it.
func (c *crowd) ask(ctx context.Context, client *http.Client, method string, buyer int, proof http.Header, path ...string) (status int, h http.Header, body []byte, err error) {
	req, err := http.NewRequestWithContext(ctx, method, c.edge.JoinPath(path...).String(), nil)
	if err != nil {
		return 0, nil, nil, fmt.Errorf("making a request: %w", err)
	}
	if c.tokens != nil {
		req.Header.Set("Authorization", "Bearer "+c.tokens[buyer])
	} else {
		req.Header.Set(c.userHeader, c.name(buyer))
	}
	maps.Copy(req.Header, proof)
	resp, err := client.Do(req)
	if err != nil {
		return 0, nil, nil, err
	}
	defer resp.Body.Close()
	body, err = io.ReadAll(io.LimitReader(resp.Body, maxBody))
	if err != nil {
		return 0, nil, nil, fmt.Errorf("reading the answer: %w", err)
	}
	return resp.StatusCode, resp.Header, body, nil
}
