package token

import (
	"crypto/ed25519"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"
	"strings"
)

// The algorithms (RFC 7518, RFC 8037), as tokens name them.
const (
	HS256 = "HS256" // a secret that issuer and edges share
	EdDSA = "EdDSA" // Ed25519: edges cannot make tokens
)

// MinSecret is the least length of a secret, in bytes: that of the hash
// (RFC 7518, section 3.2).
const MinSecret = 32

// maxKeyID bounds a key's id, in bytes.
const maxKeyID = 128

// Key is one key that tokens may be signed with. It is for one algorithm only.
type Key struct {
	id        string
	algorithm string
	material  any // what golang-jwt wants: []byte or ed25519.PublicKey
}

// NewKey reads a key: for HS256 a secret of at least MinSecret bytes, for EdDSA an
// Ed25519 public key, in PEM or in base64. id is what tokens call it (kid). Errors
// never show what was given.
func NewKey(id, algorithm, text string) (Key, error) {
	if id == "" || len(id) > maxKeyID {
		return Key{}, fmt.Errorf("key id %.64q: must be 1 to %d bytes", id, maxKeyID)
	}
	k := Key{id: id, algorithm: algorithm}
	var err error
	switch algorithm {
	case HS256:
		k.material, err = secret(text)
	case EdDSA:
		k.material, err = publicKey(strings.TrimSpace(text))
	default:
		err = fmt.Errorf("algorithm %q is neither %s nor %s", algorithm, HS256, EdDSA)
	}
	if err != nil {
		return Key{}, fmt.Errorf("key %q: %w", id, err)
	}
	return k, nil
}

func secret(text string) ([]byte, error) {
	if strings.HasPrefix(text, "-----BEGIN") {
		// Whoever has the public key could sign with it.
		return nil, errors.New("a PEM block is no secret; for a public key the algorithm is EdDSA")
	}
	if len(text) < MinSecret {
		return nil, fmt.Errorf("the secret has %d bytes, and must have at least %d; make one with: openssl rand -base64 48", len(text), MinSecret)
	}
	return []byte(text), nil
}

// errPublicKey says what a public key may be.
var errPublicKey = errors.New("not an Ed25519 public key in PEM (BEGIN PUBLIC KEY) or base64; make the pair with: openssl genpkey -algorithm ed25519")

func publicKey(text string) (ed25519.PublicKey, error) {
	var der []byte
	if block, rest := pem.Decode([]byte(text)); block != nil {
		if strings.Contains(block.Type, "PRIVATE") {
			return nil, errors.New("this is a private key, which only the issuer should have; take its public half with: openssl pkey -pubout")
		}
		if block.Type != "PUBLIC KEY" || len(rest) > 0 {
			return nil, errPublicKey
		}
		der = block.Bytes
	} else {
		raw, err := decode(text)
		if err != nil {
			return nil, errPublicKey
		}
		if len(raw) == ed25519.PublicKeySize {
			return raw, nil
		}
		der = raw
	}
	parsed, err := x509.ParsePKIXPublicKey(der)
	if err != nil {
		return nil, errPublicKey
	}
	key, ok := parsed.(ed25519.PublicKey)
	if !ok {
		return nil, errPublicKey
	}
	return key, nil
}

// decode reads base64 of either alphabet, padded or not.
func decode(text string) ([]byte, error) {
	text = strings.NewReplacer("+", "-", "/", "_").Replace(strings.TrimRight(text, "="))
	return base64.RawURLEncoding.Strict().DecodeString(text)
}
