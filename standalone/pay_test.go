package main

import (
	"net/http"
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
	require.Equal(t, "Created: your order is stored and waits for your payment.", b.text("message"))
	b.until(`/^00:0[1-8]$/.test(document.getElementById("payleft").textContent)`)
	require.Equal(t, "true", b.eval(`document.getElementById("payleft").checkVisibility()`))
	first := b.text("orderid")
	b.click("buy")
	b.until(`document.getElementById("message").textContent.includes("already")`)
	b.orderIs("expired")
	require.Contains(t, b.text("message"), "Expired")
	require.Equal(t, "false", b.eval(`document.getElementById("payleft").checkVisibility()`))
	b.click("buy")
	b.orderIs("created")
	require.NotEqual(t, first, b.text("orderid"))

	// Somebody takes the last unit, and the page does not know until it clicks.
	b.click("newbuyer")
	b.orderIs("none")
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
