package token

import (
	"testing"

	"github.com/golang-jwt/jwt/v5"
	"github.com/stretchr/testify/require"
)

// FuzzUser: whatever is presented, only a token that was signed is good.
func FuzzUser(f *testing.F) {
	v := verifier(f, &clock{noon})
	good := map[string]bool{
		sign(f, jwt.SigningMethodHS256, []byte(shared), kid("new"), claims()): true,
		sign(f, jwt.SigningMethodEdDSA, private, kid("ed"), claims()):         true,
	}
	for token := range good {
		f.Add(token)
		f.Add(token[:len(token)/2])
		f.Add(token[:len(token)-20] + "\r" + token[len(token)-20:])
		f.Add(token[:20] + "\n" + token[20:])
		f.Add(respell(f, token, `"alg":"none"`))
	}
	f.Add(sign(f, jwt.SigningMethodHS256, []byte(public), kid("ed"), claims()))
	f.Add("e30.e30.")
	f.Add("bnVsbA.bnVsbA.bnVsbA")
	f.Fuzz(func(t *testing.T, token string) {
		user, err := v.User(token)
		require.Equal(t, good[token], err == nil, "%q", token)
		if err == nil {
			require.Equal(t, "alice", user)
		}
	})
}

func BenchmarkUser(b *testing.B) {
	for name, token := range map[string]string{
		HS256: sign(b, jwt.SigningMethodHS256, []byte(shared), kid("new"), claims()),
		EdDSA: sign(b, jwt.SigningMethodEdDSA, private, kid("ed"), claims()),
	} {
		b.Run(name+"/first", func(b *testing.B) {
			v := verifier(b, &clock{noon})
			sum := sumOf(token)
			b.ReportAllocs()
			for b.Loop() {
				clear(v.seen.set(&sum)[:])
				if _, err := v.User(token); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run(name+"/remembered", func(b *testing.B) {
			v := verifier(b, &clock{noon})
			b.ReportAllocs()
			for b.Loop() {
				if _, err := v.User(token); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
