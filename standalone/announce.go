package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
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
	buy, crowd := commands(shop, os.Getenv("SECKILL_REQUIRE_TICKET") == "on")
	_, err := fmt.Fprintf(out, `A flash sale is on: %d units of product %s.

  shop      %s/
  console   %s/
  buy one   %s
  a crowd   %s --console %s
  stop      Ctrl-C

  %s
`, w.units, product, shop, console, buy, crowd, console, strings.Join(w.parts, ", "))
	return err
}

// commands buy in a shop: one unit, and as a crowd. Where it takes no click without a
// ticket they fetch one first.
func commands(shop string, tickets bool) (buy, crowd string) {
	address := shop + "/seckill/" + product
	buy = "curl -i -X POST -H 'X-User-Id: alice' "
	crowd = fmt.Sprintf("go run ./bench/rush --url %s --product %s --buyers 1000", shop, product)
	if tickets {
		buy += `-H "Seckill-Ticket: $(curl -s -X POST -H 'X-User-Id: alice' ` + address + `/ticket | cut -d'"' -f6)" `
		crowd += " --ticket"
	}
	return buy + address, crowd
}
