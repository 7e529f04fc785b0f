package caddyplugin

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig"
	"github.com/stretchr/testify/require"

	"github.com/seckill-edge/seckill"
)

// validate does what "caddy validate" does.
func validate(t testing.TB, caddyfile string) error {
	t.Helper()
	adapted, _, err := caddyconfig.GetAdapter("caddyfile").Adapt([]byte(caddyfile), map[string]any{"filename": "Caddyfile"})
	if err != nil {
		return err
	}
	var config caddy.Config
	require.NoError(t, json.Unmarshal(adapted, &config))
	err = caddy.Validate(&config)
	engines.Range(func(any, any) bool { t.Error("an engine is left"); return true })
	return err
}

// nowhere are addresses where nobody listens: port 1 needs no more than a
// refused connection.
const nowhereRedis, nowhereRabbitMQ = "redis://:s3cret@127.0.0.1:1/0", "amqp://user:s3cret@127.0.0.1:1/"

func TestProductionCaddyfile(t *testing.T) {
	formatted, warnings, err := caddyconfig.GetAdapter("caddyfile").Adapt(seckill.Caddyfile, map[string]any{"filename": "Caddyfile"})
	require.NoError(t, err)
	require.Empty(t, warnings)
	require.NotContains(t, string(formatted), `"auto_https"`)

	require.ErrorContains(t, validate(t, string(seckill.Caddyfile)), "env.SECKILL_REDIS_URL")
	t.Setenv("SECKILL_REDIS_URL", nowhereRedis)
	require.ErrorContains(t, validate(t, string(seckill.Caddyfile)), "env.SECKILL_RABBITMQ_URL")
	t.Setenv("SECKILL_RABBITMQ_URL", nowhereRabbitMQ)
	require.NoError(t, validate(t, string(seckill.Caddyfile)))

	t.Setenv("SECKILL_IDENTITY", "http.request.header.X-User-Id")
	require.ErrorContains(t, validate(t, string(seckill.Caddyfile)), "insecure_client_identity")
	t.Setenv("SECKILL_INSECURE_CLIENT_IDENTITY", "on")
	t.Setenv("SECKILL_LIMIT_IP", "off")
	t.Setenv("SECKILL_SITE", "http://127.0.0.1:0")
	require.NoError(t, validate(t, string(seckill.Caddyfile)))
}

func TestConfigErrors(t *testing.T) {
	for name, tc := range map[string]struct{ config, want string }{
		"no app":         {":0 {\n\tseckill\n}\n", "put a seckill { … } block into the global options"},
		"redis scheme":   {"{\n\tseckill {\n\t\tredis http://:s3cret@127.0.0.1\n\t}\n}\n", "redis:"},
		"queue scheme":   {"{\n\tseckill {\n\t\trabbitmq http://:s3cret@127.0.0.1\n\t}\n}\n", "rabbitmq:"},
		"unset":          {"{\n\tseckill {\n\t\tredis {env.SECKILL_NO_SUCH}\n\t}\n}\n", "env.SECKILL_NO_SUCH"},
		"backend scheme": {"{\n\tseckill {\n\t\tbackend ftp://:s3cret@127.0.0.1\n\t}\n}\n", "backend:"},
		"backend secret": {"{\n\tseckill {\n\t\tbackend http://u:s3cret@127.0.0.1\n\t}\n}\n", "backend:"},
		"token alone":    {"{\n\tseckill {\n\t\tbackend_token s3cret\n\t}\n}\n", "backend_token"},
		"streams":        {"{\n\tseckill {\n\t\tstreams 1048577\n\t}\n}\n", "streams"},
		"linger":         {"{\n\tseckill {\n\t\tlinger 1h\n\t}\n}\n", "linger"},
		"resolve_within": {"{\n\tseckill {\n\t\tresolve_within 1s\n\t}\n}\n", "resolve_within"},
		"identity":       {"{\n\tseckill\n}\n:0 {\n\tseckill {\n\t\tidentity {cookie.user}\n\t}\n}\n", "insecure_client_identity"},
	} {
		t.Run(name, func(t *testing.T) {
			err := validate(t, tc.config)
			require.ErrorContains(t, err, tc.want)
			require.NotContains(t, err.Error(), "s3cret")
		})
	}
}

func TestConfigJSON(t *testing.T) {
	for name, tc := range map[string]struct{ config, want string }{
		"limit":        {`{"apps":{"seckill":{"limits":{"user":{"events":0,"per":"1s"}}}}}`, "limits: user: 0 events"},
		"burst":        {`{"apps":{"seckill":{"limits":{"total":{"events":1,"per":"1s","burst":-1}}}}}`, "limits: total: burst -1"},
		"ipv4_prefix":  {`{"apps":{"seckill":{"limits":{"ip":{"events":1,"per":"1s","ipv4_prefix":33}}}}}`, "ipv4_prefix 33"},
		"allow":        {`{"apps":{"seckill":{"limits":{"allow":["10.0.0.0/8","shop.example"]}}}}`, "limits: allow: \"shop.example\""},
		"deny":         {`{"apps":{"seckill":{"limits":{"deny":["{env.SECKILL_NO_SUCH}"]}}}}`, "limits: deny: "},
		"no file":      {`{"apps":{"seckill":{"limits":{"deny":["{file./no/such/list}"]}}}}`, "limits: deny: {file./no/such/list}: open /no/such/list: no such file"},
		"no URL":       {`{"apps":{"seckill":{"redis":"{file./no/such/url}"}}}`, "redis: {file./no/such/url}: open /no/such/url: no such file"},
		"no secret":    {`{"apps":{"seckill":{"ticket_keys":["{file./no/such/secret}"]}}}`, "ticket_keys: {file./no/such/secret}: open /no/such/secret: no such file"},
		"surplus":      {`{"apps":{"seckill":{"surplus":1001}}}`, "surplus 1001"},
		"path_prefix":  {`{"apps":{"seckill":{},"http":{"servers":{"s":{"listen":["127.0.0.1:0"],"routes":[{"handle":[{"handler":"seckill","path_prefix":"sale"}]}]}}}}}`, "path_prefix"},
		"unknown":      {`{"apps":{"seckill":{"database":"x"}}}`, "database"},
		"all is well":  {`{"apps":{"seckill":{"surplus":-1,"limits":{"ip":{"events":5,"per":"1m","ipv6_prefix":56},"deny":["10.1.2.3 # why\\n2001:db8::/32"]}}}}`, ""},
		"bad per unit": {`{"apps":{"seckill":{"limits":{"ip":{"events":5,"per":"1x"}}}}}`, "1x"},
	} {
		t.Run(name, func(t *testing.T) {
			var config caddy.Config
			require.NoError(t, json.Unmarshal([]byte(tc.config), &config))
			err := caddy.Validate(&config)
			if tc.want == "" {
				require.NoError(t, err)
				return
			}
			require.ErrorContains(t, err, tc.want)
		})
	}
}

// Whoever takes the last line out of a list has an empty one, not a broken config.
func TestEmptyList(t *testing.T) {
	for _, content := range []string{"", "\n", " \n\n", "# nobody\n"} {
		path := filepath.Join(t.TempDir(), "deny")
		require.NoError(t, os.WriteFile(path, []byte(content), 0o600))
		l := Limits{Deny: []string{"{file." + path + "}", "192.0.2.1"}}
		c, err := l.resolve()
		require.NoError(t, err, "%q", content)
		require.Equal(t, 1, c.Deny.Len())
	}
}

// A config that is refused must not let go of what the running one holds.
func TestFailedReloadKeepsTheGate(t *testing.T) {
	onEach(t, func(t *testing.T, e *edge) {
		e.sell(10, 1)
		e.load(e.config("", byHeader))
		e.waitOpen()
		running := e.theGate()
		for _, bad := range []string{
			e.config("", "seckill {\n\tidentity {cookie.user}\n}"),          // refused after the app
			e.config("resolve_within 5s\n\t\treserve_timeout 2s", byHeader), // refused by the gate
		} {
			config, _, err := caddyconfig.GetAdapter("caddyfile").Adapt([]byte(bad), nil)
			require.NoError(t, err)
			require.Error(t, caddy.Load(config, true))
			require.Same(t, running, e.theGate())
		}
		require.Equal(t, 202, e.must("POST", "/seckill/1001", "alice", "").status)
	})
}

// What stands around a secret is no part of it, wherever it comes from; what is no
// secret is named when the config is loaded, and not shown.
func TestSecretsOfTheConfig(t *testing.T) {
	file := filepath.Join(t.TempDir(), "secret")
	const redis, long = "redis://:s3cret@127.0.0.1:1/0", "s3cret-of-at-least-thirty-two-bytes"
	config := func(option string) string { return "{\n\tseckill {\n\t\t" + option + "\n\t}\n}\n:0 {\n\tseckill\n}\n" }
	for option, value := range map[string]string{
		"redis %s":    redis,
		"rabbitmq %s": nowhereRabbitMQ,
		"backend http://127.0.0.1:1\n\t\tbackend_token %s": "s3cret",
		"ticket_keys %s": long,
	} {
		for _, place := range []string{"{env.SECKILL_TEST_SECRET}", "{file." + file + "}"} {
			load := func(text string) error {
				t.Setenv("SECKILL_TEST_SECRET", text)
				require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
				return validate(t, config(fmt.Sprintf(option, place)))
			}
			for _, around := range []string{"\n", "\r\n", " ", "\t", "\ufeff"} {
				require.NoError(t, load(around+value+around), "%s %q", option, around)
			}
			for _, bad := range []string{value + "\n" + value, " \n", "\xff\xfe" + value} {
				err := load(bad)
				require.ErrorContains(t, err, strings.Fields(option)[len(strings.Fields(option))-2], "%s %q", option, bad)
				require.NotContains(t, err.Error(), "s3cret")
			}
		}
	}
	t.Setenv("SECKILL_TEST_SECRET", "\ufeffs3cret\r\n")
	token, err := address("backend_token", "{env.SECKILL_TEST_SECRET}", "")
	require.NoError(t, err)
	require.Equal(t, "s3cret", token)
}
