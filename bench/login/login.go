// Package login stands in for the login service of a shop: it signs the tokens that
// an edge with seckill_jwt takes, so that a crowd can rehearse a sale where nobody is
// believed by his name alone.
package login

import (
	"fmt"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"github.com/seckill-edge/seckill/caddyplugin/token"
)

// Service signs tokens with one secret (HS256). It is safe for concurrent use.
type Service struct {
	keyID, issuer, audience string
	secret                  []byte
}

// New makes a service. secret is the text that the edge has for the key keyID, of
// token.MinSecret bytes or more; issuer and audience are what the edge wants to read
// in a token. Errors never show the secret.
func New(keyID, secret, issuer, audience string) (*Service, error) {
	if _, err := token.NewKey(keyID, token.HS256, secret); err != nil {
		return nil, err
	}
	return &Service{keyID: keyID, issuer: issuer, audience: audience, secret: []byte(secret)}, nil
}

// Token says who user is until the time given, in whole seconds.
func (s *Service) Token(user string, until time.Time) (string, error) {
	t := jwt.NewWithClaims(jwt.SigningMethodHS256, jwt.MapClaims{
		"sub": user, "iss": s.issuer, "aud": s.audience, "exp": until.Unix(),
	})
	t.Header["kid"] = s.keyID
	signed, err := t.SignedString(s.secret)
	if err != nil {
		return "", fmt.Errorf("signing a token for %q: %w", user, err)
	}
	return signed, nil
}
