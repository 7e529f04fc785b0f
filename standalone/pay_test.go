package main

import (
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// saleWithPayment: the page counts down the time to pay, and what it says follows the
// order: nothing that has ceased to be so stays on it.
func saleWithPayment(t *testing.T) {
	s := startSale(t, "--units", "2", "--pay-window", "8s")
	b := openBrowser(t)
	b.visit(s.Shop + "/")
	b.saleIs("open")
	require.Equal(t, "false", b.eval(`document.getElementById("payleft").checkVisibility()`))
	b.click("buy")
	b.orderIs("created")
	require.Equal(t, "Your order is stored and waits for your payment.", b.text("message"))
	b.until(`/^00:0[1-8]$/.test(document.getElementById("payleft").textContent)`)
	require.Equal(t, "true", b.eval(`document.getElementById("payleft").checkVisibility()`))
	first := b.text("orderid")
	b.nothingToBuy()
	require.Equal(t, "true", b.eval(`document.getElementById("pay").checkVisibility()`))
	b.orderIs("expired")
	require.Contains(t, b.text("message"), "expired")
	require.Equal(t, "false", b.eval(`document.getElementById("pay").checkVisibility()`))
	require.Equal(t, "false", b.eval(`document.getElementById("payleft").checkVisibility()`))
	b.mayBuy()
	b.click("buy")
	b.orderIs("created")
	require.NotEqual(t, first, b.text("orderid"))

	// Somebody takes the last unit, and the page does not know until it clicks.
	b.nothingToBuy()
	b.click("newbuyer")
	b.orderIs("none")
	b.mayBuy()
	b.eval(`{ const real = fetch; window.deaf = true;
		window.fetch = (path, options) => window.deaf && options.method === "GET" ? Promise.reject(new TypeError("deaf")) : real(path, options); }`)
	status, _ := s.buy("bob")
	require.Equal(t, http.StatusAccepted, status)
	b.click("buy")
	b.until(`document.getElementById("message").textContent.includes("Sold out")`)
	b.eval(`window.deaf = false`)
	b.saleIs("sold_out")
	require.Contains(t, b.text("message"), "Sold out")
	b.saleIs("open")
	b.until(`document.getElementById("message").textContent === ""`)
	b.noFaults()
}

// payInShop: the page offers to pay where it can, its steps say what is true, and the
// order's way is told without colours too.
func payInShop(t *testing.T) {
	s := startSale(t, "--units", "2", "--pay-window", "1h")
	b := openBrowser(t)
	b.visit(s.Shop + "/")
	b.saleIs("open")
	b.click("buy")
	b.orderIs("created")
	require.Equal(t, []string{"Clicked 已点击: done", "In the queue 排队中: done", "Stored 已下单: done", "Payment 付款: in progress"}, b.steps())
	require.Equal(t, "step4", b.eval(`document.querySelector("[aria-current=step]").id`))
	require.Equal(t, "Waiting for payment · 待付款", b.text("orderstatus"))
	require.Regexp(t, `^\d\d:\d\d:\d\d$`, b.text("payuntil"))
	require.Equal(t, "false", b.eval(`document.getElementById("paywhere").checkVisibility()`))
	b.click("pay")
	b.orderIs("paid")
	require.Equal(t, "Paid. Thank you.", b.text("message"))
	require.Equal(t, "Payment 付款: done", b.steps()[3])
	require.Equal(t, "false", b.eval(`document.getElementById("pay").checkVisibility()`))
	b.nothingToBuy()

	// The same page in a shop of somebody's own, which takes payments elsewhere.
	b.eval(`document.querySelector("meta[name=payment]").content = "none"`)
	b.nothingToBuy()
	b.click("newbuyer")
	b.orderIs("none")
	b.mayBuy()
	b.click("buy")
	b.orderIs("created")
	require.Equal(t, "false", b.eval(`document.getElementById("pay").checkVisibility()`))
	require.Equal(t, "true", b.eval(`document.getElementById("paywhere").checkVisibility()`))
	b.noFaults()
}

// steps are what a screen reader reads of an order's way.
func (b *browser) steps() []string {
	b.t.Helper()
	return strings.Split(b.eval(`[...document.querySelectorAll(".steps li:not([hidden])")].map((li) => li.textContent).join("|")`), "|")
}
