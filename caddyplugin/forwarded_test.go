package caddyplugin

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Whose address a call is counted for is said by the connection, or by the proxy
// that the operator trusts, and never by the client, however he spells it.
func TestForwardedForIsNotBelieved(t *testing.T) {
	const strict = "\tservers {\n\t\ttrusted_proxies static 127.0.0.1/32\n\t\ttrusted_proxies_strict\n\t}\n"
	cases := map[string]struct {
		servers   string
		forwarded []string // %d is another number each time
		want      map[int]int
	}{
		"nobody is trusted":         {"", []string{"198.51.100.%d"}, map[int]int{200: 5, 429: 7}},
		"put in front":              {strict, []string{"198.51.100.%d, 192.0.2.1"}, map[int]int{200: 5, 429: 7}},
		"in a field of its own":     {strict, []string{"198.51.100.%d", "192.0.2.1"}, map[int]int{200: 5, 429: 7}},
		"IPv4 as IPv6":              {strict, []string{"::ffff:192.0.2.1"}, map[int]int{200: 5, 429: 7}},
		"one network":               {strict, []string{"2001:db8::%x"}, map[int]int{200: 5, 429: 7}},
		"zones":                     {strict, []string{"fe80::1%%eth%d"}, map[int]int{200: 5, 429: 7}},
		"no address":                {strict, []string{"unknown-%d"}, map[int]int{200: 5, 429: 7}},
		"ports":                     {strict, []string{"192.0.2.1:1%d"}, map[int]int{200: 5, 429: 7}},
		"empty":                     {strict, []string{""}, map[int]int{200: 5, 429: 7}},
		"clients of a proxy":        {strict, []string{"198.51.100.%d"}, map[int]int{200: 12}},
		"denied":                    {strict, []string{"203.0.113.9"}, map[int]int{403: 12}},
		"denied, as IPv6":           {strict, []string{"::ffff:203.0.113.9"}, map[int]int{403: 12}},
		"denied, behind an allowed": {strict, []string{"198.51.100.%d, 203.0.113.9"}, map[int]int{403: 12}},
	}
	onEach(t, func(t *testing.T, e *edge) {
		e.sell(10, 1)
		for name, tc := range cases {
			e.load(e.config("", byHeader)) // without its level a limit is forgotten
			e.waitOpen()
			config := e.config("limit ip 5/1h\n\t\tdeny 203.0.113.0/24", byHeader)
			e.load(strings.Replace(config, "\tmetrics\n", "\tmetrics\n"+tc.servers, 1))
			got := map[int]int{}
			for i := range 12 {
				got[e.again(func() (reply, error) {
					r, err := http.NewRequest(http.MethodGet, "http://"+e.site+"/seckill/1001", nil)
					require.NoError(t, err)
					for _, f := range tc.forwarded {
						if strings.Contains(f, "%") {
							f = fmt.Sprintf(f, i+1)
						}
						r.Header.Add("X-Forwarded-For", f)
					}
					r.Header.Set("X-Real-Ip", fmt.Sprint("198.51.100.", i))
					r.Header.Set("Forwarded", fmt.Sprint("for=198.51.100.", i))
					return e.do(r)
				}).status]++
			}
			require.Equal(t, tc.want, got, name)
		}
	})
}

// The log tells nothing that anybody could log in, sign or buy with, at its
// chattiest, and neither do the config, the figures and the answers.
func TestSecretsStayOutOfTheLog(t *testing.T) {
	onEach(t, func(t *testing.T, e *edge) {
		e.sell(10, 1)
		t.Setenv("TEST_LOGIN_SECRET", loginSecret)
		t.Setenv("TEST_TICKET_SECRET", ticketSecret)
		file := filepath.Join(t.TempDir(), "log")
		config := e.config("ticket_keys {env.TEST_TICKET_SECRET}", "log\n\tseckill_jwt {\n\t\tkey h1 HS256 {env.TEST_LOGIN_SECRET}\n\t\tissuer https://login.example\n\t\taudience shop\n\t\tcookie shop_token\n\t}\n\tseckill")
		e.load(strings.Replace(config, "\tmetrics\n", "\tmetrics\n\tdebug\n\tlog default {\n\t\toutput file "+file+" {\n\t\t\troll_disabled\n\t\t}\n\t}\n", 1))
		e.waitOpen()
		good := login(t, "alice")
		answers := ""
		for _, fields := range []map[string]string{
			{"Authorization": "Bearer " + good},
			{"Authorization": "Bearer " + good + "x"},
			{"Authorization": "Bearer c2VjcmV0.c2VjcmV0.c2VjcmV0"},
			{"Authorization": "Basic c2VjcmV0"},
			{"Cookie": "shop_token=" + good},
			{"Cookie": "shop_token=c2VjcmV0"},
		} {
			for _, method := range []string{http.MethodGet, http.MethodPost} {
				r, err := http.NewRequest(method, "http://"+e.site+"/seckill/1001", nil)
				require.NoError(t, err)
				for name, value := range fields {
					r.Header.Set(name, value)
				}
				answers += string(e.again(func() (reply, error) { return e.do(r) }).body)
			}
		}
		log, err := os.ReadFile(file)
		require.NoError(t, err)
		require.Contains(t, string(log), "a token was refused")
		for where, text := range map[string]string{
			"log": string(log), "config": string(e.adminGet("/config/").body), "figures": string(e.adminGet("/metrics").body), "answers": answers,
		} {
			for _, secret := range []string{loginSecret, ticketSecret, good, good[strings.LastIndexByte(good, '.')+1:], "c2VjcmV0"} {
				require.NotContains(t, text, secret, where)
			}
		}
	})
}
