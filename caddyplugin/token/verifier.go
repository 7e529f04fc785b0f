// Package token verifies the signed tokens (JSON Web Tokens, RFC 7519) by which a
// login service says who is calling. It knows nothing of HTTP or Caddy; time is
// passed in.
package token

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/golang-jwt/jwt/v5"
)

const (
	// MaxLength bounds a token, in bytes; a longer one is refused unread.
	MaxLength = 4096
	// MaxSkew bounds Config.Skew.
	MaxSkew = 5 * time.Minute
	// MaxKeys bounds the keys of a verifier.
	MaxKeys = 16
	// maxTime is the last second of the year 9999. What is later is no time: in
	// milliseconds a token would never expire, and far beyond numbers overflow.
	maxTime = 253402300799
	// maxRemembered bounds the user ids that are remembered, in bytes.
	maxRemembered = 256
	// subject is the claim that says by default who is calling.
	subject = "sub"
)

// noUser are registered claims (RFC 7519) that never say who is calling: by most of
// them many buyers would be one, and by jti each token another buyer.
var noUser = []string{"aud", "exp", "iat", "iss", "jti", "nbf"}

// What is wrong with a token, beside the details.
var (
	// ErrExpired: it was good, and is no longer. Its bearer should fetch a new one.
	ErrExpired = errors.New("the token has expired")
	// ErrInvalid: it is not good here.
	ErrInvalid = errors.New("the token is not valid")
)

// Config says which tokens are good. All but UserClaim and Skew are required.
type Config struct {
	// Keys are those that tokens may be signed with; a token names its key (kid),
	// and is refused if it is signed in another way than that key is for.
	Keys []Key
	// Issuer must be the token's (iss), one of Audience among those it is for (aud).
	Issuer   string
	Audience []string
	// UserClaim is the claim that holds the user's id: a text, or a whole number.
	// Default sub.
	UserClaim string
	// Skew is how much the issuer's clock may differ, up to MaxSkew.
	Skew time.Duration
	Now  func() time.Time
}

// Verifier verifies tokens. It is safe for concurrent use.
type Verifier struct {
	keys   map[string]Key
	claim  string
	now    func() time.Time
	parser *jwt.Parser
	seen   *cache
}

// New checks the config.
func New(c Config) (*Verifier, error) {
	if len(c.Keys) == 0 || len(c.Keys) > MaxKeys {
		return nil, fmt.Errorf("%d keys: there must be 1 to %d", len(c.Keys), MaxKeys)
	}
	if c.Issuer == "" {
		return nil, errors.New("issuer is empty; name who makes the tokens, as their claim iss does")
	}
	if len(c.Audience) == 0 {
		return nil, errors.New("audience is empty; name this shop as the claim aud does, or tokens for any other service would be good here")
	}
	if slices.Contains(c.Audience, "") {
		return nil, errors.New("audience holds an empty name")
	}
	if c.Skew < 0 || c.Skew > MaxSkew {
		return nil, fmt.Errorf("skew %v: must be 0 to %v", c.Skew, MaxSkew)
	}
	v := &Verifier{keys: make(map[string]Key, len(c.Keys)), claim: c.UserClaim, now: c.Now, seen: newCache()}
	if v.claim == "" {
		v.claim = subject
	}
	if slices.Contains(noUser, v.claim) {
		return nil, fmt.Errorf("user_claim %s does not say who is calling; take %s or a claim of the login service's own", v.claim, subject)
	}
	for _, k := range c.Keys {
		if _, twice := v.keys[k.id]; twice {
			return nil, fmt.Errorf("two keys have the id %q", k.id)
		}
		v.keys[k.id] = k
	}
	v.parser = jwt.NewParser(
		jwt.WithValidMethods([]string{HS256, EdDSA}),
		jwt.WithStrictDecoding(),
		jwt.WithExpirationRequired(),
		jwt.WithIssuer(c.Issuer),
		jwt.WithAudience(c.Audience...),
		jwt.WithLeeway(c.Skew),
		jwt.WithTimeFunc(c.Now),
	)
	return v, nil
}

// User verifies a token and returns the id of its user. Errors are ErrExpired and
// ErrInvalid, wrapped; their text is for logs and holds nothing of the token but
// the id of its key. The same token is verified once as long as it is
// remembered, which is never beyond its expiry.
func (v *Verifier) User(token string) (string, error) {
	if len(token) > MaxLength {
		return "", fmt.Errorf("%w: %d bytes are more than %d", ErrInvalid, len(token), MaxLength)
	}
	// Go's base64 passes over line ends, strict or not: a token would have many texts.
	if strings.ContainsAny(token, "\r\n") {
		return "", fmt.Errorf("%w: it has line ends", ErrInvalid)
	}
	sum := sumOf(token)
	if user, ok := v.seen.get(sum, v.now()); ok {
		return user, nil
	}
	claims := make(jwt.MapClaims)
	if _, err := v.parser.ParseWithClaims(token, claims, v.key); err != nil {
		if errors.Is(err, jwt.ErrTokenExpired) {
			return "", ErrExpired
		}
		return "", fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	for _, name := range []string{"exp", "nbf"} {
		if at, _ := claims[name].(float64); math.Abs(at) > maxTime {
			return "", fmt.Errorf("%w: %s is beyond the year 9999; it must be in seconds", ErrInvalid, name)
		}
	}
	user, ok := text(claims[v.claim])
	if !ok {
		return "", fmt.Errorf("%w: claim %q is no text and no whole number", ErrInvalid, v.claim)
	}
	if expires, err := claims.GetExpirationTime(); err == nil && expires != nil && len(user) <= maxRemembered {
		v.seen.put(sum, user, expires.Time)
	}
	return user, nil
}

// key finds the key that a token names. What the token says is not believed
// beyond that: keys it brings along or points to are never looked at.
func (v *Verifier) key(t *jwt.Token) (any, error) {
	if _, critical := t.Header["crit"]; critical {
		return nil, errors.New("it has extensions that must be understood, and none is")
	}
	id, _ := t.Header["kid"].(string)
	k, known := v.keys[id]
	if !known {
		return nil, fmt.Errorf("key %.64q is not known", id)
	}
	if t.Method.Alg() != k.algorithm {
		return nil, fmt.Errorf("key %q is for %s, and the token is signed by %s", id, k.algorithm, t.Method.Alg())
	}
	return k.material, nil
}

// text reads a user id.
func text(claim any) (string, bool) {
	switch c := claim.(type) {
	case string:
		return c, c != ""
	case float64:
		if c == math.Trunc(c) && math.Abs(c) < 1<<53 { // exact
			return strconv.FormatInt(int64(c), 10), true
		}
	}
	return "", false
}
