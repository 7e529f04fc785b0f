package main

import (
	"context"
	"fmt"
	"net/http"
	"runtime"
	"time"

	"github.com/seckill-edge/seckill/bench/load"
	"github.com/seckill-edge/seckill/internal/order"
)

// request is a purchase of a product by a buyer of its own.
func request(host, product string) []byte {
	return []byte("POST /seckill/" + product + " HTTP/1.1\r\nHost: " + host + "\r\nX-User-Id: u-###########\r\nContent-Length: 0\r\n\r\n")
}

// measureEdge measures bare, sold-out, proved, status, accepted and, without Redis, shut in
// turn.
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

	product, end, err := s.newSale(ctx, "soldout", 1)
	if err != nil {
		return err
	}
	defer end()
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
	if err := measureProved(ctx, s, o, r, bare.PerSecond(http.StatusGone)); err != nil {
		return err
	}
	if err := measureStatus(ctx, s, o, r, bare.PerSecond(http.StatusGone)); err != nil {
		return err
	}
	if err := measureAccepted(ctx, s, o, r, bare.PerSecond(http.StatusGone)); err != nil {
		return err
	}
	return measureShut(ctx, s, o, r, soldOut.PerSecond(http.StatusGone))
}

// measureAccepted buys, every request a unit, and counts the time until all that
// was accepted is stored.
func measureAccepted(ctx context.Context, s *stack, o options, r *report, bare float64) error {
	product, end, err := s.newSale(ctx, "accepted", order.MaxUnits)
	if err != nil {
		return err
	}
	defer end()
	start := time.Now()
	bought, err := load.Do(ctx, load.Run{Addr: s.shop, Request: request(s.shop, product), Connections: o.connections, Duration: o.duration()})
	if err != nil {
		return fmt.Errorf("loading an open sale: %w", err)
	}
	accepted := bought.Status[http.StatusAccepted]
	if accepted != bought.Total() {
		return fmt.Errorf("a sale of plenty answered %v", bought.Status)
	}
	stored, lag, err := s.waitStored(ctx, product, accepted)
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

func ms(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
