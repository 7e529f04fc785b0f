package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/spf13/pflag"
)

// The exit codes.
const (
	exitOK       = 0
	exitFailed   = 1
	exitUnusable = 2
)

// run is the command: it ends early, with what it has, when ctx does. It returns
// the exit code.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	s, err := parse(args, stdout)
	if errors.Is(err, pflag.ErrHelp) {
		return exitOK
	}
	if err != nil {
		fmt.Fprintf(stderr, "rush: %v\nSee rush --help.\n", err)
		return exitUnusable
	}
	interrupted := ctx
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()

	back := console{at: s.console, token: s.token, client: &http.Client{Transport: &http.Transport{}}}
	defer back.client.CloseIdleConnections()
	c := &crowd{
		edge: s.url, product: s.product, userHeader: s.userHeader, tickets: s.tickets, buyers: s.buyers,
		clicks: s.clicks, concurrency: s.concurrency, seed: s.seed, source: sourcesOf(s.url),
	}
	limit, err := c.visit(ctx)
	if err != nil {
		fmt.Fprintf(stderr, "rush: %v\n", err)
		return exitUnusable
	}
	var before audit
	if s.console != nil {
		if before, err = back.look(ctx, s.product); err != nil {
			fmt.Fprintf(stderr, "rush: %v\nIs --console the backend of this edge?\n", err)
			return exitUnusable
		}
	}

	t, lives := rush(ctx, c, s, back, stderr)
	r := newReport(s, t)
	r.Life = lives
	switch {
	case interrupted.Err() != nil:
		r.Error = "interrupted"
	case ctx.Err() != nil:
		r.Error = fmt.Sprintf("the crowd was not through within --timeout %s", s.timeout)
	case t.unknown == t.clicks:
		r.Error = fmt.Sprintf("no click got a proper answer (%v)", t.firstErr)
	case s.console != nil:
		after, err := back.settle(ctx, s.product, s.shares.any())
		if err != nil {
			r.Error = unsettled(interrupted, s, after, err)
			break
		}
		v := compare(t, c.learn(ctx, t.orders), before, after, limit)
		if lives != nil {
			v.lives(lives, before, after)
		}
		r.Check = &v
	}
	r.OK = r.Error == "" && (r.Check == nil || len(r.Check.Failures) == 0)
	if err := r.print(stdout, s.json); err != nil {
		fmt.Fprintf(stderr, "rush: printing the report: %v\n", err)
		return exitFailed
	}
	if !r.OK {
		return exitFailed
	}
	return exitOK
}

// rush lets the crowd in and counts. With shares it also does with the orders what
// they say, and lets buyers come again; what that was is nil without.
func rush(ctx context.Context, c *crowd, s settings, back console, stderr io.Writer) (*tally, *life) {
	t := newTally()
	bar := newProgress(stderr, c.buyers*c.clicks)
	start := time.Now()
	if !s.shares.any() {
		c.run(ctx, func(a answer) {
			t.add(a)
			bar.step()
		})
		t.buyers, t.elapsed = c.buyers, time.Since(start)
		bar.end()
		return t, nil
	}
	till := newTill(ctx, back, s.shares, c.seed)
	c.served = map[int]bool{}
	tell := func(a answer) {
		t.add(a)
		c.served[a.buyer] = c.served[a.buyer] || a.kind == queued || a.kind == noAnswer || a.kind == unexpected
		c.over = c.over || a.kind == "ended"
		if a.kind == queued {
			till.take(a.orderID)
		}
	}
	c.run(ctx, func(a answer) {
		tell(a)
		bar.step()
	})
	bar.end()
	till.Rounds = 1
	till.comeAgain(ctx, c, tell)
	till.close()
	t.buyers, t.elapsed = c.buyers, time.Since(start)
	return t, &till.life
}

// visit looks at the product's page once, so that a wrong address is found
// before a thousand buyers are sent there. limit is the units a buyer may have,
// 0 if the page does not say.
func (c *crowd) visit(ctx context.Context) (limit int, err error) {
	client := c.client(0)
	defer client.CloseIdleConnections()
	status, _, body, err := c.ask(ctx, client, http.MethodGet, 0, "", "seckill", c.product)
	if err != nil {
		return 0, fmt.Errorf("nothing answers at --url %s: %w; start an edge there, or name another address", c.edge, err)
	}
	if status == http.StatusNotFound {
		return 0, fmt.Errorf("the edge at --url %s has no product %s: create and preheat an activity, or name another --product", c.edge, c.product)
	}
	var page struct {
		Limit int `json:"limit"`
	}
	if status != http.StatusOK || json.Unmarshal(body, &page) != nil {
		return 0, nil
	}
	return page.Limit, nil
}

// unsettled says what was still on its way.
func unsettled(interrupted context.Context, s settings, last audit, err error) string {
	if interrupted.Err() != nil {
		return "interrupted while orders were on their way"
	}
	return fmt.Sprintf("%v (--timeout %s): in the outbox %d, in the queue %d, frozen %d, sold %d, stored %d, drift %d, consistent %t",
		err, s.timeout, last.Outbox, last.Queued, last.Frozen, last.Sold, last.stored(), last.Drift, last.Consistent)
}
