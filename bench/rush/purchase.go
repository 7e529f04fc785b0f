package main

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"net/http"
	"time"
)

const (
	// clickTries bounds how often a click is sent whose answer is lost.
	clickTries = 4
	// clickPause is the time before a lost answer is asked for again.
	clickPause = 200 * time.Millisecond
)

// purchase is one click of a buyer, under an Idempotency-Key of its own. A click whose
// answer was lost is repeated with the same key: the edge answers with the order that
// the first one got, so it counts once, as what it was told in the end.
func (c *crowd) purchase(ctx context.Context, client *http.Client, buyer int) (a answer) {
	proof := http.Header{"Idempotency-Key": {rand.Text()}}
	for try := 1; ; try++ {
		status, body, err := c.buy(ctx, client, buyer, proof)
		a = answer{outcome: outcome{kind: noAnswer}, err: err}
		if err == nil {
			a = classify(status, body)
		}
		if !a.unknown() || try == clickTries || !pause(ctx, clickPause) {
			return a
		}
	}
}

// buy sends a click once. Where there has to be a ticket it fetches one first, and adds
// it to proof: a repeat is sent with the same one, as the sale may be over by then. Who
// gets no ticket is told why, as a click would be.
func (c *crowd) buy(ctx context.Context, client *http.Client, buyer int, proof http.Header) (status int, body []byte, err error) {
	if c.tickets && proof.Get("Seckill-Ticket") == "" {
		status, _, body, err = c.ask(ctx, client, http.MethodPost, buyer, nil, c.product, "ticket")
		if err != nil || status != http.StatusOK {
			return status, body, err
		}
		var given struct {
			Ticket string `json:"ticket"`
		}
		// No edge answers 200 without one: it is told as unexpected.
		if _ = json.Unmarshal(body, &given); given.Ticket == "" {
			return status, body, nil
		}
		proof.Set("Seckill-Ticket", given.Ticket)
	}
	status, _, body, err = c.ask(ctx, client, http.MethodPost, buyer, proof, c.product)
	return status, body, err
}
