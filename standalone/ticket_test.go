package main

import (
	"net/http"
	"os/exec"
	"testing"

	"github.com/stretchr/testify/require"
)

// saleWithTickets: where the edge asks for a ticket the page fetches one, and a
// click whose answer was lost is repeated with the same.
func saleWithTickets(t *testing.T) {
	t.Setenv("SECKILL_TICKET_KEY", "what only the edge of this test knows")
	t.Setenv("SECKILL_TICKET_KEYS", "{env.SECKILL_TICKET_KEY}")
	t.Setenv("SECKILL_REQUIRE_TICKET", "on")
	s := startSale(t, "--units", "10")
	status, _ := s.buy("a bot")
	require.Equal(t, http.StatusForbidden, status)

	buy, crowd := commands(s.Shop, true)
	said, err := exec.CommandContext(t.Context(), "sh", "-c", buy).CombinedOutput()
	require.NoError(t, err)
	require.Contains(t, string(said), "202 Accepted")
	require.Contains(t, crowd, "--ticket")

	b := openBrowser(t)
	b.visit(s.Shop + "/")
	b.saleIs("open")
	b.eval(`{ const real = fetch; let lost = false; window.sent = [];
		window.fetch = async (path, options) => {
			const answer = await real(path, options);
			const ticket = options.headers["Seckill-Ticket"];
			if (ticket) window.sent.push(ticket);
			if (ticket && !lost) { lost = true; throw new TypeError("the connection broke"); }
			return answer;
		} }`)
	b.click("buy")
	b.until(`document.getElementById("message").textContent.includes("Click again")`)
	b.click("buy")
	b.orderIs("created")
	require.Equal(t, "true", b.eval(`window.sent.length === 2 && window.sent[0] === window.sent[1]`))
	b.nothingToBuy()
	b.noFaults()
}
