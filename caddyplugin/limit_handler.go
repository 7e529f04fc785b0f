package caddyplugin

import (
	"errors"
	"fmt"
	"net/http"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
	"github.com/caddyserver/caddy/v2/caddyconfig/httpcaddyfile"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
)

// LimitHandler asks the limits of the seckill app that need not know who is
// calling (the allow and deny lists, ip, total and the total of all edges) in front
// of whatever it is put before, such as an authenticator that a flood of wrong
// passwords would keep busy. The seckill handler behind it does not count the
// request again. It needs the app seckill.
type LimitHandler struct {
	gate entrance
}

// CaddyModule returns the Caddy module information.
func (*LimitHandler) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{ID: "http.handlers." + limitName, New: func() caddy.Module { return new(LimitHandler) }}
}

// Provision finds the app.
func (h *LimitHandler) Provision(ctx caddy.Context) error {
	app, err := appOf(ctx, limitName)
	if err != nil {
		return err
	}
	h.gate = app.engine.gate
	return nil
}

// appOf finds the app that a handler needs.
func appOf(ctx caddy.Context, handler string) (*App, error) {
	app, err := ctx.AppIfConfigured(appName)
	if errors.Is(err, caddy.ErrNotConfigured) {
		return nil, fmt.Errorf("the %s handler needs the seckill app: put a seckill { … } block into the global options, or apps.seckill into the JSON: %w", handler, err)
	}
	if err != nil {
		return nil, err
	}
	return app.(*App), nil
}

// ServeHTTP refuses, or passes on.
func (h *LimitHandler) ServeHTTP(w http.ResponseWriter, r *http.Request, next caddyhttp.Handler) error {
	if !entered(r.Context()) {
		if !enter(w, r, h.gate) {
			return nil
		}
		caddyhttp.SetVar(r.Context(), enteredVar, true)
	}
	return next.ServeHTTP(w, r)
}

// parseLimitHandler reads the directive seckill_limit.
func parseLimitHandler(h httpcaddyfile.Helper) (caddyhttp.MiddlewareHandler, error) {
	handler := new(LimitHandler)
	err := handler.UnmarshalCaddyfile(h.Dispenser)
	return handler, err
}

// UnmarshalCaddyfile sets up the handler from Caddyfile tokens. Syntax:
//
//	seckill_limit [<matcher>]
//
// What is limited, and how much, stands in the global option seckill.
func (*LimitHandler) UnmarshalCaddyfile(d *caddyfile.Dispenser) error {
	d.Next() // consume directive name
	if d.NextArg() {
		return d.ArgErr()
	}
	if d.NextBlock(d.Nesting()) {
		return d.Errf("%s takes no options; the limits stand in the global option seckill", limitName)
	}
	return nil
}

// Interface guards
var (
	_ caddy.Provisioner           = (*LimitHandler)(nil)
	_ caddyhttp.MiddlewareHandler = (*LimitHandler)(nil)
	_ caddyfile.Unmarshaler       = (*LimitHandler)(nil)
)
