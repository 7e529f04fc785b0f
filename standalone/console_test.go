package main

import (
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/seckill-edge/seckill/internal/queue"
	"github.com/seckill-edge/seckill/internal/servicetest"
)

// TestConsolePage looks at the console with a real browser, on a broker that has a
// dead letter, unless -short is given.
func TestConsolePage(t *testing.T) {
	looks := map[string]func(*testing.T){}
	if !testing.Short() {
		looks["a dead letter"] = lookAtConsole
		looks["a refund"] = refundStays
		looks["a wrong token"] = wrongToken
		looks["words"] = sameWords
	}
	for name, look := range looks {
		t.Run(name, look)
	}
}

func lookAtConsole(t *testing.T) {
	address := servicetest.SharedRabbitMQ(t).VHost(t)
	s := startSale(t, "--units", "3", "--rabbitmq", address)
	b := openBrowser(t)
	b.visit(s.Console)
	b.until(`document.querySelectorAll("#rows tr").length === 1`)
	require.Equal(t, "false", b.eval(`document.getElementById("notes").checkVisibility()`), "nothing to note")

	broker, err := queue.Open(address)
	require.NoError(t, err)
	p := broker.Publisher(queue.Options{})
	servicetest.Eventually(t, func() bool {
		return p.Publish(t.Context(), queue.Dead, queue.Message{Body: []byte("noise")}) == nil
	})
	require.NoError(t, p.Close(t.Context()))
	require.NoError(t, broker.Close())
	b.until(`document.getElementById("notes").textContent === "1 dead letter: seckilld dead list"`)
	require.Equal(t, "true", b.eval(`document.getElementById("notes").checkVisibility()`))
	require.Empty(t, b.complaints)
}

// refundStays: a warning stays on the page, in its place, for as long as it is so.
func refundStays(t *testing.T) {
	s := startSale(t, "--units", "3", "--pay-window", "1h")
	_, queued := s.buy("alice")
	s.created("alice", queued["status_url"].(string))
	order := queued["order_id"].(string)
	for _, payment := range []string{"first", "second"} {
		s.operate(http.MethodPost, "/../orders/"+order+"/paid", map[string]any{"payment_id": payment})
	}
	b := openBrowser(t)
	b.visit(s.Console)
	const line = "1 payment came too late or twice: give the money back. seckilld refund list"
	b.until(`document.getElementById("notes").textContent === "` + line + `"`)
	b.eval(`window.changes = 0;
		new MutationObserver((all) => { window.changes += all.length; })
			.observe(document.getElementById("notes"), { subtree: true, childList: true, attributes: true, characterData: true });
		window.looks = 0;
		new MutationObserver(() => { window.looks++; }).observe(document.getElementById("status"), { childList: true });`)
	b.until(`window.looks >= 5`)
	require.Equal(t, "0", b.eval(`window.changes`), "changes of the warnings in five refreshes")
	require.Equal(t, "true", b.eval(`document.getElementById("notes").checkVisibility()`))

	// It stays, too, while the backend cannot say whether it is still so.
	b.eval(`{ const real = fetch; window.fails = 0;
		window.fetch = (path, options) => path.startsWith("api/refunds") ? (window.fails++, Promise.reject(new TypeError("away"))) : real(path, options); }`)
	b.until(`window.fails >= 2 && document.getElementById("problem").textContent === "No answer: away"`)
	require.Equal(t, "0", b.eval(`window.changes`))
	require.Empty(t, b.complaints)
}

// guarded is a console that asks for a token; sent is how often it was given which.
type guarded struct {
	mu   sync.Mutex
	sent map[string]int
}

func (g *guarded) count(token string) int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.sent[token]
}

func guard(t *testing.T, console string) (*guarded, string) {
	address, err := url.Parse(console)
	require.NoError(t, err)
	g := &guarded{sent: map[string]int{}}
	proxy := httputil.NewSingleHostReverseProxy(address)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		given := r.Header.Get("Authorization")
		g.mu.Lock()
		g.sent[given]++
		g.mu.Unlock()
		if given != "Bearer right" && len(r.URL.Path) > 4 && r.URL.Path[:5] == "/api/" {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		proxy.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	return g, server.URL
}

// wrongToken: a token that the API refuses is named as wrong and sent once.
func wrongToken(t *testing.T) {
	s := startSale(t)
	g, address := guard(t, s.Console)
	b := openBrowser(t)
	b.visit(address)
	b.until(`document.getElementById("problem").textContent === "This API needs its token."`)
	give := func(token string) {
		b.eval(`document.getElementById("token").value = "` + token + `"; document.getElementById("login").requestSubmit()`)
	}
	for range 2 {
		give("wrong")
		b.until(`document.getElementById("problem").textContent === "This token is wrong."`)
	}
	// The page's own clock: three times as long as it would take to ask again.
	b.eval(`new Promise((resolve) => setTimeout(resolve, 3000))`)
	require.Equal(t, 1, g.count("Bearer wrong"))
	b.visit(address)
	b.until(`document.getElementById("problem").textContent === "This API needs its token."`)
	require.Equal(t, 1, g.count("Bearer wrong"), "after a reload")
	give("right")
	b.until(`document.querySelectorAll("#rows tr").length === 1`)
	require.Equal(t, "false", b.eval(`document.getElementById("login").checkVisibility()`))
	require.Equal(t, "false", b.eval(`document.getElementById("problem").checkVisibility()`))
	before := g.count("Bearer right")
	servicetest.Eventually(t, func() bool { return g.count("Bearer right") > before+4 })
}

// sameWords: the console names where an activity stands as the shop's page does.
func sameWords(t *testing.T) {
	s := startSale(t)
	console, shop := openBrowser(t), openBrowser(t)
	console.visit(s.Console)
	agree := func(product, word string) {
		t.Helper()
		shop.visit(s.Shop + "/?product=" + product)
		shop.until(`document.getElementById("pill").textContent.split(" · ")[0] === "` + word + `"`)
		console.until(`[...document.querySelectorAll("#rows tr")].some((row) =>
			row.cells[0].textContent === "` + product + `" && row.cells[2].textContent === "` + word + `")`)
	}
	create := func(product string, start, end time.Time, total int) {
		s.operate(http.MethodPost, "", map[string]any{
			"product_id": product, "total": total, "limit": 1, "manual": true,
			"start": start.UTC().Format(time.RFC3339Nano), "end": end.UTC().Format(time.RFC3339Nano),
		})
	}
	open := func(product string) {
		s.operate(http.MethodPost, "/"+product+"/preheat?accept_redis_risk=true", nil)
		s.operate(http.MethodPost, "/"+product+"/open?accept_redis_risk=true", nil)
	}
	now := time.Now()
	create("future", now.Add(time.Hour), now.Add(2*time.Hour), 1)
	console.until(`[...document.querySelectorAll("#rows tr")].some((row) =>
		row.cells[0].textContent === "future" && row.cells[2].textContent === "Not started")`)
	open("future")
	agree("future", "Not started")
	create("now", now.Add(-time.Minute), now.Add(time.Hour), 1)
	open("now")
	agree("now", "On sale")
	s.operate(http.MethodPost, "/now/hold", nil)
	agree("now", "Paused")
	s.operate(http.MethodPost, "/now/resume?accept_redis_risk=true", nil)
	status, _ := s.call(http.MethodPost, "/seckill/now", "alice")
	require.Equal(t, http.StatusAccepted, status)
	agree("now", "Sold out")
	s.operate(http.MethodPost, "/now/close", nil)
	agree("now", "Closed")

	// A backend closes what has ended within a second: let both pages believe that the
	// sample has ended just now, by the edge's end and by the backend's word.
	shop.visit(s.Shop + "/?product=" + s.Product)
	for _, b := range []*browser{shop, console} {
		b.call("Runtime.evaluate", map[string]any{"expression": `{ const real = fetch; window.fetch = async (path, options) => {
			const answer = await real(path, options);
			const text = (await answer.text()).replace(/"end":"[^"]+"/g, '"end":"2026-01-01T00:00:00.000Z"')
				.replace(/"sale":"[^"]+"/g, '"sale":"ended"');
			return new Response(text, { status: answer.status });
		} }`})
	}
	shop.until(`document.getElementById("pill").textContent === "Ended · 已结束"`)
	console.until(`[...document.querySelectorAll("#rows tr")].some((row) =>
		row.cells[0].textContent === "` + s.Product + `" && row.cells[2].textContent === "Ended")`)
}
