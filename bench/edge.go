package main

import (
	"context"
	"fmt"
	"net/http"
	"runtime"
	"time"

	"github.com/seckill-edge/seckill/backend/store"
	"github.com/seckill-edge/seckill/bench/load"
	"github.com/seckill-edge/seckill/internal/order"
	"github.com/seckill-edge/seckill/lua"
)

// request is a purchase of a product by a buyer of its own.
func request(host, product string) []byte {
	return []byte("POST /seckill/" + product + " HTTP/1.1\r\nHost: " + host + "\r\nX-User-Id: u-###########\r\nContent-Length: 0\r\n\r\n")
}

// measureEdge measures bare, sold-out, status and accepted in turn.
func measureEdge(ctx context.Context, s *stack, o options, r *report) error {
	// The load generator is one process with one core's worth of scheduling, as
	// wrk -t1 would be: its share of the machine is the same for all.
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))

	bare, err := load.Do(ctx, load.Run{Addr: s.bare, Request: request(s.bare, "bare"), Connections: o.connections, Duration: o.duration()})
	if err != nil {
		return fmt.Errorf("loading the bare respond: %w", err)
	}
	r.figure("bare Caddy respond /s", bare.PerSecond(http.StatusGone))
	r.figure("bare p99 ms", ms(bare.P99))

	product, _, err := s.newSale(ctx, "soldout", 1)
	if err != nil {
		return err
	}
	soldOut, err := load.Do(ctx, load.Run{Addr: s.shop, Request: request(s.shop, product), Connections: o.connections, Duration: o.duration()})
	if err != nil {
		return fmt.Errorf("loading a sold-out product: %w", err)
	}
	if accepted := soldOut.Status[http.StatusAccepted]; accepted != 1 || len(soldOut.Status) != 2 {
		return fmt.Errorf("one unit, but the answers were %v", soldOut.Status)
	}
	r.figure("sold-out refusals /s", soldOut.PerSecond(http.StatusGone))
	r.figure("sold-out p99 ms", ms(soldOut.P99))
	r.ratio("soldout", soldOut.PerSecond(http.StatusGone)/bare.PerSecond(http.StatusGone))
	if err := measureStatus(ctx, s, o, r, bare.PerSecond(http.StatusGone)); err != nil {
		return err
	}
	return measureAccepted(ctx, s, o, r, bare.PerSecond(http.StatusGone))
}

// measureAccepted buys, every request a unit, and counts the time until all that
// was accepted is stored.
func measureAccepted(ctx context.Context, s *stack, o options, r *report, bare float64) error {
	product, activity, err := s.newSale(ctx, "accepted", order.MaxUnits)
	if err != nil {
		return err
	}
	start := time.Now()
	bought, err := load.Do(ctx, load.Run{Addr: s.shop, Request: request(s.shop, product), Connections: o.connections, Duration: o.duration()})
	if err != nil {
		return fmt.Errorf("loading an open sale: %w", err)
	}
	accepted := bought.Status[http.StatusAccepted]
	if accepted != bought.Total() {
		return fmt.Errorf("a sale of plenty answered %v", bought.Status)
	}
	stored, lag, err := s.waitStored(ctx, product, activity, accepted)
	if err != nil {
		return err
	}
	took := time.Since(start)
	r.figure("accepted /s", bought.PerSecond(http.StatusAccepted))
	r.figure("accepted p50 ms", ms(bought.P50))
	r.figure("accepted p99 ms", ms(bought.P99))
	r.figure("accepted, confirmed and stored /s", float64(stored)/took.Seconds())
	r.figure("last order stored and settled after, ms", ms(lag))
	r.ratio("accepted", float64(stored)/took.Seconds()/bare)
	return nil
}

// newSale makes an open sale in SQL and Redis and lets the edge see it.
func (s *stack) newSale(ctx context.Context, kind string, units int64) (product, activity string, err error) {
	product = fmt.Sprintf("%s-%d", kind, time.Now().UnixMilli())
	now := time.Now().UTC().Truncate(time.Millisecond)
	a := store.Activity{
		ID: product, ProductID: product, Title: kind, Start: now.Add(-time.Minute), End: now.Add(time.Hour),
		Total: units, Limit: 1, State: store.Open, CreatedAt: now,
	}
	if err := s.store.CreateActivity(ctx, a); err != nil {
		return "", "", err
	}
	done, err := lua.Preheat(ctx, s.rdb, lua.Activity{
		ID: a.ID, ProductID: product, Title: kind, Start: a.Start, End: a.End, Total: units, Limit: 1, State: lua.Open,
	})
	if err == nil && done != lua.Loaded {
		err = fmt.Errorf("preheating %s: %v", product, done)
	}
	return product, a.ID, err
}

// waitStored waits until every accepted order is stored and settled.
func (s *stack) waitStored(ctx context.Context, product, activity string, accepted uint64) (stored int64, lag time.Duration, err error) {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	start := time.Now()
	for {
		snapshot, _, err := lua.Audit(ctx, s.rdb, product)
		if err == nil && snapshot.Sold == int64(accepted) && snapshot.Outbox == 0 && snapshot.Frozen == 0 {
			totals, err := s.store.Totals(ctx, activity)
			if err != nil {
				return 0, 0, err
			}
			stored = totals[order.Created].Orders
			if stored != int64(accepted) {
				return 0, 0, fmt.Errorf("accepted %d, stored %d", accepted, stored)
			}
			return stored, time.Since(start), nil
		}
		select {
		case <-ctx.Done():
			return 0, 0, fmt.Errorf("accepted %d, but after two minutes Redis says %+v: %w", accepted, snapshot, err)
		case <-time.After(10 * time.Millisecond):
		}
	}
}

func ms(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
