package caddyplugin

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
	"github.com/stretchr/testify/require"
)

// FuzzCaddyfile: no config makes the parser panic, and what it takes survives
// being written as JSON, the form in which Caddy hands it to the module.
func FuzzCaddyfile(f *testing.F) {
	files, err := filepath.Glob("testdata/adapt/*.caddyfiletest")
	require.NoError(f, err)
	require.NotEmpty(f, files)
	for _, file := range files {
		text, err := os.ReadFile(file)
		require.NoError(f, err)
		blocks, err := caddyfile.Parse(file, text)
		if err != nil {
			continue
		}
		for _, block := range blocks {
			for _, segment := range block.Segments {
				if len(segment) > 0 {
					f.Add(tokensText(segment))
				}
			}
		}
	}
	f.Fuzz(func(t *testing.T, text string) {
		tokens, err := caddyfile.Tokenize([]byte(text), "fuzz")
		if err != nil { // Caddy refuses it before we see it
			return
		}
		app, again := new(App), new(App)
		if app.UnmarshalCaddyfile(caddyfile.NewDispenser(tokens)) == nil {
			written, err := json.Marshal(app)
			require.NoError(t, err)
			require.NoError(t, json.Unmarshal(written, again))
			rewritten, err := json.Marshal(again)
			require.NoError(t, err)
			require.JSONEq(t, string(written), string(rewritten))
			_, _ = app.resolve()
		}
		_ = new(Handler).UnmarshalCaddyfile(caddyfile.NewDispenser(tokens))
		_ = new(LimitHandler).UnmarshalCaddyfile(caddyfile.NewDispenser(tokens))
		_ = new(TokenHandler).UnmarshalCaddyfile(caddyfile.NewDispenser(tokens))
	})
}

// tokensText writes a segment's tokens as they might have stood in the file.
func tokensText(segment caddyfile.Segment) string {
	text, line := "", segment[0].Line
	for _, token := range segment {
		if token.Line > line {
			text, line = text+"\n", token.Line
		}
		text += token.Text + " "
	}
	return text
}

// FuzzRoute: a product or an order of a path is one that may become part of a
// key, whatever the path is.
func FuzzRoute(f *testing.F) {
	for _, path := range []string{
		"/seckill/1001", "/seckill/1001/orders/01kb7q3x5e8g9h0jkmnpqrstvw/events", "/seckill//1001", "/seckill/{1001}",
		"/seckill/1001/orders/", "/seckill/1001/orders/../x", "/seckillx", "/seckill/%7B1%7D", "",
	} {
		f.Add(path)
	}
	f.Fuzz(func(t *testing.T, path string) {
		what, product, orderID := route("/seckill", path)
		switch what {
		case notOurs, unknownPath, badProduct:
			return
		default:
		}
		require.Regexp(t, `^[A-Za-z0-9_-]{1,64}$`, product)
		require.NotContains(t, orderID, "/")
	})
}
