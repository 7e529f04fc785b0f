package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"
)

const (
	// auditTimeout bounds one look at the console.
	auditTimeout = 10 * time.Second
	// auditPause is the time between two looks.
	auditPause = 200 * time.Millisecond
)

// audit is the backend's consistent view of one activity: what Redis, the queue
// and SQL hold of it.
type audit struct {
	Total      int64            `json:"total"`
	Available  int64            `json:"available"`
	Frozen     int64            `json:"frozen"`
	Sold       int64            `json:"sold"`
	Outbox     int64            `json:"outbox"`
	Queued     int64            `json:"queued"`
	Orders     map[string]int64 `json:"orders"`
	Units      map[string]int64 `json:"units"`
	Drift      int64            `json:"drift"`
	Consistent bool             `json:"consistent"`
}

// taken is the units that Redis has given away; stored those of SQL's orders
// that hold stock.
func (a audit) taken() int64  { return a.Frozen + a.Sold }
func (a audit) stored() int64 { return a.Units["created"] + a.Units["paid"] }

// settled says that nothing is on its way any more. Units stay frozen while
// stored orders wait for their payment.
func (a audit) settled() bool {
	return a.Outbox == 0 && a.Queued == 0 && a.Consistent && (a.Frozen == 0 || a.Frozen == a.Units["created"])
}

// console is the backend's API.
type console struct {
	at     *url.URL
	token  string // bearer token; empty: none
	client *http.Client
}

// look asks once for the audit of a product.
func (c console) look(ctx context.Context, product string) (a audit, err error) {
	ctx, cancel := context.WithTimeout(ctx, auditTimeout)
	defer cancel()
	address := c.at.JoinPath("api", "activities", product, "audit").String()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return a, fmt.Errorf("making the audit's request: %w", err)
	}
	if c.token != "" {
		req.Header.Set("Authorization", "Bearer "+c.token)
	}
	resp, err := c.client.Do(req)
	if err != nil {
		return a, fmt.Errorf("asking the console: %w", err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxBody))
	if err != nil {
		return a, fmt.Errorf("reading the audit from %s: %w", address, err)
	}
	if resp.StatusCode != http.StatusOK {
		return a, fmt.Errorf("the console answers %s to GET %s: %.200s", resp.Status, address, body)
	}
	if err := json.Unmarshal(body, &a); err != nil {
		return a, fmt.Errorf("the audit from %s is not the expected JSON: %w", address, err)
	}
	return a, nil
}

// errUnsettled reports that ctx ended before everything was settled.
var errUnsettled = errors.New("not settled in time")

// settle asks until nothing is on its way any more. With errUnsettled it returns
// the last audit it saw, and what the last look failed with, if it did. thawed
// asks that no unit waits for its payment any more, either.
func (c console) settle(ctx context.Context, product string, thawed bool) (last audit, err error) {
	for {
		a, lookErr := c.look(ctx, product)
		if lookErr == nil {
			if last = a; a.settled() && (a.Frozen == 0 || !thawed) {
				return a, nil
			}
		}
		if !pause(ctx, auditPause) {
			if errors.Is(lookErr, ctx.Err()) {
				lookErr = nil // cut short: it says nothing of the console
			}
			return last, errors.Join(errUnsettled, lookErr)
		}
	}
}

// pause waits and says whether ctx lets us go on.
func pause(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}
