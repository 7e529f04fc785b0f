package main

import (
	"context"
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
	exitRefused  = 3
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
		edge: s.edge(), product: s.product, userHeader: s.userHeader, tickets: s.tickets, buyers: s.buyers,
		clicks: s.clicks, concurrency: s.concurrency, seed: s.seed, source: sourcesOf(s.url),
	}
	if err := c.sign(s.tokens, time.Now().Add(s.timeout+tokenGrace)); err != nil {
		fmt.Fprintf(stderr, "rush: %v\nSee rush --help.\n", err)
		return exitUnusable
	}
	limit, err := c.visit(ctx)
	if err != nil {
		fmt.Fprintf(stderr, "rush: %v\n", err)
		return exitUnusable
	}
	before, err := back.before(ctx, s)
	if err != nil {
		fmt.Fprintf(stderr, "rush: %v\n", err)
		return exitUnusable
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
		// Also when all were refused: the stores have to agree all the same.
		after, err := back.settle(ctx, s.product, s.shares.any())
		if err != nil {
			r.Error = unsettled(interrupted, s, after, err)
			break
		}
		r.Check = c.verdict(ctx, t, lives, before, after, limit)
	}
	r.conclude(t)
	if err := r.print(stdout, s.json); err != nil {
		fmt.Fprintf(stderr, "rush: printing the report: %v\n", err)
		return exitFailed
	}
	switch {
	case r.OK:
		return exitOK
	case r.AllRefused:
		return exitRefused
	}
	return exitFailed
}

// verdict asks for the fate of every promised order and judges. lives is nil
// without --pay, limit 0 if it is not known.
func (c *crowd) verdict(ctx context.Context, t *tally, lives *life, before, after audit, limit int) *verdict {
	v := compare(t, c.learn(ctx, t.orders), before, after)
	if b, units, found := t.greedy(limit); found && limit > 0 {
		v.fail(true, "%s was told that %d units are his, the limit is %d", c.name(b), units, limit)
	}
	if lives != nil {
		v.lives(lives, before, after)
	}
	return &v
}

// before looks at the stores before anybody clicks, if there is a console.
func (c console) before(ctx context.Context, s settings) (a audit, err error) {
	if c.at == nil {
		return a, nil
	}
	sale, err := c.activity(ctx, s.product)
	if err == nil {
		a, err = c.look(ctx, s.product)
	}
	if err != nil {
		return a, fmt.Errorf("%w\nIs --console the backend of this edge?", err)
	}
	if s.shares.any() && sale.PayWindowSeconds == 0 {
		return a, fmt.Errorf("--pay, --cancel and --abandon: product %s is sold at once, nobody pays for it; "+
			"create its activity with a pay window (seckilld activity create --pay-window 15m, standalone --pay-window 5s)", s.product)
	}
	return a, nil
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

// unsettled says what was still on its way.
func unsettled(interrupted context.Context, s settings, last audit, err error) string {
	if interrupted.Err() != nil {
		return "interrupted while orders were on their way"
	}
	queued := fmt.Sprint(last.Queued)
	if !last.QueueKnown {
		queued = "unknown"
	}
	return fmt.Sprintf("%v (--timeout %s): in the outbox %d, in the queue %s, frozen %d, sold %d, stored %d, drift %d, consistent %t",
		err, s.timeout, last.Outbox, queued, last.Frozen, last.Sold, last.stored(), last.Drift, last.Consistent)
}
