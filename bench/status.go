package main

import (
	"bytes"
	"context"
	"fmt"
	"net/http"

	"github.com/seckill-edge/seckill/bench/load"
	"github.com/seckill-edge/seckill/internal/order"
	"github.com/seckill-edge/seckill/lua"
)

// statusOrders is how many buyers may ask for their orders.
const statusOrders = 100_000

// digits of a buyer's number, in his user id and in his order id.
const statusDigits = 11

// statusID is the order id of a buyer: a time of this year, then his number.
func statusID(number int) string { return fmt.Sprintf("01kb7q3x5e00000%0*d", statusDigits, number) }

func statusUser(number int) string { return fmt.Sprintf("u-%0*d", statusDigits, number) }

// measureStatus lets buyers of a settled sale ask for their own orders, in an order
// that is as good as chance.
func measureStatus(ctx context.Context, s *stack, o options, r *report, bare float64) error {
	product, end, err := s.redisSale(ctx, "status")
	if err != nil {
		return err
	}
	defer end()
	if err := s.settleSale(ctx, product, statusOrders); err != nil {
		return err
	}
	request := []byte("GET /seckill/" + product + "/orders/" + statusID(0) + " HTTP/1.1\r\nHost: " + s.shop +
		"\r\nX-User-Id: " + statusUser(0) + "\r\n\r\n")
	inPath := bytes.Index(request, []byte(statusID(0))) + order.IDLength
	inUser := bytes.Index(request, []byte(statusUser(0))) + len(statusUser(0))
	asked, err := load.Do(ctx, load.Run{
		Addr: s.shop, Request: request, Connections: o.connections, Duration: o.duration(),
		Fill: func(request []byte, number uint64) {
			// A stride without a common factor visits all in a scattered order.
			number = number * 7919 % statusOrders
			for i := 1; i <= statusDigits; i++ {
				digit := '0' + byte(number%10)
				request[inPath-i], request[inUser-i] = digit, digit
				number /= 10
			}
		},
	})
	if err != nil {
		return fmt.Errorf("asking for orders: %w", err)
	}
	if asked.Status[http.StatusOK] != asked.Total() {
		return fmt.Errorf("asking for own orders was answered %v", asked.Status)
	}
	r.figure("status /s", asked.PerSecond(http.StatusOK))
	r.figure("status p99 ms", ms(asked.P99))
	r.ratio("status", asked.PerSecond(http.StatusOK)/bare)
	return nil
}

// settleSale reserves and settles an order for each of n buyers.
func (s *stack) settleSale(ctx context.Context, product string, n int) error {
	for first := 0; first < n; first += lua.MaxPerCall {
		var requests []lua.Request
		var moves []lua.Move
		for i := first; i < min(n, first+lua.MaxPerCall); i++ {
			requests = append(requests, lua.Request{OrderID: statusID(i), UserID: statusUser(i), Quantity: 1})
			moves = append(moves, lua.Move{OrderID: statusID(i), UserID: statusUser(i)})
		}
		batch, err := lua.Reserve(ctx, s.rdb, product, 1, requests)
		if err != nil {
			return err
		}
		if batch.Results[0].Outcome != lua.Reserved {
			return fmt.Errorf("reserving for the status measurement: %s", batch.Results[0].Outcome)
		}
		if _, err := lua.Settle(ctx, s.rdb, product, lua.MarkSettled, moves); err != nil {
			return err
		}
	}
	return nil
}
