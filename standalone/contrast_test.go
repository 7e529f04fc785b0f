package main

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// contrasts lists the texts of the page that are too faint on what lies behind them
// (WCAG 2.2, 1.4.3: 4.5 to 1, large text 3 to 1), and the rings of the steps (1.4.11:
// 3 to 1). Colours are what the browser has computed.
const contrasts = `(() => {
	const parts = (text) => text.match(/[\d.]+/g).map(Number);
	const light = (rgb) => rgb.map((c) => c / 255).map((c) => (c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4))
		.reduce((sum, c, i) => sum + c * [0.2126, 0.7152, 0.0722][i], 0);
	const ratio = (a, b) => { const [x, y] = [light(a), light(b)].sort((p, q) => q - p); return (x + 0.05) / (y + 0.05); };
	const behind = (element) => {
		for (let e = element; e; e = e.parentElement) {
			const [r, g, b, alpha = 1] = parts(getComputedStyle(e).backgroundColor);
			if (alpha === 1) return [r, g, b];
		}
		return matchMedia("(prefers-color-scheme: dark)").matches ? [18, 18, 18] : [255, 255, 255];
	};
	const faint = [];
	let seen = 0;
	for (const element of document.querySelectorAll("body *")) {
		const own = [...element.childNodes].some((node) => node.nodeType === Node.TEXT_NODE && node.data.trim());
		if (!own || !element.checkVisibility()) continue;
		seen++;
		const style = getComputedStyle(element);
		const size = parseFloat(style.fontSize);
		const need = size >= 24 || (size >= 18.66 && style.fontWeight >= 700) ? 3 : 4.5;
		const is = ratio(parts(style.color).slice(0, 3), behind(element));
		if (is < need) faint.push(element.textContent.trim() + " has " + is.toFixed(2) + ", needs " + need);
	}
	for (const step of document.querySelectorAll(".steps li:not([hidden])")) {
		const ring = getComputedStyle(step, "::before");
		const is = ratio(parts(ring.borderTopColor).slice(0, 3), behind(step));
		if (is < 3) faint.push("the ring of " + step.textContent + " has " + is.toFixed(2));
	}
	return seen < 5 ? "only " + seen + " texts" : faint.join("\n");
})()`

// looks at the page in both schemes.
func (b *browser) hasContrast(where string) {
	b.t.Helper()
	for _, scheme := range []string{"light", "dark"} {
		b.call("Emulation.setEmulatedMedia", map[string]any{"features": []any{
			map[string]any{"name": "prefers-color-scheme", "value": scheme},
			map[string]any{"name": "prefers-reduced-motion", "value": "reduce"},
		}})
		require.Empty(b.t, b.eval(contrasts), "%s, %s", where, scheme)
	}
}

// contrast: every text of shop and console can be read, in light and dark, whatever the
// sale's and the order's state, and an order's id stands on one line on every screen.
func contrast(t *testing.T) {
	s := startSale(t, "--units", "2", "--pay-window", "1h")
	b := openBrowser(t)
	b.visit(s.Console)
	b.until(`document.querySelectorAll("#rows tr").length === 1`)
	b.hasContrast("console")
	b.visit(s.Shop + "/")
	b.saleIs("open")
	b.hasContrast("open")
	b.click("buy")
	b.orderIs("created")
	b.hasContrast("waiting for payment")
	for _, width := range []int{320, 390, 768, 1280} {
		b.call("Emulation.setDeviceMetricsOverride", map[string]any{"width": width, "height": 800, "deviceScaleFactor": 1, "mobile": false})
		require.Equal(t, "true", b.eval(`(() => {
			const id = document.getElementById("orderid");
			return id.getClientRects().length === 1 && document.documentElement.scrollWidth <= innerWidth
				&& id.getBoundingClientRect().right <= document.querySelector(".purchase").getBoundingClientRect().right - 16;
		})()`), "at %d pixels", width)
	}
	// What a sale and an order can be besides, by the page's own marks.
	for _, state := range []string{"loading", "scheduled", "sold_out", "held", "unavailable", "ended", "closed", "missing", "offline"} {
		b.eval(`document.getElementById("sale").dataset.state = "` + state + `"`)
		b.hasContrast(state)
	}
	for _, look := range []string{"", "done", "now", "failed"} {
		b.eval(`document.querySelectorAll(".steps li").forEach((li) => { li.dataset.step = "` + look + `"; })`)
		b.hasContrast("step " + look)
	}
	for _, tone := range []string{"", "good", "bad"} {
		b.eval(`document.getElementById("message").dataset.tone = "` + tone + `"`)
		b.hasContrast("tone " + tone)
	}
}
