package caddyplugin

import (
	"bytes"
	"crypto/ed25519"
	"encoding/base64"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	"github.com/golang-jwt/jwt/v5"
	"github.com/stretchr/testify/require"
)

const (
	loginSecret = "what the login service and the edges know"
	// byToken lets a signed token say who buys.
	byToken = `seckill_jwt {
		key h1 HS256 {env.TEST_LOGIN_SECRET}
		key e1 EdDSA %PUBLIC%
		issuer https://login.example
		audience shop
	}`
)

var loginKey = ed25519.NewKeyFromSeed([]byte(loginSecret[:ed25519.SeedSize]))

// tokenSite is byToken with the key that is made here.
func tokenSite(t testing.TB) string {
	t.Setenv("TEST_LOGIN_SECRET", loginSecret)
	public := base64.StdEncoding.EncodeToString(loginKey.Public().(ed25519.PublicKey))
	return strings.Replace(byToken, "%PUBLIC%", public, 1)
}

func newTokens(t testing.TB) Tokens {
	t.Setenv("TEST_LOGIN_SECRET", loginSecret)
	return Tokens{
		Keys: []TokenKey{
			{ID: "h1", Algorithm: "HS256", Key: "{env.TEST_LOGIN_SECRET}"},
			{ID: "e1", Algorithm: "EdDSA", Key: base64.StdEncoding.EncodeToString(loginKey.Public().(ed25519.PublicKey))},
		},
		Issuer: "https://login.example", Audience: []string{"shop"},
	}
}

// login is a token for user as a login service makes it.
func login(t testing.TB, user string, change ...func(*jwt.Token)) string {
	t.Helper()
	now := time.Now()
	token := jwt.NewWithClaims(jwt.SigningMethodHS256, jwt.MapClaims{
		"iss": "https://login.example", "aud": "shop", "sub": user, "exp": now.Add(time.Minute).Unix(), "nbf": now.Unix(),
	})
	token.Header["kid"] = "h1"
	for _, c := range change {
		c(token)
	}
	var key any = []byte(loginSecret)
	if token.Method == jwt.SigningMethodEdDSA {
		key = loginKey
	}
	if token.Method == jwt.SigningMethodNone {
		key = jwt.UnsafeAllowNoneSignatureType
	}
	text, err := token.SignedString(key)
	require.NoError(t, err)
	return text
}

func claim(name string, value any) func(*jwt.Token) {
	return func(t *jwt.Token) { t.Claims.(jwt.MapClaims)[name] = value }
}

func signedBy(method jwt.SigningMethod, kid string) func(*jwt.Token) {
	return func(t *jwt.Token) {
		t.Method = method
		t.Header["alg"], t.Header["kid"] = method.Alg(), kid
	}
}

// logins are what may stand in the Authorization fields of a request, and what
// comes of it.
func logins(t testing.TB) map[string]struct {
	fields []string
	user   string // empty: nobody
	kind   string // of the refusal
} {
	good := login(t, "alice")
	return map[string]struct {
		fields []string
		user   string
		kind   string
	}{
		"HS256":            {[]string{"Bearer " + good}, "alice", ""},
		"EdDSA":            {[]string{"Bearer " + login(t, "alice", signedBy(jwt.SigningMethodEdDSA, "e1"))}, "alice", ""},
		"lower case":       {[]string{"bearer  " + good + " "}, "alice", ""},
		"none":             {nil, "", ""},
		"another scheme":   {[]string{"Basic YWxpY2U6eA=="}, "", ""},
		"two fields":       {[]string{"Bearer " + good, "Bearer " + good}, "", "invalid_token"},
		"two schemes":      {[]string{"Basic YWxpY2U6eA==", "Bearer " + good}, "", "invalid_token"},
		"two tokens":       {[]string{"Bearer " + good + " " + good}, "", "invalid_token"},
		"list":             {[]string{"Bearer " + good + ", Bearer " + good}, "", "invalid_token"},
		"empty":            {[]string{"Bearer"}, "", "invalid_token"},
		"garbage":          {[]string{"Bearer \x00\xff{}"}, "", "invalid_token"},
		"expired":          {[]string{"Bearer " + login(t, "alice", claim("exp", time.Now().Add(-time.Minute).Unix()))}, "", "expired_token"},
		"not valid yet":    {[]string{"Bearer " + login(t, "alice", claim("nbf", time.Now().Add(time.Minute).Unix()))}, "", "invalid_token"},
		"another audience": {[]string{"Bearer " + login(t, "alice", claim("aud", "mail"))}, "", "invalid_token"},
		"alg none":         {[]string{"Bearer " + login(t, "alice", signedBy(jwt.SigningMethodNone, "h1"))}, "", "invalid_token"},
		"unknown key":      {[]string{"Bearer " + login(t, "alice", signedBy(jwt.SigningMethodHS256, "h2"))}, "", "invalid_token"},
		"key of another":   {[]string{"Bearer " + login(t, "alice", signedBy(jwt.SigningMethodHS256, "e1"))}, "", "invalid_token"},
		"too long":         {[]string{"Bearer " + strings.Repeat("a", 5000)}, "", "invalid_token"},
	}
}

func TestTokenHandler(t *testing.T) {
	h := &TokenHandler{Tokens: newTokens(t)}
	provisionTokens(t, h)
	for name, tc := range logins(t) {
		t.Run(name, func(t *testing.T) {
			w := httptest.NewRecorder()
			r := prepare(w, get("/"), "")
			r.Header["Authorization"] = tc.fields
			r.Header.Set("X-User-Id", "mallory")
			passed := false
			require.NoError(t, h.ServeHTTP(w, r, caddyhttp.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) error {
				passed = true
				require.Equal(t, tc.user, newIdentity("").of(r))
				return nil
			})))
			require.Equal(t, tc.kind == "", passed)
			if tc.kind != "" {
				d := requireProblem(t, w.Result(), 401, 0)
				require.Equal(t, "urn:seckill:"+tc.kind, d["type"])
				require.Contains(t, w.Header().Get("WWW-Authenticate"), `Bearer error="invalid_token"`)
			}
		})
	}
}

func TestTokenProvider(t *testing.T) {
	p := &TokenProvider{Tokens: newTokens(t)}
	provisionTokens(t, p)
	for name, tc := range logins(t) {
		t.Run(name, func(t *testing.T) {
			w := httptest.NewRecorder()
			r := prepare(w, get("/"), "")
			r.Header["Authorization"] = tc.fields
			user, ok, err := p.Authenticate(w, r)
			require.NoError(t, err)
			require.Equal(t, tc.user != "", ok)
			require.Equal(t, tc.user, user.ID)
			require.Equal(t, !ok, strings.HasPrefix(w.Header().Get("WWW-Authenticate"), "Bearer"))
		})
	}
}

func provisionTokens(t *testing.T, m caddy.Provisioner) {
	t.Helper()
	ctx, cancel := caddy.NewContext(caddy.Context{Context: t.Context()})
	t.Cleanup(cancel)
	require.NoError(t, m.Provision(ctx))
}

// FuzzAuthorization: whatever stands in the field, there is an answer, and nobody
// gets in who has no token.
func FuzzAuthorization(f *testing.F) {
	h := &TokenHandler{Tokens: newTokens(f)}
	ctx, cancel := caddy.NewContext(caddy.Context{Context: f.Context()})
	f.Cleanup(cancel)
	require.NoError(f, h.Provision(ctx))
	for _, tc := range logins(f) {
		f.Add(strings.Join(tc.fields, ","))
	}
	f.Fuzz(func(t *testing.T, field string) {
		w := httptest.NewRecorder()
		r := prepare(w, get("/"), "")
		r.Header.Set("Authorization", field)
		require.NoError(t, h.ServeHTTP(w, r, caddyhttp.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) error {
			if user := newIdentity("").of(r); user != "" {
				require.Equal(t, "alice", user)
			}
			w.WriteHeader(http.StatusTeapot)
			return nil
		})))
		require.Contains(t, []int{401, 418}, w.Code)
	})
}

// The whole way, as an operator configures it: no header that names a user counts
// for anything, and who has no good token buys nothing.
func TestTokensThroughCaddy(t *testing.T) {
	onEach(t, func(t *testing.T, e *edge) {
		e.sell(10, 1)
		e.load(e.config("", tokenSite(t)+"\n\tseckill"))
		e.waitOpen()
		ask := func(method, path, authorization string) reply {
			return e.again(func() (reply, error) {
				r, err := http.NewRequest(method, "http://"+e.site+path, nil)
				require.NoError(t, err)
				for _, name := range []string{"X-User-Id", "Remote-User", "X-Forwarded-User", "Http.Auth.User.Id"} {
					r.Header.Set(name, "mallory")
				}
				if authorization != "" {
					r.Header.Set("Authorization", authorization)
				}
				return e.do(r)
			})
		}
		require.Equal(t, 200, ask("GET", "/seckill/1001", "").status, "everybody may see when it begins")
		nobody := ask("POST", "/seckill/1001", "")
		require.Equal(t, 401, nobody.status)
		require.Equal(t, "Bearer", nobody.header.Get("WWW-Authenticate"))
		for name, tc := range logins(t) {
			if len(tc.fields) != 1 || tc.user != "" || strings.ContainsRune(tc.fields[0], 0) {
				continue
			}
			require.Equal(t, 401, ask("POST", "/seckill/1001", tc.fields[0]).status, name)
		}
		late := ask("POST", "/seckill/1001", "Bearer "+login(t, "alice", claim("exp", time.Now().Add(-time.Hour).Unix())))
		require.Equal(t, 401, late.status)
		require.NotEqual(t, "0", e.figure(`caddy_seckill_tokens_total{result="invalid"}`))
		expired, err := strconv.Atoi(e.figure(`caddy_seckill_tokens_total{result="expired"}`))
		require.NoError(t, err)
		require.Positive(t, expired)
		require.Equal(t, "0", e.figure(`caddy_seckill_tokens_total{result="good"}`))
		bought := ask("POST", "/seckill/1001", "Bearer "+login(t, "alice"))
		require.Equal(t, 202, bought.status, "%s", bought.body)
		id := bought.document(t)["order_id"].(string)
		require.Equal(t, 200, ask("GET", "/seckill/1001/orders/"+id, "Bearer "+login(t, "alice")).status)
		require.Equal(t, 404, ask("GET", "/seckill/1001/orders/"+id, "Bearer "+login(t, "mallory")).status)
		require.Equal(t, "3", e.figure(`caddy_seckill_tokens_total{result="good"}`))
		e.queued(map[string]string{"alice": id})
	})
}

// Caddy's own authentication handler, given our provider, keeps strangers out of
// anything. It has no directive: the config is JSON.
func TestTokenProviderThroughCaddy(t *testing.T) {
	onEach(t, func(t *testing.T, e *edge) {
		adapted, _, err := caddyconfig.GetAdapter("caddyfile").Adapt([]byte(e.config("", tokenSite(t)+"\n\trespond {http.auth.user.id}")), nil)
		require.NoError(t, err)
		tokens := regexp.MustCompile(`\{[^{}]*"handler":"seckill_jwt".*?\]\}`).Find(adapted)
		require.NotEmpty(t, tokens)
		provider := strings.Replace(string(tokens), `"handler":"seckill_jwt",`, "", 1)
		adapted = bytes.Replace(adapted, tokens, []byte(`{"handler":"authentication","providers":{"seckill_jwt":`+provider+`}}`), 1)
		require.NoError(t, caddy.Load(adapted, true))
		e.loaded = true
		ask := func(authorization string) reply {
			return e.again(func() (reply, error) {
				r, err := http.NewRequest(http.MethodGet, "http://"+e.site+"/anything", nil)
				require.NoError(t, err)
				if authorization != "" {
					r.Header.Set("Authorization", authorization)
				}
				return e.do(r)
			})
		}
		for _, bad := range []string{"", "Bearer x"} {
			r := ask(bad)
			require.Equal(t, 401, r.status)
			require.Contains(t, r.header.Get("WWW-Authenticate"), "Bearer")
		}
		require.Equal(t, "alice", string(ask("Bearer "+login(t, "alice")).body))
	})
}

func TestTokenConfig(t *testing.T) {
	t.Setenv("TEST_SHORT_SECRET", "too short, s3cret")
	t.Setenv("TEST_LOGIN_SECRET", loginSecret)
	for name, tc := range map[string]struct{ block, want string }{
		"secret in the file": {"key k HS256 s3cret_s3cret_s3cret_s3cret_s3cret\nissuer i\naudience a", "where the secret is"},
		"no such secret":     {"key k HS256 {env.TEST_NO_SUCH_SECRET}\nissuer i\naudience a", "nothing at {env.TEST_NO_SUCH_SECRET}"},
		"short secret":       {"key k HS256 {env.TEST_SHORT_SECRET}\nissuer i\naudience a", "17 bytes"},
		"no public key":      {"key k EdDSA s3cret\nissuer i\naudience a", "Ed25519"},
		"long skew":          {"key k HS256 {env.TEST_LOGIN_SECRET}\nissuer i\naudience a\nskew 1h", "skew"},
	} {
		t.Run(name, func(t *testing.T) {
			err := validate(t, ":0 {\n\tseckill_jwt {\n"+tc.block+"\n\t}\n}\n")
			require.ErrorContains(t, err, tc.want)
			require.NotContains(t, err.Error(), "s3cret")
		})
	}
}
