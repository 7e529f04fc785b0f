package main

import (
	"cmp"
	"context"
	"encoding/json"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/seckill-edge/seckill/internal/order"
)

// unknownOrder is the fate of an order that was promised and that the edge does
// not know.
const unknownOrder = order.State("unknown")

// noReason stands for the reason of a rejection that nobody knows.
const noReason = order.Reason("unknown")

// fates is what became of the promised orders, as their buyers read it.
type fates struct {
	// Orders and units by state.
	Orders map[order.State]int `json:"orders"`
	Units  map[order.State]int `json:"units"`
	// Reasons counts the rejected orders by what their buyers read.
	Reasons map[order.Reason]int `json:"reasons,omitempty"`
	// lost is one order that the edge does not know, if there is any.
	lost string
}

// learn reads the fate of every promised order as its buyer, until it is final
// or ctx ends.
func (c *crowd) learn(ctx context.Context, promised map[string]told) fates {
	f := fates{Orders: map[order.State]int{}, Units: map[order.State]int{}, Reasons: map[order.Reason]int{}}
	ids := make(chan string)
	var mu sync.Mutex
	var workers sync.WaitGroup
	for range min(c.concurrency, len(promised)) {
		workers.Go(func() {
			for id := range ids {
				state, reason := c.follow(ctx, promised[id].buyer, id)
				mu.Lock()
				f.Orders[state]++
				f.Units[state] += promised[id].quantity
				if state == unknownOrder {
					f.lost = id
				}
				if state == order.Rejected {
					f.Reasons[cmp.Or(reason, noReason)]++
				}
				mu.Unlock()
			}
		})
	}
	for id := range promised {
		ids <- id // follow ends with ctx, so somebody takes it
	}
	close(ids)
	workers.Wait()
	return f
}

// follow asks for one order until its state is no longer queued. reason is why it
// was rejected, if anybody knows.
func (c *crowd) follow(ctx context.Context, buyer int, id string) (state order.State, reason order.Reason) {
	client := c.client(buyer)
	defer client.CloseIdleConnections()
	for {
		status, header, body, err := c.ask(ctx, client, http.MethodGet, buyer, nil, c.product, "orders", id)
		if err == nil && status == http.StatusNotFound {
			return unknownOrder, ""
		}
		var answer struct {
			Status order.State  `json:"status"`
			Reason order.Reason `json:"reason"`
		}
		if err == nil && status == http.StatusOK && json.Unmarshal(body, &answer) == nil &&
			answer.Status != "" && answer.Status != order.Queued {
			return answer.Status, answer.Reason
		}
		if !pause(ctx, retryAfter(header)) {
			return order.Queued, ""
		}
	}
}

// retryAfter is how long the edge asks us to wait, between a fifth of a second
// and five.
func retryAfter(h http.Header) time.Duration {
	seconds, err := strconv.Atoi(h.Get("Retry-After"))
	if err != nil || seconds < 1 {
		return 200 * time.Millisecond
	}
	return time.Duration(min(seconds, 5)) * time.Second
}
