package main

import (
	"fmt"
	"time"

	"github.com/seckill-edge/seckill/bench/login"
	"github.com/seckill-edge/seckill/internal/secret"
)

// tokens say how buyers prove who they are to an edge with seckill_jwt; the zero
// value, that they only say it.
type tokens struct {
	secretFile, keyID, issuer, audience string
}

func (t tokens) any() bool { return t != tokens{} }

// tokenGrace is how much longer than the run a token is good.
const tokenGrace = time.Minute

// validate says which of the flags are missing. They have no defaults, as
// seckill_jwt has none.
func (t tokens) validate() error {
	if !t.any() {
		return nil
	}
	for _, f := range []struct{ flag, value, is string }{
		{"--token-secret-file", t.secretFile, "the file with the secret of its HS256 key"},
		{"--token-key-id", t.keyID, "the id of that key"},
		{"--issuer", t.issuer, "its issuer"},
		{"--audience", t.audience, "one of its audience"},
	} {
		if f.value == "" {
			return fmt.Errorf("%s is missing; for an edge with seckill_jwt give %s, and the other three", f.flag, f.is)
		}
	}
	return nil
}

// service reads the secret as the edge does.
func (t tokens) service() (*login.Service, error) {
	key, err := secret.File("--token-secret-file", t.secretFile)
	if err != nil {
		return nil, fmt.Errorf("%w; name the file that the edge reads its HS256 key from", err)
	}
	s, err := login.New(t.keyID, key, t.issuer, t.audience)
	if err != nil {
		return nil, fmt.Errorf("--token-secret-file %s: %w", t.secretFile, err)
	}
	return s, nil
}

// sign gives each buyer his token, before anybody clicks; nothing if none is wanted.
func (c *crowd) sign(t tokens, until time.Time) error {
	if !t.any() {
		return nil
	}
	s, err := t.service()
	if err != nil {
		return err
	}
	c.tokens = make([]string, c.buyers)
	for b := range c.tokens {
		if c.tokens[b], err = s.Token(c.name(b), until); err != nil {
			return err
		}
	}
	return nil
}
