package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/seckill-edge/seckill/bench/load"
	"github.com/seckill-edge/seckill/internal/order"
)

// measureShut kills Redis in a sale: how fast the entrance refuses, what that
// costs in memory, and how long after Redis's return it sells again.
func measureShut(ctx context.Context, s *stack, o options, r *report, soldOut float64) error {
	product, end, err := s.newSale(ctx, "shut", order.MaxUnits)
	if err != nil {
		return err
	}
	defer end()
	buyer := 0
	if err := s.buyUntil(ctx, product, &buyer, http.StatusAccepted); err != nil {
		return err
	}
	if err := s.redis.Kill(); err != nil {
		return err
	}
	if err := s.buyUntil(ctx, product, &buyer, http.StatusServiceUnavailable); err != nil {
		return err
	}
	before, err := memory(s.edge.PID())
	if err != nil {
		return err
	}
	shut, err := load.Do(ctx, load.Run{Addr: s.shop, Request: request(s.shop, product), Connections: o.connections, Duration: o.duration()})
	if err != nil {
		return fmt.Errorf("loading the edge without Redis: %w", err)
	}
	after, err := memory(s.edge.PID())
	if err != nil {
		return err
	}
	if len(shut.Status) != 1 || shut.Status[http.StatusServiceUnavailable] == 0 {
		return fmt.Errorf("without Redis the answers were %v", shut.Status)
	}
	if err := s.redis.Restart(ctx); err != nil {
		return err
	}
	back := time.Now()
	if err := s.buyUntil(ctx, product, &buyer, http.StatusAccepted); err != nil {
		return err
	}
	r.figure("refusals without Redis /s", shut.PerSecond(http.StatusServiceUnavailable))
	r.figure("without Redis p99 ms", ms(shut.P99))
	r.figure("edge's memory before refusing, MiB", before)
	r.figure("edge's memory after refusing, MiB", after)
	r.figure("sells again after Redis's return, ms", ms(time.Since(back)))
	r.ratio("shut", shut.PerSecond(http.StatusServiceUnavailable)/soldOut)
	return nil
}

// buyUntil sends one buyer after the other until one gets the answer.
func (s *stack) buyUntil(ctx context.Context, product string, buyer *int, status int) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	last := 0
	for {
		*buyer++
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+s.shop+"/seckill/"+product, nil)
		if err != nil {
			return err
		}
		req.Header.Set("X-User-Id", fmt.Sprintf("single-%d", *buyer))
		answer, err := http.DefaultClient.Do(req)
		if err != nil {
			return fmt.Errorf("waiting for an answer %d, the last was %d: %w", status, last, err)
		}
		last = answer.StatusCode
		if err := answer.Body.Close(); err != nil || last == status {
			return err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("no answer %d within a minute, the last was %d", status, last)
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// memory is what a process has in memory, in MiB.
func memory(pid int) (float64, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(text)) {
		var kib float64
		if _, err := fmt.Sscanf(line, "VmRSS: %f kB", &kib); err == nil {
			return kib / 1024, nil
		}
	}
	return 0, errors.New("the kernel does not say how much memory the edge has")
}
