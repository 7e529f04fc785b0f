package token

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestNewKey(t *testing.T) {
	der, err := x509.MarshalPKIXPublicKey(public)
	require.NoError(t, err)
	privateDER, err := x509.MarshalPKCS8PrivateKey(private)
	require.NoError(t, err)
	privatePEM := string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: privateDER}))
	p256, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	otherDER, err := x509.MarshalPKIXPublicKey(p256.Public())
	require.NoError(t, err)
	for name, tc := range map[string]struct{ id, algorithm, text, want string }{
		"secret":               {"k", HS256, shared, ""},
		"PEM":                  {"k", EdDSA, pemOf(t), ""},
		"PEM in white space":   {"k", EdDSA, "\n" + pemOf(t) + "\n\n", ""},
		"base64":               {"k", EdDSA, base64.StdEncoding.EncodeToString(public), ""},
		"base64url":            {"k", EdDSA, base64.RawURLEncoding.EncodeToString(public), ""},
		"base64 of the DER":    {"k", EdDSA, base64.StdEncoding.EncodeToString(der), ""},
		"no id":                {"", HS256, shared, "key id"},
		"long id":              {strings.Repeat("k", 129), HS256, shared, "key id"},
		"short secret":         {"k", HS256, shared[:MinSecret-1], "31 bytes"},
		"PEM as a secret":      {"k", HS256, pemOf(t), "EdDSA"},
		"private key":          {"k", EdDSA, privatePEM, "private"},
		"another curve":        {"k", EdDSA, base64.StdEncoding.EncodeToString(otherDER), "Ed25519"},
		"two PEM blocks":       {"k", EdDSA, pemOf(t) + pemOf(t), "Ed25519"},
		"a secret for EdDSA":   {"k", EdDSA, shared, "Ed25519"},
		"empty":                {"k", EdDSA, "", "Ed25519"},
		"none":                 {"k", "none", shared, "neither"},
		"another algorithm":    {"k", "RS256", shared, "neither"},
		"algorithm's own case": {"k", "hs256", shared, "neither"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := NewKey(tc.id, tc.algorithm, tc.text)
			if tc.want == "" {
				require.NoError(t, err)
				return
			}
			require.ErrorContains(t, err, tc.want)
			require.NotContains(t, err.Error(), shared[:MinSecret-1])
		})
	}
}
