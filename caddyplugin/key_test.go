package caddyplugin

import (
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestIdempotencyKey(t *testing.T) {
	for name, tc := range map[string]struct {
		values []string
		want   string
		ok     bool
	}{
		"none":        {nil, "", true},
		"one":         {[]string{`"8e03978e-40d5-43dd-bc93-6894a57f9324"`}, `"8e03978e-40d5-43dd-bc93-6894a57f9324"`, true},
		"the longest": {[]string{strings.Repeat("~", 128)}, strings.Repeat("~", 128), true},
		"too long":    {[]string{strings.Repeat("k", 129)}, "", false},
		"empty":       {[]string{""}, "", false},
		"two":         {[]string{"a", "a"}, "", false},
		"space":       {[]string{"a b"}, "", false},
		"not ASCII":   {[]string{"ä"}, "", false},
		"control":     {[]string{"a\x7f"}, "", false},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScript()
			r := post("")
			if tc.values != nil {
				r.Header["Idempotency-Key"] = tc.values
			}
			answer := serve(t, newTestHandler(s), r)
			if !tc.ok {
				requireProblem(t, answer, 400, -1)
				require.Zero(t, s.click)
				return
			}
			require.Equal(t, 202, answer.StatusCode)
			require.Equal(t, tc.want, s.click.Key)
		})
	}
}

// The whole way: the first order again, on every edge and after the sale; another
// body is refused.
func TestRepeatThroughCaddy(t *testing.T) {
	onEach(t, func(t *testing.T, e *edge) {
		e.sell(2, 2)
		e.load(e.config("", byHeader))
		e.waitOpen()
		buy := func(user, key, body string) reply {
			t.Helper()
			return e.again(func() (reply, error) {
				r, err := http.NewRequest(http.MethodPost, "http://"+e.site+"/seckill/1001", strings.NewReader(body))
				require.NoError(t, err)
				r.Header.Set("X-User-Id", user)
				r.Header.Set("Idempotency-Key", key)
				return e.do(r)
			})
		}
		first := buy("alice", "k", "")
		require.Equal(t, 202, first.status)
		id := first.document(t)["order_id"].(string)
		again := func(when string) {
			t.Helper()
			r := buy("alice", "k", `{"quantity":1}`)
			require.Equal(t, 202, r.status, when)
			require.Equal(t, first.document(t), r.document(t), when)
			require.Equal(t, first.header.Get("Location"), r.header.Get("Location"))
			other := buy("alice", "k", `{"quantity":2}`)
			require.Equal(t, 422, other.status, when)
			require.EqualValues(t, -9, other.document(t)["code"], when)
		}
		again("while there is more")
		bobs := buy("bob", "k", "")
		require.Equal(t, 202, bobs.status, "another buyer's key is another one")
		require.Equal(t, 410, buy("alice", "l", "").status)
		again("sold out")
		// Another edge has nothing but Redis: a gate of other settings.
		e.load(e.config("linger 11ms", byHeader))
		again("on another edge")
		require.EqualValues(t, 1, e.theGate().Stats().Repeats)
		e.queued(map[string]string{"alice": id, "bob": bobs.document(t)["order_id"].(string)})
		left, err := e.store.Get(t.Context(), "seckill:stock:{1001}").Int()
		require.NoError(t, err)
		require.Zero(t, left)
	})
}
