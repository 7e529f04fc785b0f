package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/seckill-edge/seckill"
	"github.com/seckill-edge/seckill/internal/servicetest"
	"github.com/seckill-edge/seckill/lua"
)

const product = "1001"

// edge is a Caddy with the production Caddyfile, and the servers it stands on.
type edge struct {
	redis   *servicetest.Redis
	rabbit  *servicetest.RabbitMQ
	process *servicetest.Process
	site    string // host:port
	admin   string
}

// startEdge starts everything in dir and opens a sale with a unit for everybody.
func startEdge(ctx context.Context, dir string, units int64) (_ *edge, err error) {
	e := &edge{}
	defer func() {
		if err != nil {
			e.stop()
		}
	}()
	if e.redis, err = servicetest.StartRedis(ctx, dir); err != nil {
		return nil, err
	}
	if e.rabbit, err = servicetest.StartRabbitMQ(ctx, dir); err != nil {
		return nil, err
	}
	if err := e.sell(ctx, units); err != nil {
		return nil, err
	}
	program, err := servicetest.Build(ctx, dir, "caddyplugin/cmd/caddy")
	if err != nil {
		return nil, err
	}
	for _, addr := range []*string{&e.site, &e.admin} {
		if *addr, err = servicetest.FreeAddr(); err != nil {
			return nil, err
		}
	}
	config, err := caddyfile()
	if err != nil {
		return nil, err
	}
	path := filepath.Join(dir, "Caddyfile")
	if err := os.WriteFile(path, config, 0o600); err != nil {
		return nil, err
	}
	cmd := exec.Command(program, "run", "--config", path)
	cmd.Env = append(os.Environ(), "HOME="+dir, "XDG_DATA_HOME="+dir, "XDG_CONFIG_HOME="+dir,
		"SECKILL_REDIS_URL="+e.redis.URL(), "SECKILL_RABBITMQ_URL="+e.rabbit.URL(),
		"SECKILL_SITE=http://"+e.site, "SECKILL_BIND=127.0.0.1", "SECKILL_ADMIN="+e.admin, "SECKILL_SHOP_ROOT="+dir,
		"SECKILL_LIMIT_IP="+ipLimit,
		"SECKILL_IDENTITY=http.request.header.X-User-Id", "SECKILL_INSECURE_CLIENT_IDENTITY=on")
	if e.process, err = servicetest.Start("caddy", cmd, filepath.Join(dir, "caddy.log")); err != nil {
		return nil, err
	}
	return e, e.await(ctx)
}

// caddyfile is the production one, behind a load balancer on this machine: the
// strangers need more addresses than loopback has.
func caddyfile() ([]byte, error) {
	const lines = "\t\t# trusted_proxies static 10.0.0.0/8\n\t\t# trusted_proxies_strict\n"
	if !bytes.Contains(seckill.Caddyfile, []byte(lines)) {
		return nil, errors.New("the production Caddyfile has no lines about trusted proxies any more")
	}
	return bytes.Replace(seckill.Caddyfile, []byte(lines),
		[]byte("\t\ttrusted_proxies static 127.0.0.0/8\n\t\ttrusted_proxies_strict\n"), 1), nil
}

func (e *edge) sell(ctx context.Context, units int64) error {
	c, err := lua.NewClient(e.redis.URL(), "flood")
	if err != nil {
		return err
	}
	defer c.Close()
	now := time.Now().Truncate(time.Millisecond)
	done, err := lua.Preheat(ctx, c, lua.Activity{
		ID: "flood", ProductID: product, Title: "Flood", Start: now.Add(-time.Minute), End: now.Add(time.Hour),
		Total: units, Limit: 1, State: lua.Open,
	})
	if err == nil && done != lua.Loaded {
		err = fmt.Errorf("the sale was not loaded: %v", done)
	}
	return err
}

// await asks until the edge sells.
func (e *edge) await(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	for {
		text, err := e.ask(ctx, "/seckill/status")
		if err == nil && strings.Contains(text, `"ready":true`) {
			return nil
		}
		select {
		case <-e.process.Done():
			return e.process.Wait()
		case <-ctx.Done():
			return fmt.Errorf("the edge is not ready: %s %w", text, errors.Join(err, ctx.Err()))
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// ask reads from Caddy's admin endpoint.
func (e *edge) ask(ctx context.Context, path string) (string, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+e.admin+path, nil)
	if err != nil {
		return "", err
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		return "", err
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	return string(text), err
}

// figure is one line of the edge's metrics.
func (e *edge) figure(ctx context.Context, line string) (string, error) {
	text, err := e.ask(ctx, "/metrics")
	if err != nil {
		return "", err
	}
	for l := range strings.Lines(text) {
		if value, ok := strings.CutPrefix(l, line+" "); ok {
			return strings.TrimSpace(value), nil
		}
	}
	return "", fmt.Errorf("the edge's metrics have no line %s", line)
}

// peak is the most memory that the edge has had, in MiB.
func (e *edge) peak() (float64, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", e.process.PID()))
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(text)) {
		var kib float64
		if _, err := fmt.Sscanf(line, "VmHWM: %f kB", &kib); err == nil {
			return kib / 1024, nil
		}
	}
	return 0, errors.New("the kernel does not say how much memory the edge has had")
}

func (e *edge) stop() {
	if e.process != nil {
		_ = e.process.Stop()
	}
	if e.rabbit != nil {
		_ = e.rabbit.Kill()
	}
	if e.redis != nil {
		_ = e.redis.Kill()
	}
}

// newClient is for one party: the abuser, or the honest.
func newClient() *http.Client {
	return &http.Client{Timeout: 10 * time.Second, Transport: &http.Transport{
		MaxIdleConnsPerHost: 64, DialContext: (&net.Dialer{Timeout: 5 * time.Second}).DialContext,
	}}
}
