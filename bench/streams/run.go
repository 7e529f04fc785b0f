package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/seckill-edge/seckill/internal/order"
	"github.com/seckill-edge/seckill/internal/servicetest"
	"github.com/seckill-edge/seckill/lua"
)

const product = "1001"

const caddyfile = `{
	admin off
	default_bind 127.0.0.1
	persist_config off
	auto_https off
	servers {
		protocols h1 h2c
	}
	seckill {
		redis %s
		rabbitmq memory:streams
		streams 1000000
	}
}
http://%s {
	seckill {
		identity http.request.header.X-User-Id
		insecure_client_identity on
	}
}
`

// run opens the streams, and writes what they cost to out.
func run(ctx context.Context, o options, out io.Writer) (err error) {
	dir, err := os.MkdirTemp("", "seckill-streams-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	r, err := servicetest.StartRedis(ctx, dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.Kill()) }()
	client, err := lua.NewClient(r.URL(), "streams")
	if err != nil {
		return err
	}
	defer client.Close()
	edge, address, err := startEdge(ctx, dir, r.URL())
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, edge.Stop()) }()
	moves, err := sell(ctx, client, o.streams)
	if err != nil {
		return err
	}
	before, err := memory(edge.PID())
	if err != nil {
		return err
	}

	begin := time.Now()
	c := newCrowd(o, address)
	defer c.close()
	if err := c.open(ctx, moves); err != nil {
		return err
	}
	opened := time.Since(begin)
	select {
	case <-time.After(o.hold):
	case <-ctx.Done():
		return ctx.Err()
	}
	after, err := memory(edge.PID())
	if err != nil {
		return err
	}
	_, _ = fmt.Fprintf(out, "%d streams open on %d connections after %v\n", o.streams, o.connections(), opened.Round(time.Millisecond))
	_, _ = fmt.Fprintf(out, "resident memory of the edge: %d MiB before, %d MiB with them, %.1f KiB a stream\n",
		before>>20, after>>20, float64(after-before)/1024/float64(o.streams))

	begin = time.Now()
	if _, err := lua.Settle(ctx, client, product, lua.MarkSettled, moves); err != nil {
		return err
	}
	p50, p99, last, err := c.heard(ctx, begin)
	if err != nil {
		return err
	}
	peak, err := memory(edge.PID())
	if err != nil {
		return err
	}
	_, _ = fmt.Fprintf(out, "all orders settled at once: half of the clients heard of it within %v, 99 %% within %v, all within %v\n",
		p50.Round(time.Millisecond), p99.Round(time.Millisecond), last.Round(time.Millisecond))
	_, _ = fmt.Fprintf(out, "resident memory after the storm: %d MiB\n", peak>>20)
	if after>>20 > int64(o.maxMiB) || peak>>20 > int64(o.maxMiB) {
		return fmt.Errorf("the edge has %d MiB, more than %d", max(after, peak)>>20, o.maxMiB)
	}
	return nil
}

func startEdge(ctx context.Context, dir, redisURL string) (*servicetest.Process, string, error) {
	program, err := servicetest.Build(ctx, dir, "caddyplugin/cmd/caddy")
	if err != nil {
		return nil, "", err
	}
	address, err := servicetest.FreeAddr()
	if err != nil {
		return nil, "", err
	}
	config := filepath.Join(dir, "Caddyfile")
	if err := os.WriteFile(config, fmt.Appendf(nil, caddyfile, redisURL, address), 0o644); err != nil {
		return nil, "", err
	}
	cmd := exec.Command(program, "run", "--config", config)
	cmd.Env = append(os.Environ(), "HOME="+dir, "XDG_DATA_HOME="+dir, "XDG_CONFIG_HOME="+dir)
	edge, err := servicetest.Start("caddy", cmd, filepath.Join(dir, "caddy.log"))
	if err != nil {
		return nil, "", err
	}
	return edge, address, nil
}

// sell reserves a unit for each of n buyers.
func sell(ctx context.Context, c redis.UniversalClient, n int) ([]lua.Move, error) {
	now := time.Now().Truncate(time.Millisecond)
	_, err := lua.Preheat(ctx, c, lua.Activity{
		ID: "streams", ProductID: product, Title: "Streams", Start: now.Add(-time.Minute), End: now.Add(time.Hour),
		Total: order.MaxUnits, Limit: 1, State: lua.Open,
	})
	if err != nil {
		return nil, err
	}
	moves := make([]lua.Move, 0, n)
	for len(moves) < n {
		var requests []lua.Request
		for range min(lua.MaxPerCall, n-len(moves)) {
			id, err := order.NewID(time.Now(), rand.Reader)
			if err != nil {
				return nil, err
			}
			m := lua.Move{UserID: "buyer-" + strconv.Itoa(len(moves)), OrderID: id}
			moves = append(moves, m)
			requests = append(requests, lua.Request{OrderID: id, UserID: m.UserID, Quantity: 1})
		}
		batch, err := lua.Reserve(ctx, c, product, 1, requests)
		if err != nil {
			return nil, err
		}
		if batch.Results[0].Outcome != lua.Reserved {
			return nil, fmt.Errorf("reserving: %s", batch.Results[0].Outcome)
		}
	}
	return moves, nil
}

// memory is the resident memory of a process in bytes.
func memory(pid int) (int64, error) {
	text, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/status")
	if err != nil {
		return 0, fmt.Errorf("reading the edge's memory: %w", err)
	}
	for line := range strings.Lines(string(text)) {
		if fields := strings.Fields(line); len(fields) == 3 && fields[0] == "VmRSS:" {
			kib, err := strconv.ParseInt(fields[1], 10, 64)
			return kib << 10, err
		}
	}
	return 0, errors.New("the kernel does not tell the edge's memory")
}
