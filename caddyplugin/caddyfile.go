package caddyplugin

import (
	"strconv"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
	"github.com/caddyserver/caddy/v2/caddyconfig/httpcaddyfile"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/seckill-edge/seckill/caddyplugin/gate"
)

// parseApp reads the global option seckill.
func parseApp(d *caddyfile.Dispenser, existing any) (any, error) {
	app := new(App)
	if err := app.UnmarshalCaddyfile(d); err != nil {
		return nil, err
	}
	if existing != nil {
		return nil, d.Err("the global option seckill is given twice")
	}
	return httpcaddyfile.App{Name: appName, Value: caddyconfig.JSON(app, nil)}, nil
}

// UnmarshalCaddyfile sets up the app from Caddyfile tokens. Syntax:
//
//	seckill {
//	    redis              <url>
//	    rabbitmq           <url>
//	    backend            <url>
//	    backend_token      <token>
//	    limit              [shared] <level> off | <events>/<duration> [burst <events>] [shadow] …
//	    allow              <networks>…
//	    deny               <networks>…
//	    surplus            <factor> | off
//	    reserve_timeout    <duration>
//	    resolve_within     <duration>
//	    linger             <duration>
//	    orders_per_message <1-256>
//	    waiting            <requests>
//	    buffer             <orders>
//	    streams            <streams>
//	    streams_per_buyer  <streams>
//	    ticket_keys        off | {env.<name>} | {file.<path>} ...
//	    ticket_life        <duration>
//	}
//
// Every option may be given once, and all may be left out; limit once for each
// level (see parseLimit), allow and deny as often as needed.
func (a *App) UnmarshalCaddyfile(d *caddyfile.Dispenser) error {
	d.Next() // consume option name
	if d.NextArg() {
		return d.ArgErr()
	}
	seen := make(options)
	for nesting := d.Nesting(); d.NextBlock(nesting); {
		if !isLimit(d.Val()) {
			if err := seen.once(d); err != nil {
				return err
			}
		}
		var err error
		switch option := d.Val(); option {
		case "redis":
			a.Redis, err = text(d)
		case "rabbitmq":
			a.RabbitMQ, err = text(d)
		case "backend":
			a.Backend, err = text(d)
		case "backend_token":
			a.BackendToken, err = text(d)
		case "ticket_keys":
			a.TicketKeys, err = secrets(d)
		case "ticket_life":
			a.TicketLife, err = duration(d, ticketLifeBound)
		case "streams":
			a.Streams, err = number(d, gate.StreamsBound)
		case "streams_per_buyer":
			a.StreamsPerBuyer, err = number(d, gate.StreamsPerBuyerBound)
		case "limit", "allow", "deny":
			err = a.parseLimits(d, seen)
		case "surplus":
			a.Surplus, err = surplus(d)
		case "reserve_timeout":
			a.ReserveTimeout, err = duration(d, gate.ReserveTimeoutBound)
		case "resolve_within":
			a.ResolveWithin, err = duration(d, gate.ResolveWithinBound)
		case "linger":
			a.Linger, err = duration(d, gate.LingerBound)
		case "orders_per_message":
			a.OrdersPerMessage, err = number(d, gate.OrdersPerMessageBound)
		case "waiting":
			a.Waiting, err = number(d, gate.WaitingBound)
		case "buffer":
			a.Buffer, err = number(d, gate.BufferBound)
		default:
			err = d.Errf("unrecognized seckill option %q; there are redis, rabbitmq, backend, backend_token, limit, allow, deny, surplus, reserve_timeout, resolve_within, linger, orders_per_message, waiting, buffer, streams, streams_per_buyer, ticket_keys and ticket_life", option)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// parseHandler reads the directive seckill.
func parseHandler(h httpcaddyfile.Helper) (caddyhttp.MiddlewareHandler, error) {
	handler := new(Handler)
	err := handler.UnmarshalCaddyfile(h.Dispenser)
	return handler, err
}

// UnmarshalCaddyfile sets up the handler from Caddyfile tokens. Syntax:
//
//	seckill [<matcher>] {
//	    identity                 <placeholder>
//	    insecure_client_identity on | off
//	    path_prefix              <path>
//	    require_ticket           on | off
//	    trusted_origins          <origin>...
//	}
//
// The placeholder may be written with or without braces. Every option may be
// given once, and all may be left out.
func (h *Handler) UnmarshalCaddyfile(d *caddyfile.Dispenser) error {
	d.Next() // consume directive name
	if d.NextArg() {
		return d.ArgErr()
	}
	seen := make(options)
	for nesting := d.Nesting(); d.NextBlock(nesting); {
		if err := seen.once(d); err != nil {
			return err
		}
		var err error
		switch option := d.Val(); option {
		case "identity":
			h.Identity, err = text(d)
			h.Identity = bare(h.Identity)
		case "insecure_client_identity":
			h.InsecureClientIdentity, err = onOff(d)
		case "path_prefix":
			if h.PathPrefix, err = text(d); err == nil {
				if bad := checkPrefix(h.PathPrefix); bad != nil {
					err = d.Errf("path_prefix %q: %v", h.PathPrefix, bad)
				}
			}
		case "require_ticket":
			h.RequireTicket, err = onOff(d)
		case "trusted_origins":
			if h.TrustedOrigins = d.RemainingArgs(); len(h.TrustedOrigins) == 0 {
				err = d.Err("trusted_origins takes one or more origins, such as https://www.example.com")
			}
		default:
			err = d.Errf("unrecognized seckill subdirective %q; there are identity, insecure_client_identity, path_prefix, require_ticket and trusted_origins", option)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// options remembers which options were given.
type options map[string]bool

func (o options) once(d *caddyfile.Dispenser) error {
	if o[d.Val()] {
		return d.Errf("%s is given twice", d.Val())
	}
	o[d.Val()] = true
	return nil
}

// text reads an option's one argument, which must not be empty.
func text(d *caddyfile.Dispenser) (string, error) {
	option := d.Val()
	var value string
	if !d.AllArgs(&value) {
		return "", d.Errf("%s takes one argument", option)
	}
	if value == "" {
		return "", d.Errf("%s is empty", option)
	}
	return value, nil
}

// secrets reads where one or more secrets are; off is none.
func secrets(d *caddyfile.Dispenser) ([]string, error) {
	option := d.Val()
	args := d.RemainingArgs()
	if len(args) == 0 {
		return nil, d.Errf("%s takes one or more placeholders, or off", option)
	}
	if len(args) == 1 && args[0] == "off" {
		return nil, nil
	}
	for _, arg := range args {
		if err := checkSecret(option, arg); err != nil {
			return nil, d.Err(err.Error())
		}
	}
	return args, nil
}

func duration(d *caddyfile.Dispenser, bound gate.Bound[time.Duration]) (caddy.Duration, error) {
	option := d.Val()
	value, err := text(d)
	if err != nil {
		return 0, err
	}
	parsed, err := caddy.ParseDuration(value)
	if err != nil || !bound.Has(parsed) {
		return 0, d.Errf("%s %q is not a duration from %v, with its unit", option, value, bound)
	}
	return caddy.Duration(parsed), nil
}

func number(d *caddyfile.Dispenser, bound gate.Bound[int]) (int, error) {
	option := d.Val()
	value, err := text(d)
	if err != nil {
		return 0, err
	}
	n, err := strconv.Atoi(value)
	if err != nil || !bound.Has(n) {
		return 0, d.Errf("%s %q is not a whole number from %v", option, value, bound)
	}
	return n, nil
}

func onOff(d *caddyfile.Dispenser) (bool, error) {
	option := d.Val()
	value, err := text(d)
	if err != nil {
		return false, err
	}
	if value != "on" && value != "off" {
		return false, d.Errf("%s %q is neither on nor off", option, value)
	}
	return value == "on", nil
}

// Interface guards
var (
	_ caddyfile.Unmarshaler = (*App)(nil)
	_ caddyfile.Unmarshaler = (*Handler)(nil)
)
