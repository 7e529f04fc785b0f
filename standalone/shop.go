package main

import (
	"bytes"
	"embed"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// shop is the storefront: plain files, which a real shop replaces by its own.
//
//go:embed shop
var shop embed.FS

// The page's mark of who takes payments: nobody, as a shop's own files say, or this
// demonstration, by its route /demo/pay/.
var noPayment, demoPayment = []byte(`<meta name="payment" content="none">`), []byte(`<meta name="payment" content="demo">`)

// writeShop puts the storefront into folder, for Caddy's file server. Its page can pay.
func writeShop(folder string) error {
	pages, err := fs.Sub(shop, "shop")
	if err == nil {
		err = os.CopyFS(folder, pages)
	}
	page := filepath.Join(folder, "index.html")
	var text []byte
	if err == nil {
		text, err = os.ReadFile(page)
	}
	if err == nil {
		err = os.WriteFile(page, bytes.Replace(text, noPayment, demoPayment, 1), 0o600)
	}
	if err != nil {
		return fmt.Errorf("writing the shop's pages to %s: %w", folder, err)
	}
	return nil
}
