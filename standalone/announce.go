package main

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
)

// announce says where everything is and what to try.
func (w *works) announce(out io.Writer, asJSON bool) error {
	shop, console := "http://"+w.shopAt, "http://"+w.console
	if asJSON {
		return json.NewEncoder(out).Encode(struct {
			Shop     string `json:"shop"`
			Console  string `json:"console"`
			Product  string `json:"product"`
			Activity string `json:"activity"`
			Units    int64  `json:"units"`
		}{shop, console, product, w.activity, w.units})
	}
	_, err := fmt.Fprintf(out, `A flash sale is on: %d units of product %s.

  shop      %s/
  console   %s/
  buy one   curl -i -X POST -H 'X-User-Id: alice' %s/seckill/%s
  a crowd   go run ./bench/rush --url %s --product %s --buyers 1000 --console %s
  stop      Ctrl-C

  %s
`, w.units, product, shop, console, shop, product, shop, product, console, strings.Join(w.parts, ", "))
	return err
}
