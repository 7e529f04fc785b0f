package main

import (
	"io"
	"net/http"
	"os"
	"testing"

	"github.com/alicebob/miniredis/v2"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/seckill-edge/seckill/internal/servicetest"
)

// asCommand in the environment makes this test binary the command itself.
const asCommand = "SECKILL_TEST_AS_STANDALONE"

func TestMain(m *testing.M) {
	if os.Getenv(asCommand) != "" {
		main()
	}
	goleak.VerifyTestMain(servicetest.Main(m))
}

// get reads a page.
func get(t *testing.T, url string) (status int, body string, h http.Header) {
	t.Helper()
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	resp, err := client.Get(url)
	require.NoError(t, err)
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	return resp.StatusCode, string(b), resp.Header
}

func TestEdgeServesTheShop(t *testing.T) {
	r := miniredis.RunT(t)
	address, err := reserve(t.Context(), "--listen", "127.0.0.1:0")
	require.NoError(t, err)
	e := edge{listen: address, redis: "redis://" + r.Addr(), rabbitmq: "memory:edge", folder: t.TempDir()}
	require.NoError(t, e.start())
	defer func() { require.NoError(t, e.stop()) }()
	for path, kind := range map[string]string{
		"/": "text/html", "/shop.js": "text/javascript", "/shop.css": "text/css", "/icon.svg": "image/svg+xml",
	} {
		status, body, h := get(t, "http://"+address+path)
		require.Equal(t, http.StatusOK, status, path)
		require.Contains(t, h.Get("Content-Type"), kind, path)
		require.NotEmpty(t, body, path)
	}
	status, _, _ := get(t, "http://"+address+"/seckill/7")
	require.Equal(t, http.StatusNotFound, status, "a product that nobody sells")
}
