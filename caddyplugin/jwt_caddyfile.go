package caddyplugin

import (
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
	"github.com/caddyserver/caddy/v2/caddyconfig/httpcaddyfile"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/seckill-edge/seckill/caddyplugin/token"
)

// parseTokens reads the directive seckill_jwt.
func parseTokens(h httpcaddyfile.Helper) (caddyhttp.MiddlewareHandler, error) {
	handler := new(TokenHandler)
	err := handler.UnmarshalCaddyfile(h.Dispenser)
	return handler, err
}

// UnmarshalCaddyfile sets up the tokens from Caddyfile tokens. Syntax:
//
//	seckill_jwt [<matcher>] {
//	    key        <id> HS256 {env.<name>} | {file.<path>}
//	    key        <id> EdDSA <public key> | {env.<name>} | {file.<path>}
//	    issuer     <iss>
//	    audience   <aud...>
//	    user_claim <claim>
//	    cookie     <name>
//	    skew       <duration>
//	}
//
// There must be a key, of which there may be several, an issuer and an audience.
func (t *Tokens) UnmarshalCaddyfile(d *caddyfile.Dispenser) error {
	d.Next() // consume directive name
	if d.NextArg() {
		return d.ArgErr()
	}
	seen := make(options)
	for nesting := d.Nesting(); d.NextBlock(nesting); {
		if d.Val() != "key" {
			if err := seen.once(d); err != nil {
				return err
			}
		}
		var err error
		switch option := d.Val(); option {
		case "key":
			err = t.parseKey(d)
		case "issuer":
			t.Issuer, err = text(d)
		case "audience":
			if t.Audience = d.RemainingArgs(); len(t.Audience) == 0 {
				err = d.Err("audience takes one or more names")
			}
		case "user_claim":
			t.UserClaim, err = text(d)
		case "cookie":
			t.Cookie, err = text(d)
		case "skew":
			t.Skew, err = duration(d, skewBound)
		default:
			err = d.Errf("unrecognized seckill_jwt subdirective %q; there are key, issuer, audience, user_claim, cookie and skew", option)
		}
		if err != nil {
			return err
		}
	}
	switch {
	case len(t.Keys) == 0:
		return d.Err("seckill_jwt has no key; give one as: key <id> HS256 {env.NAME}")
	case t.Issuer == "":
		return d.Err("seckill_jwt has no issuer; name who makes the tokens, as their claim iss does")
	case len(t.Audience) == 0:
		return d.Err("seckill_jwt has no audience; name this shop as the claim aud does")
	}
	return nil
}

// parseKey reads one key. What is wrong with it is said without showing it.
func (t *Tokens) parseKey(d *caddyfile.Dispenser) error {
	var k TokenKey
	if !d.AllArgs(&k.ID, &k.Algorithm, &k.Key) {
		return d.Err("key takes an id, HS256 or EdDSA, and the key")
	}
	for _, other := range t.Keys {
		if other.ID == k.ID {
			return d.Errf("key %q is given twice", k.ID)
		}
	}
	switch k.Algorithm {
	case token.HS256:
		if err := checkSecret("key "+k.ID, k.Key); err != nil {
			return d.Err(err.Error())
		}
	case token.EdDSA:
	default:
		return d.Errf("key %q: algorithm %q is neither %s nor %s", k.ID, k.Algorithm, token.HS256, token.EdDSA)
	}
	t.Keys = append(t.Keys, k)
	return nil
}

// Interface guards
var (
	_ caddyfile.Unmarshaler = (*TokenHandler)(nil)
	_ caddyfile.Unmarshaler = (*TokenProvider)(nil)
)
