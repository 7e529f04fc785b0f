package caddyplugin

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp/caddyauth"

	"github.com/seckill-edge/seckill/caddyplugin/gate"
	"github.com/seckill-edge/seckill/caddyplugin/token"
)

// jwtName is the directive, and the last part of both modules' ids.
const jwtName = appName + "_jwt"

const defaultSkew = 30 * time.Second

// skewBound is what a Caddyfile may say.
var skewBound = gate.Bound[time.Duration]{Min: time.Millisecond, Max: token.MaxSkew}

// challengeVar is the request variable that says that a good token would have been
// taken: true if there was none, or the error of the cookie's.
const challengeVar = "seckill_bearer"

// Tokens says which signed tokens (JSON Web Tokens) are believed.
type Tokens struct {
	// Keys are those that tokens may be signed with. Several are good at a time, so
	// that a key can be replaced without turning anybody away.
	Keys []TokenKey `json:"keys,omitempty"`
	// Issuer must be the token's claim iss. Required.
	Issuer string `json:"issuer,omitempty"`
	// Audience holds names of this shop, one of which must be in the token's claim
	// aud. Required: else a token for any other service would be good here.
	Audience []string `json:"audience,omitempty"`
	// UserClaim is the claim that holds the user's id, a text or a whole number.
	// Default sub.
	UserClaim string `json:"user_claim,omitempty"`
	// Cookie names a cookie that may hold the token of a GET or HEAD without a field
	// Authorization: an EventSource has no other way to send one. Nothing is bought
	// by a cookie, which browsers send along with what other sites make them ask; and
	// who has a bad one, which he cannot put away, is nobody. Default: none.
	Cookie string `json:"cookie,omitempty"`
	// Skew is how much the issuer's clock may differ, at most 5m. Default 30s.
	Skew caddy.Duration `json:"skew,omitempty"`
}

// TokenKey is one key that tokens may be signed with.
type TokenKey struct {
	// ID is what tokens call it in their header, kid. A token that names none is
	// refused.
	ID string `json:"id"`
	// Algorithm is HS256 or EdDSA (Ed25519). A token that names this key and is
	// signed in another way is refused.
	Algorithm string `json:"algorithm"`
	// Key is, for HS256, where the secret of at least 32 bytes is: {env.NAME} or
	// {file./path}; for EdDSA the public key in base64, or a placeholder like these
	// for one in PEM or base64.
	Key string `json:"key"`
}

// verifier makes what verifies them.
func (t *Tokens) verifier() (*token.Verifier, error) {
	c := token.Config{
		Issuer: t.Issuer, Audience: t.Audience, UserClaim: t.UserClaim, Skew: time.Duration(t.Skew), Now: time.Now,
	}
	if c.Skew == 0 {
		c.Skew = defaultSkew
	}
	for _, k := range t.Keys {
		option := fmt.Sprintf("%s: key %q", jwtName, k.ID)
		var text string
		var err error
		if k.Algorithm == token.HS256 {
			text, err = secretOf(option, k.Key)
		} else {
			text, err = address(option, k.Key, "")
		}
		if err != nil {
			return nil, err
		}
		key, err := token.NewKey(k.ID, k.Algorithm, text)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", jwtName, err)
		}
		c.Keys = append(c.Keys, key)
	}
	if t.Cookie != "" && (&http.Cookie{Name: t.Cookie, Value: "x"}).Valid() != nil {
		return nil, fmt.Errorf("%s: cookie %.64q is not the name of a cookie", jwtName, t.Cookie)
	}
	v, err := token.New(c)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", jwtName, err)
	}
	return v, nil
}

// TokenHandler finds out who is calling by the bearer token of a request, and sets
// {http.auth.user.id}. A bearer token that is not good is answered 401. A request without
// one goes on as nobody's: the seckill handler behind it shows activities to
// everybody and sells to nobody unknown. To keep strangers from anything else, use
// the provider seckill_jwt in Caddy's authentication handler, which does.
type TokenHandler struct {
	Tokens

	check tokenCheck
}

// CaddyModule returns the Caddy module information.
func (*TokenHandler) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{ID: "http.handlers." + jwtName, New: func() caddy.Module { return new(TokenHandler) }}
}

// Provision reads the keys.
func (h *TokenHandler) Provision(ctx caddy.Context) error {
	return h.check.provision(ctx, &h.Tokens)
}

// ServeHTTP answers what has a bad token, and lets the rest go on.
func (h *TokenHandler) ServeHTTP(w http.ResponseWriter, r *http.Request, next caddyhttp.Handler) error {
	text, found, err := h.find(r)
	if err == nil && !found {
		caddyhttp.SetVar(r.Context(), challengeVar, true)
		return next.ServeHTTP(w, r)
	}
	user, err := h.check.user(text, err)
	switch {
	case err == nil:
	case r.Header["Authorization"] == nil:
		caddyhttp.SetVar(r.Context(), challengeVar, err)
		return next.ServeHTTP(w, r)
	default:
		challenge(w, err).write(w, 0)
		return nil
	}
	r.Context().Value(caddy.ReplacerCtxKey).(*caddy.Replacer).Set(defaultIdentity, user)
	return next.ServeHTTP(w, r)
}

// TokenProvider is an authentication provider: it lets in who has a good bearer
// token, and nobody else. Caddy then sets {http.auth.user.id}.
type TokenProvider struct {
	Tokens

	check tokenCheck
}

// CaddyModule returns the Caddy module information.
func (*TokenProvider) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{ID: "http.authentication.providers." + jwtName, New: func() caddy.Module { return new(TokenProvider) }}
}

// Provision reads the keys.
func (p *TokenProvider) Provision(ctx caddy.Context) error {
	return p.check.provision(ctx, &p.Tokens)
}

// Authenticate verifies the request's token.
func (p *TokenProvider) Authenticate(w http.ResponseWriter, r *http.Request) (caddyauth.User, bool, error) {
	text, found, err := p.find(r)
	if err == nil && !found {
		w.Header().Set("WWW-Authenticate", "Bearer")
		return caddyauth.User{}, false, nil
	}
	user, err := p.check.user(text, err)
	if err != nil {
		challenge(w, err)
		return caddyauth.User{}, false, nil // a bad token is no failure of ours
	}
	return caddyauth.User{ID: user}, true, nil
}

// find finds the request's token, in its cookie where it may be there.
func (t *Tokens) find(r *http.Request) (text string, found bool, err error) {
	text, found, err = bearer(r)
	if found || err != nil || t.Cookie == "" || r.Header["Authorization"] != nil ||
		r.Method != http.MethodGet && r.Method != http.MethodHead {
		return text, found, err
	}
	switch cookies := r.CookiesNamed(t.Cookie); len(cookies) {
	case 0:
		return "", false, nil
	case 1:
		return cookies[0].Value, true, nil
	default:
		return "", false, fmt.Errorf("%w: the request has %d cookies %s", token.ErrInvalid, len(cookies), t.Cookie)
	}
}

// bearer finds the request's token; false if it has none, be it that it proves who
// is calling in another way.
func bearer(r *http.Request) (text string, found bool, err error) {
	values := r.Header["Authorization"]
	switch {
	case len(values) == 0:
		return "", false, nil
	case len(values) > 1:
		return "", false, fmt.Errorf("%w: the request has %d Authorization fields", token.ErrInvalid, len(values))
	}
	scheme, text, _ := strings.Cut(values[0], " ")
	if !strings.EqualFold(scheme, "Bearer") {
		return "", false, nil
	}
	return strings.Trim(text, " "), true, nil
}

// challenge tells by WWW-Authenticate (RFC 6750) what is wrong with a token, and
// returns the refusal that says the same. Why exactly is told to the log only.
func challenge(w http.ResponseWriter, err error) *problem {
	if errors.Is(err, token.ErrExpired) {
		w.Header().Set("WWW-Authenticate", `Bearer error="invalid_token", error_description="The token has expired"`)
		return &expiredToken
	}
	w.Header().Set("WWW-Authenticate", `Bearer error="invalid_token"`)
	return &invalidToken
}

// refuseStranger answers who has not said who he is, and how he might.
func refuseStranger(w http.ResponseWriter, r *http.Request) {
	switch token := caddyhttp.GetVar(r.Context(), challengeVar).(type) {
	case error:
		challenge(w, token).write(w, 0)
		return
	case bool:
		w.Header().Set("WWW-Authenticate", "Bearer")
	}
	unauthorized.write(w, 0)
}

// The refusals of tokens.
var (
	invalidToken = newProblem(http.StatusUnauthorized, 0, "invalid_token", "Invalid token",
		"The bearer token is not good here. Log in again.")
	expiredToken = newProblem(http.StatusUnauthorized, 0, "expired_token", "Expired token",
		"The bearer token has expired. Fetch a new one.")
)

// Interface guards
var (
	_ caddy.Provisioner           = (*TokenHandler)(nil)
	_ caddyhttp.MiddlewareHandler = (*TokenHandler)(nil)
	_ caddy.Provisioner           = (*TokenProvider)(nil)
	_ caddyauth.Authenticator     = (*TokenProvider)(nil)
)
