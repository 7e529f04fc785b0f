package main

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// life is what the buyers did with their orders; its JSON is part of the report.
type life struct {
	// Paid, Cancelled and Abandoned are orders. Late ones of Paid came after the
	// expiry: their money is due back.
	Paid      int64 `json:"paid"`
	Late      int64 `json:"late"`
	Cancelled int64 `json:"cancelled"`
	Abandoned int64 `json:"abandoned"`
	// Rounds is how often buyers came; the first time all of them.
	Rounds int `json:"rounds"`
	// Failed are payments and cancellations that were refused.
	Failed  int64 `json:"failed"`
	failure atomic.Pointer[error]
}

// shares are percentages of the orders that a crowd has won; all 0 means that
// nobody does anything with them.
type shares struct{ pay, cancel, abandon int }

func (s shares) any() bool { return s != shares{} }

// deed is what a buyer does with his order.
type deed int

const (
	pays deed = iota
	cancels
	abandons
)

// deck is a hundred deeds in the given shares, shuffled: every hundred orders have
// exactly these shares.
func (s shares) deck(seed uint64) []deed {
	deck := slices.Concat(slices.Repeat([]deed{pays}, s.pay), slices.Repeat([]deed{cancels}, s.cancel),
		slices.Repeat([]deed{abandons}, s.abandon))
	rand.New(rand.NewPCG(seed, 1)).Shuffle(len(deck), func(i, j int) { deck[i], deck[j] = deck[j], deck[i] })
	return deck
}

const (
	// cashiers pay and cancel at the same time; waitingOrders bounds the orders
	// that wait for one.
	cashiers      = 16
	waitingOrders = 1024
	lifePause     = 200 * time.Millisecond
)

// won is an order and what is to be done with it.
type won struct {
	id string
	do deed
}

// till takes the orders that were won and does with them what the shares say.
type till struct {
	life
	back    console
	deck    []deed
	orders  chan won
	pending atomic.Int64
	open    sync.WaitGroup
	dealt   int
}

func newTill(ctx context.Context, back console, s shares, seed uint64) *till {
	t := &till{back: back, deck: s.deck(seed), orders: make(chan won, waitingOrders)}
	for range cashiers {
		t.open.Go(func() {
			for o := range t.orders {
				t.serve(ctx, o)
				t.pending.Add(-1)
			}
		})
	}
	return t
}

// take deals the next deed to an order. One caller at a time.
func (t *till) take(id string) {
	do := t.deck[t.dealt%len(t.deck)]
	t.dealt++
	if do == abandons {
		atomic.AddInt64(&t.Abandoned, 1)
		return
	}
	t.pending.Add(1)
	t.orders <- won{id, do}
}

// close waits until all are served.
func (t *till) close() {
	close(t.orders)
	t.open.Wait()
}

// serve pays or cancels one order, and tries again while it is not stored yet or
// the backend is busy.
func (t *till) serve(ctx context.Context, o won) {
	verb, body := "paid", fmt.Sprintf(`{"payment_id":"rush-%s"}`, o.id)
	if o.do == cancels {
		verb, body = "cancel", `{"reason":"rush"}`
	}
	for {
		status, answer, err := t.back.call(ctx, http.MethodPost, body, "api", "orders", o.id, verb)
		switch {
		case err == nil && status == http.StatusOK && o.do == cancels:
			atomic.AddInt64(&t.Cancelled, 1)
			return
		case err == nil && status == http.StatusOK:
			atomic.AddInt64(&t.Paid, 1)
			var paid struct{ Outcome string }
			if json.Unmarshal(answer, &paid) == nil && paid.Outcome != "applied" {
				atomic.AddInt64(&t.Late, 1)
			}
			return
		case err == nil && status == http.StatusConflict && o.do == cancels:
			// The scanner was faster: its units are back all the same.
			atomic.AddInt64(&t.Abandoned, 1)
			return
		case err == nil && status != http.StatusNotFound && status < 500:
			err = fmt.Errorf("POST %s of order %s answers %d: %.200s", verb, o.id, status, answer)
			t.failure.CompareAndSwap(nil, &err)
			atomic.AddInt64(&t.Failed, 1)
			return
		}
		if !pause(ctx, lifePause) {
			return
		}
	}
}

// comeAgain lets the buyers who have nothing yet come for units that others have
// given back, until everything is paid for, everybody has had an order, the sale
// is over, or ctx ends.
func (t *till) comeAgain(ctx context.Context, c *crowd, tell func(answer)) {
	waiting := rand.New(rand.NewPCG(c.seed, 2)).Perm(c.buyers)
	for {
		waiting = slices.DeleteFunc(waiting, func(b int) bool { return c.served[b] })
		if t.pending.Load() == 0 {
			a, err := t.back.look(ctx, c.product)
			switch {
			case err != nil:
			case len(waiting) == 0, c.over, a.Available == 0 && a.Frozen == 0 && a.Outbox == 0 && a.Queued == 0:
				return
			case a.Available > 0:
				// Some more than there are units: they do not know how many are left.
				n := min(len(waiting), 2*int(a.Available)+c.concurrency)
				c.let(ctx, waiting[:n], tell)
				waiting = append(waiting[n:], waiting[:n]...)
				t.Rounds++
			}
		}
		if !pause(ctx, lifePause) {
			return
		}
	}
}
