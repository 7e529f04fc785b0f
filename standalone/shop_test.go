package main

import (
	"bytes"
	"encoding/json"
	"io/fs"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestShopPage looks at the storefront: at its files always, and with a real
// browser on a real sale unless -short is given.
func TestShopPage(t *testing.T) {
	looks := map[string]func(*testing.T){"files": lookAtFiles}
	if !testing.Short() {
		looks["a buyer's way"] = buyersWay
		looks["a sale that is to come"] = saleToCome
		looks["a sale with tickets"] = saleWithTickets
		looks["a sale with payment"] = saleWithPayment
		looks["a payment"] = payInShop
		looks["a lost answer"] = lostAnswer
		looks["a shop that cannot sell"] = cannotSell
		looks["contrast"] = contrast
	}
	for name, look := range looks {
		t.Run(name, look)
	}
}

// lookAtFiles checks that the page loads nothing from elsewhere, runs under a
// strict policy, and that its scripts find what they look for.
func lookAtFiles(t *testing.T) {
	files := map[string]string{}
	require.NoError(t, fs.WalkDir(shop, "shop", func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			var b []byte
			b, err = fs.ReadFile(shop, path)
			files[strings.TrimPrefix(path, "shop/")] = string(b)
		}
		return err
	}))
	page := files["index.html"]
	require.Contains(t, page, `content="default-src 'self'"`)
	require.NotRegexp(t, `(?i)<script>|<style|\sstyle=|\son[a-z]+=|javascript:`, page, "the policy forbids it")
	elsewhere := regexp.MustCompile(`(?i)(https?:)?//[a-z0-9.-]+\.[a-z]+`)
	for name, content := range files {
		content = strings.ReplaceAll(content, "http://www.w3.org/2000/svg", "")
		require.Empty(t, elsewhere.FindString(content), name)
	}
	for _, m := range regexp.MustCompile(`(?:href|src)="([^"]+)"`).FindAllStringSubmatch(page, -1) {
		require.Contains(t, files, m[1], "linked by the page")
	}
	for name, script := range files {
		for _, m := range regexp.MustCompile(`from "\./([^"]+)"`).FindAllStringSubmatch(script, -1) {
			require.Contains(t, files, m[1], "imported by %s", name)
		}
		for _, m := range regexp.MustCompile(`(?:\$|set)\("([a-z0-9]+)"`).FindAllStringSubmatch(script, -1) {
			require.Contains(t, page, `id="`+m[1]+`"`, "used by %s", name)
		}
	}
}

// orderIs waits for the order's state to show.
func (b *browser) orderIs(status string) {
	b.t.Helper()
	b.until(`document.getElementById("order").dataset.status === "` + status + `"`)
}

// saleIs waits for the activity's state to show.
func (b *browser) saleIs(state string) {
	b.t.Helper()
	b.until(`document.getElementById("sale").dataset.state === "` + state + `"`)
}

// noFaults fails if the page complained of anything but answers that refuse a
// click, which a browser notes as failed loads.
func (b *browser) noFaults() {
	b.t.Helper()
	for _, c := range b.complaints {
		require.Regexp(b.t, `status of (409|410|403|503)`, c)
	}
}

// mayBuy waits until the page offers a purchase.
func (b *browser) mayBuy() {
	b.t.Helper()
	b.until(`document.getElementById("buy").checkVisibility() && document.getElementById("buy").getAttribute("aria-disabled") === "false"`)
}

// nothingToBuy waits until the page offers no purchase, and says why.
func (b *browser) nothingToBuy() {
	b.t.Helper()
	b.until(`!document.getElementById("buy").checkVisibility() && document.getElementById("share").checkVisibility()`)
	require.Contains(b.t, b.text("share"), "You have bought your share")
}

func buyersWay(t *testing.T) {
	s := startSale(t, "--units", "3")
	b := openBrowser(t)
	b.visit(s.Shop + "/")
	b.saleIs("open")
	require.Equal(t, title, b.text("title"))
	require.Equal(t, "false", b.eval(`document.getElementById("quantity").checkVisibility()`), "one each: no choice")
	b.until(`document.getElementById("hours").textContent === "23"`)
	require.Equal(t, "false", b.eval(`document.getElementById("days").checkVisibility()`), "less than a day")
	require.Empty(t, b.complaints)
	first := b.text("buyer")

	b.click("buy")
	b.orderIs("created")
	require.Equal(t, "Your order is stored. There is nothing more to do.", b.text("message"))
	b.nothingToBuy()
	order := b.text("orderid")
	require.Len(t, order, 26)
	require.Empty(t, b.complaints)

	// The buyer comes by another device, which knows nothing of the order.
	b.eval(`for (const key of Object.keys(localStorage)) if (key !== "seckill.buyer") localStorage.removeItem(key)`)
	b.visit(s.Shop + "/")
	b.mayBuy()
	b.click("buy")
	b.until(`document.getElementById("message").textContent.includes("already")`)
	require.Equal(t, order, b.text("orderid"))
	require.Equal(t, "good", b.eval(`document.getElementById("message").dataset.tone`))
	b.nothingToBuy()

	b.visit(s.Shop + "/?product=" + s.Product)
	b.orderIs("created")
	require.Equal(t, order, b.text("orderid"), "after a reload")
	require.Equal(t, first, b.text("buyer"))

	b.saleIs("open")
	b.nothingToBuy()
	b.click("newbuyer")
	b.orderIs("none")
	b.until(`document.getElementById("buyer").textContent !== "` + first + `"`)
	b.eval(`document.getElementById("buy").focus()`)
	b.press("Enter")
	b.orderIs("created")
	require.NotEqual(t, order, b.text("orderid"))

	status, _ := s.buy("somebody else")
	require.Equal(t, http.StatusAccepted, status)
	b.saleIs("sold_out")
	require.Equal(t, "true", b.eval(`document.getElementById("buy").getAttribute("aria-disabled")`))
	require.Contains(t, b.text("buytext"), "Sold out")
	b.noFaults()
}

// operate calls the console's API.
func (s *sale) operate(method, path string, body any) {
	s.t.Helper()
	b, err := json.Marshal(body)
	require.NoError(s.t, err)
	req, err := http.NewRequestWithContext(s.t.Context(), method, s.Console+"/api/activities"+path, bytes.NewReader(b))
	require.NoError(s.t, err)
	req.Header.Set("Content-Type", "application/json")
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	resp, err := client.Do(req)
	require.NoError(s.t, err)
	defer resp.Body.Close()
	var answer any
	require.NoError(s.t, json.NewDecoder(resp.Body).Decode(&answer))
	require.Less(s.t, resp.StatusCode, 300, "%v", answer)
}

func saleToCome(t *testing.T) {
	s := startSale(t)
	b := openBrowser(t)
	start := time.Now().Add(4 * time.Second)
	s.operate(http.MethodPost, "", map[string]any{
		"product_id": "2002", "title": "Tea", "total": 10, "limit": 3,
		"start": start.UTC().Format(time.RFC3339Nano), "end": start.Add(time.Hour).UTC().Format(time.RFC3339Nano),
	})
	s.operate(http.MethodPost, "/2002/preheat?accept_redis_risk=true", nil)
	s.operate(http.MethodPost, "/2002/open?accept_redis_risk=true", nil)
	b.visit(s.Shop + "/?product=2002")
	b.saleIs("scheduled")
	require.Contains(t, b.text("until"), "Starts in")
	require.Equal(t, "true", b.eval(`document.getElementById("buy").getAttribute("aria-disabled")`))
	b.saleIs("open")
	require.False(t, time.Now().Before(start), "it opened early")

	b.eval(`document.getElementById("quantity").value = "2"`)
	b.click("buy")
	b.orderIs("created")
	require.Equal(t, "2", b.text("orderquantity"))
	require.Equal(t, "1", b.eval(`document.getElementById("quantity").max`), "what is left of the buyer's share")
	b.click("buy")
	b.until(`document.getElementById("orderquantity").textContent === "1"`)
	b.nothingToBuy()

	s.operate(http.MethodPost, "/2002/hold", nil)
	b.saleIs("held")
	s.operate(http.MethodPost, "/2002/close", nil)
	b.saleIs("closed")
	far := time.Now().Add(75*time.Hour + 30*time.Minute)
	s.operate(http.MethodPost, "", map[string]any{
		"product_id": "4004", "total": 10, "manual": true,
		"start": far.UTC().Format(time.RFC3339), "end": far.Add(time.Hour).UTC().Format(time.RFC3339),
	})
	s.operate(http.MethodPost, "/4004/preheat?accept_redis_risk=true", nil)
	s.operate(http.MethodPost, "/4004/open?accept_redis_risk=true", nil)
	b.visit(s.Shop + "/?product=4004")
	b.saleIs("scheduled")
	b.until(`document.getElementById("days").checkVisibility()`)
	require.Equal(t, "3 03", b.text("days")+" "+b.text("hours"))

	b.visit(s.Shop + "/?product=3003")
	b.saleIs("missing")
	require.Contains(t, b.text("title"), "3003")
	for _, c := range b.complaints {
		require.Regexp(t, `status of (409|404|503|400)`, c)
	}
}
