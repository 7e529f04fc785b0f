// Package caddyplugin is Caddy's face of the flash sale: the app that owns the
// connections, the handler that answers buyers, the metrics, the admin endpoint
// and the Caddyfile's syntax. What is decided about a click is decided in gate.
//
// Modules: seckill, http.handlers.seckill, http.handlers.seckill_limit,
// admin.api.seckill, http.handlers.seckill_jwt,
// http.authentication.providers.seckill_jwt.
package caddyplugin

import (
	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig/httpcaddyfile"
	"github.com/redis/go-redis/v9"
)

// appName is the app's module id, and the name of its directive and option;
// limitName that of the directive and handler that asks the limits early.
const (
	appName   = "seckill"
	limitName = "seckill_limit"
)

func init() {
	caddy.RegisterModule(&App{})
	caddy.RegisterModule(&Handler{})
	caddy.RegisterModule(&LimitHandler{})
	caddy.RegisterModule(&adminStatus{})
	caddy.RegisterModule(&TokenHandler{})
	caddy.RegisterModule(&TokenProvider{})
	httpcaddyfile.RegisterGlobalOption(appName, parseApp)
	httpcaddyfile.RegisterHandlerDirective(appName, parseHandler)
	// Behind authenticators, rewrites and an operator's "error 503", in front of
	// everything that answers.
	httpcaddyfile.RegisterDirectiveOrder(appName, httpcaddyfile.Before, "respond")
	// Before every authenticator, a plugin's too.
	httpcaddyfile.RegisterHandlerDirective(limitName, parseLimitHandler)
	httpcaddyfile.RegisterDirectiveOrder(limitName, httpcaddyfile.After, "try_files")
	httpcaddyfile.RegisterHandlerDirective(jwtName, parseTokens)
	httpcaddyfile.RegisterDirectiveOrder(jwtName, httpcaddyfile.After, "basic_auth")
	redis.SetLogger(redisLog{})
}
