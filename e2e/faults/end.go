package faults

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/seckill-edge/seckill/e2e/history"
	"github.com/seckill-edge/seckill/internal/order"
	"github.com/seckill-edge/seckill/lua"
)

// read is what the stores hold now. It uses the scripts for Redis's counters,
// which must be read at one instant, and no code of ours for SQL.
func (f *Field) read(ctx context.Context, s sale) (history.End, error) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	var e history.End
	snapshot, found, err := lua.Audit(ctx, f.redis, s.product)
	if err != nil {
		return e, err
	}
	e.Open = found && snapshot.State == lua.Open && snapshot.Proven()
	e.Available, e.Frozen, e.Sold, e.Total, e.Outbox = snapshot.Available, snapshot.Frozen, snapshot.Sold, snapshot.Total, snapshot.Outbox
	records, err := f.redis.HGetAll(ctx, lua.KeysOf(s.product).Users).Result()
	if err != nil {
		return e, fmt.Errorf("reading the buyers' records: %w", err)
	}
	for buyer, text := range records {
		entries, err := lua.ParseRecord(text)
		if err != nil {
			return e, err
		}
		for _, entry := range entries {
			e.Entries = append(e.Entries, history.Entry{Buyer: buyer, Entry: entry})
		}
	}
	if err := f.readRows(ctx, s, &e); err != nil {
		return e, fmt.Errorf("reading SQL: %w", err)
	}
	if e.Queued, e.Dead, err = f.depth(); err != nil {
		return e, err
	}
	e.At = time.Now()
	return e, nil
}

func (f *Field) readRows(ctx context.Context, s sale, e *history.End) error {
	if err := f.db.QueryRowContext(ctx, "SELECT reserved FROM activities WHERE product_id = ?", s.product).Scan(&e.Reserved); err != nil {
		return err
	}
	rows, err := f.db.QueryContext(ctx, "SELECT id, user_id, quantity, state, reason, reserved_ms, created_ms FROM orders WHERE product_id = ?", s.product)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		var r history.Row
		var reserved, stored int64
		if err := rows.Scan(&r.OrderID, &r.Buyer, &r.Quantity, &r.State, &r.Reason, &reserved, &stored); err != nil {
			return err
		}
		r.Reserved, r.Stored = time.UnixMilli(reserved), time.UnixMilli(stored)
		e.Rows = append(e.Rows, r)
	}
	return rows.Err()
}

// depth counts what waits in the broker, ready or delivered and not acknowledged,
// and the dead letters. A queue that is not there is empty.
func (f *Field) depth() (queued, dead int, err error) {
	for _, name := range []string{ordersQueue, retryQueue, deadQueue} {
		var n int
		err := f.broker(func(ch *amqp.Channel) error {
			q, err := ch.QueueDeclarePassive(name, true, false, false, false, nil)
			n = q.Messages
			return err
		})
		var missing *amqp.Error
		switch {
		case errors.As(err, &missing) && missing.Code == amqp.NotFound:
		case err != nil:
			return 0, 0, err
		case name == deadQueue:
			dead = n
		default:
			queued += n
		}
	}
	return queued, dead, nil
}

// drift is what a backend's audit says.
func (f *Field) drift(ctx context.Context, s sale) (int64, error) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, f.Backends[0].URL+"/api/activities/"+s.product+"/audit", nil)
	if err != nil {
		return 0, err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, fmt.Errorf("asking for the audit: %w", err)
	}
	defer resp.Body.Close()
	var audit struct{ Drift int64 }
	if err := json.NewDecoder(resp.Body).Decode(&audit); err != nil || resp.StatusCode != http.StatusOK {
		return 0, fmt.Errorf("asking for the audit: HTTP %d, %w", resp.StatusCode, err)
	}
	return audit.Drift, nil
}

// atRest says whether nothing is on its way any more: what is reserved is sold,
// what is sold is stored, and the gate is open.
func atRest(e *history.End) bool {
	if !e.Open || e.Outbox != 0 || e.Frozen != 0 || e.Queued != 0 {
		return false
	}
	var stored int64
	for _, r := range e.Rows {
		if r.State.HoldsStock() {
			stored += int64(r.Quantity)
		}
	}
	return e.Sold == stored && e.Reserved == stored
}

// lastWords asks for the fate of every order that was taken, again and again
// until all have one or are overdue.
func lastWords(ctx context.Context, c *client, clicks []history.Click, due func(history.Click) time.Time) []history.Told {
	var all []history.Told
	var left []history.Click
	for _, click := range clicks {
		if click.Status == http.StatusAccepted {
			left = append(left, click)
		}
	}
	for len(left) > 0 && ctx.Err() == nil {
		answers := askAll(ctx, c, left, 1)
		all = append(all, answers...)
		var still []history.Click
		for i, click := range left {
			if !final(answers[i]) && answers[i].At.Before(due(click)) {
				still = append(still, click)
			}
		}
		left = still
		if len(left) > 0 && pause(ctx, 250*time.Millisecond) != nil {
			break
		}
	}
	return all
}

// askEverywhere asks every edge once more for each order that was rejected, and for
// some of the others: all must say the same.
func askEverywhere(ctx context.Context, c *client, h *history.History) []history.Told {
	const some = 100
	rejected := map[string]bool{}
	for _, t := range h.Told {
		rejected[t.OrderID] = rejected[t.OrderID] || t.State == order.Rejected
	}
	var chosen []history.Click
	others := 0
	for _, click := range h.Clicks {
		switch {
		case click.Status != http.StatusAccepted:
		case rejected[click.OrderID]:
			chosen = append(chosen, click)
		case others < some:
			others++
			chosen = append(chosen, click)
		}
	}
	var all []history.Told
	for edge := range c.edges {
		for i := range chosen {
			chosen[i].Edge = edge
		}
		all = append(all, askAll(ctx, c, chosen, 0)...)
	}
	return all
}

// askAll asks for the fates of orders, a few at a time, at their own edge or, with a
// turn of 1, at all edges in turn.
func askAll(ctx context.Context, c *client, clicks []history.Click, turn int) []history.Told {
	answers := make([]history.Told, len(clicks))
	slots := make(chan struct{}, 8)
	for i, click := range clicks {
		slots <- struct{}{}
		go func() {
			defer func() { <-slots }()
			answers[i] = c.fate(ctx, (click.Edge+i*turn)%len(c.edges), click.Buyer, click.OrderID)
		}()
	}
	for range cap(slots) {
		slots <- struct{}{}
	}
	return answers
}
