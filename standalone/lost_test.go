package main

import (
	"net/http"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/seckill-edge/seckill/internal/servicetest"
)

// A click whose answer is lost and the click after it are one purchase, also where a
// buyer may have two, also after a reload, and also if the sale has sold out since.
func lostAnswer(t *testing.T) {
	s := startSale(t, "--units", "3", "--limit", "2")
	b := openBrowser(t)
	b.visit(s.Shop + "/")
	b.saleIs("open")
	b.loseAnswers(1)
	b.click("buy")
	b.until(`document.getElementById("message").textContent.includes("Click again")`)
	require.Equal(t, "true", b.eval(`document.getElementById("quantity").disabled`), "it is the same purchase")

	b.visit(s.Shop + "/?product=" + s.Product)
	b.saleIs("open")
	b.until(`document.getElementById("message").textContent.includes("Click again")`)
	b.loseAnswers(0)
	b.click("buy")
	b.orderIs("created")
	first := b.eval(`window.keys[0]`)
	require.NotEmpty(t, first)
	require.Equal(t, 1, s.ordersStored())

	// The next click is another purchase. Its answer is lost, and the last unit sold.
	b.visit(s.Shop + "/")
	b.orderIs("created")
	b.saleIs("open")
	b.loseAnswers(1)
	b.click("buy")
	b.until(`document.getElementById("message").textContent.includes("Click again")`)
	status, _ := s.buy("bob")
	require.Equal(t, http.StatusAccepted, status)
	b.click("buy")
	b.nothingToBuy()
	require.Equal(t, "true", b.eval(`window.keys.length === 2 && window.keys[0] === window.keys[1] && window.keys[0] !== "`+first+`"`))
	b.orderIs("created")
	require.Equal(t, 3, s.ordersStored())
	b.noFaults()
}

// loseAnswers throws the answers to the page's next n purchases away, and notes the
// keys that they are sent with.
func (b *browser) loseAnswers(n int) {
	b.t.Helper()
	b.call("Runtime.evaluate", map[string]any{"expression": `{ const real = fetch; window.keys = []; window.lose = ` + strconv.Itoa(n) + `;
		window.fetch = async (path, options) => {
			const answer = await real(path, options);
			if (options.method !== "POST") return answer;
			window.keys.push(options.headers["Idempotency-Key"]);
			if (window.lose-- > 0) throw new TypeError("the connection broke");
			return answer;
		} }`})
}

// ordersStored is how many orders SQL has when nothing is on its way any more.
func (s *sale) ordersStored() (n int) {
	s.t.Helper()
	servicetest.Eventually(s.t, func() bool {
		var audit struct {
			Outbox, Queued, Frozen, Drift int
			Consistent                    bool
			Orders                        map[string]int
		}
		s.read("/api/activities/"+s.Product+"/audit", &audit)
		n = audit.Orders["created"]
		return audit.Consistent && audit.Outbox+audit.Queued+audit.Frozen+audit.Drift == 0
	})
	return n
}

// cannotSell: a shop that cannot sell at the moment is asked again by the page itself,
// which says when; a seller's hold is not.
func cannotSell(t *testing.T) {
	s := startSale(t, "--units", "3")
	b := openBrowser(t)
	b.visit(s.Shop + "/")
	b.saleIs("open")
	b.eval(`{ const real = fetch; window.keys = []; window.code = -14;
		window.fetch = async (path, options) => {
			if (options.method !== "POST") return real(path, options);
			window.keys.push(options.headers["Idempotency-Key"]);
			if (window.keys.length === 3) return real(path, options);
			return new Response(JSON.stringify({ code: window.code }), { status: 503, headers: { "Retry-After": "2" } });
		} }`)
	b.click("buy")
	b.until(`/^The shop cannot sell at the moment. Trying again in \d s.$/.test(document.getElementById("message").textContent)`)
	b.orderIs("created")
	require.Equal(t, "true", b.eval(`window.keys.length === 3 && new Set(window.keys).size === 1`))

	b.nothingToBuy()
	b.click("newbuyer")
	b.orderIs("none")
	b.eval(`window.code = -8; window.keys = []`)
	b.mayBuy()
	b.click("buy")
	b.until(`document.getElementById("message").textContent === "The seller has paused this sale. It may go on later."`)
	b.until(`document.getElementById("buy").getAttribute("aria-disabled") === "false"`)
	require.Equal(t, "1", b.eval(`window.keys.length`))
	b.noFaults()
}
