package token

import (
	"crypto/ed25519"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"
	"github.com/stretchr/testify/require"
)

const (
	shared = "a secret that the issuer and the edges share"
	older  = "the secret of last month, that still verifies"
)

var (
	noon    = time.Unix(1_794_427_200, 0)
	private = ed25519.NewKeyFromSeed([]byte("a seed of thirty-two bytes, fixed"[:32]))
	public  = private.Public().(ed25519.PublicKey)
)

func pemOf(t testing.TB) string {
	t.Helper()
	der, err := x509.MarshalPKIXPublicKey(public)
	require.NoError(t, err)
	return string(pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der}))
}

func key(t testing.TB, id, algorithm, text string) Key {
	t.Helper()
	k, err := NewKey(id, algorithm, text)
	require.NoError(t, err)
	return k
}

// clock is the time of a verifier, set by a test.
type clock struct{ at time.Time }

func (c *clock) now() time.Time { return c.at }

func verifier(t testing.TB, c *clock) *Verifier {
	t.Helper()
	v, err := New(Config{
		Keys:   []Key{key(t, "new", HS256, shared), key(t, "old", HS256, older), key(t, "ed", EdDSA, pemOf(t))},
		Issuer: "https://login.example", Audience: []string{"shop", "shop-app"},
		Skew: 30 * time.Second, Now: c.now,
	})
	require.NoError(t, err)
	return v
}

// claims are those of a good token; change may spoil them.
func claims(change ...func(jwt.MapClaims)) jwt.MapClaims {
	c := jwt.MapClaims{
		"iss": "https://login.example", "aud": "shop", "sub": "alice",
		"iat": noon.Unix(), "nbf": noon.Unix(), "exp": noon.Add(10 * time.Minute).Unix(),
	}
	for _, f := range change {
		f(c)
	}
	return c
}

// sign makes a token; header is added to its own.
func sign(t testing.TB, method jwt.SigningMethod, with any, header map[string]any, c jwt.MapClaims) string {
	t.Helper()
	token := jwt.NewWithClaims(method, c)
	maps.Copy(token.Header, header)
	text, err := token.SignedString(with)
	require.NoError(t, err)
	return text
}

func kid(id any) map[string]any { return map[string]any{"kid": id} }

func with(name string, value any) func(jwt.MapClaims) {
	return func(c jwt.MapClaims) { c[name] = value }
}

func without(name string) func(jwt.MapClaims) { return func(c jwt.MapClaims) { delete(c, name) } }

func TestUser(t *testing.T) {
	hs, ed := jwt.SigningMethodHS256, jwt.SigningMethodEdDSA
	new, old := []byte(shared), []byte(older)
	good := sign(t, hs, new, kid("new"), claims())
	for name, tc := range map[string]struct {
		token string
		want  error
		after time.Duration
	}{
		"HS256":                     {good, nil, 0},
		"the old key verifies":      {sign(t, hs, old, kid("old"), claims()), nil, 0},
		"EdDSA":                     {sign(t, ed, private, kid("ed"), claims()), nil, 0},
		"one of the audiences":      {sign(t, hs, new, kid("new"), claims(with("aud", []string{"x", "shop-app"}))), nil, 0},
		"expired within the skew":   {good, nil, 10*time.Minute + 29*time.Second},
		"early within the skew":     {good, nil, -30 * time.Second},
		"expired":                   {good, ErrExpired, 10*time.Minute + 30*time.Second},
		"not valid yet":             {good, ErrInvalid, -31 * time.Second},
		"no expiry":                 {sign(t, hs, new, kid("new"), claims(without("exp"))), ErrInvalid, 0},
		"expiry in milliseconds":    {sign(t, hs, new, kid("new"), claims(with("exp", noon.Add(time.Minute).UnixMilli()))), ErrInvalid, 0},
		"never valid":               {sign(t, hs, new, kid("new"), claims(with("nbf", 1e300))), ErrInvalid, 0},
		"expiry of another kind":    {sign(t, hs, new, kid("new"), claims(with("exp", "2099"))), ErrInvalid, 0},
		"expiry null":               {sign(t, hs, new, kid("new"), claims(with("exp", nil))), ErrInvalid, 0},
		"another audience":          {sign(t, hs, new, kid("new"), claims(with("aud", "mail"))), ErrInvalid, 0},
		"no audience":               {sign(t, hs, new, kid("new"), claims(without("aud"))), ErrInvalid, 0},
		"an audience that is none":  {sign(t, hs, new, kid("new"), claims(with("aud", 7))), ErrInvalid, 0},
		"another issuer":            {sign(t, hs, new, kid("new"), claims(with("iss", "https://login.example.evil"))), ErrInvalid, 0},
		"no issuer":                 {sign(t, hs, new, kid("new"), claims(without("iss"))), ErrInvalid, 0},
		"no user":                   {sign(t, hs, new, kid("new"), claims(without("sub"))), ErrInvalid, 0},
		"an empty user":             {sign(t, hs, new, kid("new"), claims(with("sub", ""))), ErrInvalid, 0},
		"a user that is a list":     {sign(t, hs, new, kid("new"), claims(with("sub", []string{"alice"}))), ErrInvalid, 0},
		"another spelling of sub":   {sign(t, hs, new, kid("new"), claims(without("sub"), with("SUB", "alice"))), ErrInvalid, 0},
		"the wrong secret":          {sign(t, hs, old, kid("new"), claims()), ErrInvalid, 0},
		"no key id":                 {sign(t, hs, new, nil, claims()), ErrInvalid, 0},
		"an unknown key":            {sign(t, hs, new, kid("newer"), claims()), ErrInvalid, 0},
		"a key id that is a path":   {sign(t, hs, []byte{}, kid("../../../../dev/null"), claims()), ErrInvalid, 0},
		"a key id that is a number": {sign(t, hs, new, kid(1), claims()), ErrInvalid, 0},
		"a key id that is a list":   {sign(t, hs, new, kid([]string{"new"}), claims()), ErrInvalid, 0},
		"HS256 for an EdDSA key":    {sign(t, hs, []byte(public), kid("ed"), claims()), ErrInvalid, 0},
		"its PEM as the secret":     {sign(t, hs, []byte(pemOf(t)), kid("ed"), claims()), ErrInvalid, 0},
		"EdDSA for an HS256 key":    {sign(t, ed, private, kid("new"), claims()), ErrInvalid, 0},
		"HS512":                     {sign(t, jwt.SigningMethodHS512, new, kid("new"), claims()), ErrInvalid, 0},
		"none":                      {sign(t, jwt.SigningMethodNone, jwt.UnsafeAllowNoneSignatureType, kid("new"), claims()), ErrInvalid, 0},
		"none, in another case":     {respell(t, good, `"alg":"nOnE"`), ErrInvalid, 0},
		"hs256 in lower case":       {respell(t, good, `"alg":"hs256"`), ErrInvalid, 0},
		"extensions":                {sign(t, hs, new, map[string]any{"kid": "new", "crit": []string{"b64"}, "b64": false}, claims()), ErrInvalid, 0},
		"its own key":               {sign(t, hs, old, map[string]any{"kid": "own", "jwk": map[string]string{"kty": "oct"}, "jku": "http://127.0.0.1/"}, claims()), ErrInvalid, 0},
		"no signature":              {good[:strings.LastIndexByte(good, '.')+1], ErrInvalid, 0},
		"two parts":                 {good[:strings.LastIndexByte(good, '.')], ErrInvalid, 0},
		"four parts":                {good + ".e30", ErrInvalid, 0},
		"padded":                    {good + "=", ErrInvalid, 0},
		"too long":                  {sign(t, hs, new, kid("new"), claims(with("x", strings.Repeat("x", MaxLength)))), ErrInvalid, 0},
		"empty":                     {"", ErrInvalid, 0},
		"dots":                      {"..", ErrInvalid, 0},
	} {
		t.Run(name, func(t *testing.T) {
			c := &clock{noon.Add(tc.after)}
			v := verifier(t, c)
			for range 2 { // the second time it may be remembered
				user, err := v.User(tc.token)
				require.ErrorIs(t, err, tc.want)
				if tc.want == nil {
					require.Equal(t, "alice", user)
					continue
				}
				require.Empty(t, user)
				for _, secret := range []string{shared, older, "alice", tc.token} {
					if len(secret) > 2 {
						require.NotContains(t, err.Error(), secret)
					}
				}
			}
		})
	}
}

// respell changes the alg of a token's header, and leaves the rest.
func respell(t testing.TB, token, alg string) string {
	t.Helper()
	head, rest, _ := strings.Cut(token, ".")
	raw, err := base64.RawURLEncoding.DecodeString(head)
	require.NoError(t, err)
	return base64.RawURLEncoding.EncodeToString([]byte(strings.Replace(string(raw), `"alg":"HS256"`, alg, 1))) + "." + rest
}

// TestEveryByteOfATokenCounts changes each character of a token in turn.
func TestEveryByteOfATokenCounts(t *testing.T) {
	v := verifier(t, &clock{noon})
	good := sign(t, jwt.SigningMethodHS256, []byte(shared), kid("new"), claims())
	_, err := v.User(good)
	require.NoError(t, err)
	for i := range good {
		bad := []byte(good)
		bad[i] = 'A' + (bad[i]+1)%26
		if bad[i] == good[i] {
			continue
		}
		_, err := v.User(string(bad))
		require.Error(t, err, "%s", bad)
	}
}

// TestRemembered: what was verified is believed no longer than until its expiry.
func TestRemembered(t *testing.T) {
	c := &clock{noon}
	v := verifier(t, c)
	token := sign(t, jwt.SigningMethodEdDSA, private, kid("ed"), claims())
	_, err := v.User(token)
	require.NoError(t, err)
	user, ok := v.seen.get(sumOf(token), noon.Add(10*time.Minute-time.Second))
	require.True(t, ok)
	require.Equal(t, "alice", user)
	_, ok = v.seen.get(sumOf(token), noon.Add(10*time.Minute))
	require.False(t, ok)
	_, ok = v.seen.get(sumOf(token+"A"), noon)
	require.False(t, ok)
	c.at = noon.Add(time.Hour)
	_, err = v.User(token)
	require.ErrorIs(t, err, ErrExpired)
}

func TestUserClaim(t *testing.T) {
	c := Config{
		Keys: []Key{key(t, "k", HS256, shared)}, Issuer: "https://login.example", Audience: []string{"shop"},
		UserClaim: "uid", Now: (&clock{noon}).now,
	}
	v, err := New(c)
	require.NoError(t, err)
	for name, tc := range map[string]struct {
		value any
		want  string
	}{
		"text":         {"u-7", "u-7"},
		"number":       {4711, "4711"},
		"fraction":     {1.5, ""},
		"beyond exact": {json.Number("9007199254740993"), ""},
		"truth":        {true, ""},
	} {
		t.Run(name, func(t *testing.T) {
			user, err := v.User(sign(t, jwt.SigningMethodHS256, []byte(shared), kid("k"), claims(with("uid", tc.value))))
			require.Equal(t, tc.want, user)
			require.Equal(t, tc.want == "", err != nil)
		})
	}
}

func TestNew(t *testing.T) {
	k := key(t, "k", HS256, shared)
	for name, tc := range map[string]struct {
		change func(*Config)
		want   string
	}{
		"no keys":      {func(c *Config) { c.Keys = nil }, "0 keys"},
		"many keys":    {func(c *Config) { c.Keys = make([]Key, MaxKeys+1) }, "17 keys"},
		"twice":        {func(c *Config) { c.Keys = []Key{k, k} }, `two keys have the id "k"`},
		"not who":      {func(c *Config) { c.UserClaim = "exp" }, "user_claim exp"},
		"always new":   {func(c *Config) { c.UserClaim = "jti" }, "user_claim jti"},
		"no issuer":    {func(c *Config) { c.Issuer = "" }, "issuer"},
		"no audience":  {func(c *Config) { c.Audience = nil }, "audience"},
		"empty one":    {func(c *Config) { c.Audience = []string{"shop", ""} }, "audience"},
		"long skew":    {func(c *Config) { c.Skew = time.Hour }, "skew"},
		"backwards":    {func(c *Config) { c.Skew = -1 }, "skew"},
		"all is well ": {func(*Config) {}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			c := Config{Keys: []Key{k}, Issuer: "i", Audience: []string{"shop"}, Now: time.Now}
			tc.change(&c)
			_, err := New(c)
			if tc.want == "" {
				require.NoError(t, err)
				return
			}
			require.ErrorContains(t, err, tc.want)
		})
	}
}
