package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig"
	_ "github.com/caddyserver/caddy/v2/modules/standard"

	"github.com/seckill-edge/seckill"
	_ "github.com/seckill-edge/seckill/caddyplugin"
)

// edge is Caddy in this process, from the production Caddyfile. Caddy is one a
// process, and so is its environment.
type edge struct {
	listen, console string // host:port
	redis, rabbitmq string
	folder          string // for the shop's pages and what Caddy keeps
	verbose         bool
	embedded        bool // Redis is in this process
}

// start loads Caddy. After an error nothing runs.
func (e edge) start() error {
	pages := filepath.Join(e.folder, "shop")
	if err := writeShop(pages); err != nil {
		return err
	}
	_, port, err := net.SplitHostPort(e.listen)
	if err != nil {
		return fmt.Errorf("reading the address %q: %w", e.listen, err)
	}
	for name, value := range map[string]string{
		"SECKILL_SITE":                     "http://:" + port,
		"SECKILL_REDIS_URL":                e.redis,
		"SECKILL_RABBITMQ_URL":             e.rabbitmq,
		"SECKILL_IDENTITY":                 "http.request.header.X-User-Id",
		"SECKILL_INSECURE_CLIENT_IDENTITY": "on",
		"SECKILL_SHOP_ROOT":                pages,
		"SECKILL_ADMIN":                    "off",
		// Caddy's own notes belong to this run, not to the user's home.
		"XDG_DATA_HOME":   filepath.Join(e.folder, "caddy"),
		"XDG_CONFIG_HOME": filepath.Join(e.folder, "caddy"),
	} {
		if err := os.Setenv(name, value); err != nil {
			return fmt.Errorf("setting %s: %w", name, err)
		}
	}
	config, warnings, err := caddyconfig.GetAdapter("caddyfile").Adapt(seckill.Caddyfile, map[string]any{"filename": "Caddyfile"})
	if err != nil {
		return fmt.Errorf("reading the Caddyfile: %w", err)
	}
	_ = warnings // about its formatting; its own test holds that
	if config, err = e.narrow(config); err != nil {
		return fmt.Errorf("narrowing Caddy's config: %w", err)
	}
	if err := caddy.Load(config, true); err != nil {
		return fmt.Errorf("starting Caddy on --listen %s: %w", e.listen, err)
	}
	return nil
}

func (e edge) stop() error {
	if err := caddy.Stop(); err != nil {
		return fmt.Errorf("stopping Caddy: %w", err)
	}
	return nil
}

// narrow changes what a config for production leaves open: a site without a host
// name listens everywhere, certificates are kept at home, everything is logged.
func (e edge) narrow(config []byte) ([]byte, error) {
	var c map[string]any
	if err := json.Unmarshal(config, &c); err != nil {
		return nil, err
	}
	apps, _ := c["apps"].(map[string]any)
	servers, _ := dig(apps, "http", "servers").(map[string]any)
	if len(servers) != 1 {
		return nil, fmt.Errorf("the Caddyfile makes %d servers, not one", len(servers))
	}
	for _, s := range servers {
		server, ok := s.(map[string]any)
		if !ok {
			return nil, fmt.Errorf("its server is %T", s)
		}
		server["listen"] = []string{e.listen}
		routes, _ := server["routes"].([]any)
		server["routes"] = append([]any{e.payments(), buyerByCookie}, routes...)
	}
	if e.embedded {
		// Its silence says that the machine is busy: a buyer can wait for the answer.
		app, _ := apps["seckill"].(map[string]any)
		if app == nil {
			return nil, errors.New("the Caddyfile configures no seckill app")
		}
		app["reserve_timeout"] = "2s"
	}
	// It has no certificates to keep, and cleaning up among them takes a lock that
	// outlives Caddy by seconds.
	apps["tls"] = map[string]any{"disable_storage_clean": true}
	c["storage"] = map[string]any{"module": "file_system", "root": filepath.Join(e.folder, "caddy")}
	c["logging"] = e.logging()
	return json.Marshal(c)
}

// buyerByCookie lets the shop's page say who buys where it cannot set a header: in
// an EventSource. It is as little proof as the header, and as good for a
// demonstration.
var buyerByCookie = map[string]any{
	"match": []any{map[string]any{
		"header": map[string]any{"Cookie": []string{"*seckill_buyer=*"}},
		"not":    []any{map[string]any{"header": map[string]any{"X-User-Id": []string{"*"}}}},
	}},
	"handle": []any{map[string]any{
		"handler": "headers",
		"request": map[string]any{"set": map[string]any{"X-User-Id": []string{"{http.request.cookie.seckill_buyer}"}}},
	}},
}

// payments lets the shop's page pay an order, as a payment service would tell the
// backend. Anybody may pay for anybody here.
func (e edge) payments() any {
	return map[string]any{
		"match": []any{map[string]any{
			"method":      []string{"POST"},
			"path_regexp": map[string]any{"name": "order", "pattern": "^/demo/pay/([0-9a-z]{26})$"},
		}},
		"handle": []any{
			map[string]any{"handler": "rewrite", "uri": "/api/orders/{http.regexp.order.1}/paid"},
			map[string]any{"handler": "reverse_proxy", "upstreams": []any{map[string]any{"dial": e.console}}},
		},
		"terminal": true,
	}
}

// logging quiets Caddy where a demonstration differs from production on purpose:
// without TLS and without an admin endpoint it warns of both at each start.
func (e edge) logging() any {
	type log struct {
		Level   string   `json:"level"`
		Include []string `json:"include,omitempty"`
		Exclude []string `json:"exclude,omitempty"`
	}
	if e.verbose {
		return map[string]any{"logs": map[string]log{"default": {Level: "INFO"}}}
	}
	warned := []string{"admin", "http"}
	return map[string]any{"logs": map[string]log{
		"default": {Level: "WARN", Exclude: warned},
		"server":  {Level: "ERROR", Include: warned},
	}}
}

// dig follows keys through nested objects; nil if the way ends.
func dig(v any, keys ...string) any {
	for _, k := range keys {
		m, _ := v.(map[string]any)
		v = m[k]
	}
	return v
}
