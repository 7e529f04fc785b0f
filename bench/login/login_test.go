package login

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/seckill-edge/seckill/caddyplugin/token"
)

const secret = "a secret that only this test and its edge know"

// An edge with the same key takes the tokens, until they expire.
func TestToken(t *testing.T) {
	s, err := New("2026-11", secret, "https://login.example.com", "shop")
	require.NoError(t, err)
	now := time.UnixMilli(1_790_000_000_000)
	signed, err := s.Token("buyer-1-7", now.Add(time.Minute))
	require.NoError(t, err)

	key, err := token.NewKey("2026-11", token.HS256, secret)
	require.NoError(t, err)
	for at, want := range map[time.Duration]bool{0: true, time.Hour: false} {
		edge, err := token.New(token.Config{
			Keys: []token.Key{key}, Issuer: "https://login.example.com", Audience: []string{"shop"}, Now: func() time.Time { return now.Add(at) },
		})
		require.NoError(t, err)
		user, err := edge.User(signed)
		require.Equal(t, want, err == nil, err)
		if want {
			require.Equal(t, "buyer-1-7", user)
		}
	}
}

func TestNewShowsNoSecret(t *testing.T) {
	for _, bad := range []string{"too short a secret", "-----BEGIN PUBLIC KEY-----" + strings.Repeat("x", 40)} {
		_, err := New("id", bad, "i", "a")
		require.Error(t, err)
		require.NotContains(t, err.Error(), bad)
	}
	_, err := New("", secret, "i", "a")
	require.ErrorContains(t, err, "key id")
}
