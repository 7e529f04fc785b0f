package main

import (
	"embed"
	"fmt"
	"io/fs"
	"os"
)

// shop is the storefront: plain files, which a real shop replaces by its own.
//
//go:embed shop
var shop embed.FS

// writeShop puts the storefront into folder, for Caddy's file server.
func writeShop(folder string) error {
	pages, err := fs.Sub(shop, "shop")
	if err == nil {
		err = os.CopyFS(folder, pages)
	}
	if err != nil {
		return fmt.Errorf("writing the shop's pages to %s: %w", folder, err)
	}
	return nil
}
