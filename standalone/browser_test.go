package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/seckill-edge/seckill/internal/servicetest"
)

// browser is a headless Chromium with one page, driven by the DevTools protocol
// over a pair of pipes: JSON messages, each closed by a zero byte.
type browser struct {
	t       *testing.T
	out     *os.File
	in      *os.File
	reader  *bufio.Reader
	last    int
	session string
	loads   int // pages that have finished loading
	// complaints are what the page wrote to its console: exceptions, blocked
	// and missing resources.
	complaints []string
}

// openBrowser starts Chromium; the test ends it.
func openBrowser(t *testing.T) *browser {
	t.Helper()
	theirIn, out, err := os.Pipe()
	require.NoError(t, err)
	in, theirOut, err := os.Pipe()
	require.NoError(t, err)
	cmd := exec.Command("chromium", "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
		"--no-first-run", "--window-size=1100,760", "--remote-debugging-pipe", "--user-data-dir="+t.TempDir(), "about:blank")
	cmd.ExtraFiles = []*os.File{theirIn, theirOut} // its descriptors 3 and 4
	require.NoError(t, cmd.Start(), "chromium is needed: apt-get install chromium")
	require.NoError(t, errors.Join(theirIn.Close(), theirOut.Close()))
	b := &browser{t: t, out: out, in: in, reader: bufio.NewReader(in)}
	t.Cleanup(func() {
		b.call("Browser.close", nil)
		_ = cmd.Wait()
		_ = errors.Join(out.Close(), in.Close())
	})
	var target struct{ TargetID string }
	b.result(b.call("Target.createTarget", map[string]any{"url": "about:blank"}), &target)
	var session struct{ SessionID string }
	b.result(b.call("Target.attachToTarget", map[string]any{"targetId": target.TargetID, "flatten": true}), &session)
	b.session = session.SessionID
	for _, domain := range []string{"Page", "Runtime", "Log", "Network"} {
		b.call(domain+".enable", nil)
	}
	return b
}

func (b *browser) result(from json.RawMessage, to any) {
	b.t.Helper()
	require.NoError(b.t, json.Unmarshal(from, to))
}

// call sends one command and waits for its result, noting the events between.
func (b *browser) call(method string, params map[string]any) json.RawMessage {
	b.t.Helper()
	b.last++
	message, err := json.Marshal(map[string]any{"id": b.last, "method": method, "params": params, "sessionId": b.session})
	require.NoError(b.t, err)
	deadline := time.Now().Add(servicetest.Patience() + 30*time.Second) // until may wait for so long within one call
	require.NoError(b.t, errors.Join(b.out.SetWriteDeadline(deadline), b.in.SetReadDeadline(deadline)))
	_, err = b.out.Write(append(message, 0))
	require.NoError(b.t, err, method)
	for {
		raw, err := b.reader.ReadBytes(0)
		require.NoError(b.t, err, method)
		var answer struct {
			ID     int
			Method string
			Params json.RawMessage
			Result json.RawMessage
			Error  *struct{ Message string }
		}
		require.NoError(b.t, json.Unmarshal(raw[:len(raw)-1], &answer))
		switch answer.Method {
		case "Runtime.exceptionThrown", "Log.entryAdded":
			b.complaints = append(b.complaints, string(answer.Params))
		case "Page.loadEventFired":
			b.loads++
		}
		if answer.ID == b.last {
			require.Nil(b.t, answer.Error, "%s: %+v", method, answer.Error)
			return answer.Result
		}
	}
}

// visit loads a page and everything in it.
func (b *browser) visit(url string) {
	b.t.Helper()
	before := b.loads
	b.call("Page.navigate", map[string]any{"url": url})
	for b.loads == before {
		b.call("Browser.getVersion", nil) // a call reads the events that have come
	}
}

// eval runs an expression in the page and returns its value, or that of the
// promise it gives, as text.
func (b *browser) eval(expression string) string {
	b.t.Helper()
	var answer struct {
		Result           struct{ Value any }
		ExceptionDetails any
	}
	b.result(b.call("Runtime.evaluate", map[string]any{
		"expression": expression, "returnByValue": true, "awaitPromise": true,
	}), &answer)
	require.Nil(b.t, answer.ExceptionDetails, expression)
	return fmt.Sprint(answer.Result.Value)
}

// until waits until an expression is true.
func (b *browser) until(expression string) {
	b.t.Helper()
	ms := servicetest.Patience().Milliseconds()
	is := b.eval(fmt.Sprintf(`new Promise((resolve) => {
		const end = Date.now() + %d;
		const look = () => {
			const is = !!(%s);
			if (is || Date.now() > end) resolve(is); else setTimeout(look, 20);
		};
		look();
	})`, ms, expression))
	require.Equal(b.t, "true", is, "%s\nthe page says: %s\nand complains: %v",
		expression, b.eval("document.body.innerText"), b.complaints)
}

// click presses the mouse on the element of an id, where a buyer would. The page may
// move between the look at where the element is and the press: a press that has missed
// it is repeated, as a buyer would.
func (b *browser) click(id string) {
	b.t.Helper()
	element := `document.getElementById("` + id + `")`
	b.eval(`{ window.pressed = false; ` + element + `.addEventListener("click", () => { window.pressed = true; }, { once: true, capture: true }); }`)
	servicetest.Eventually(b.t, func() bool {
		var at struct{ X, Y float64 }
		b.result(json.RawMessage(b.eval(`(() => { `+element+`.scrollIntoView({ block: "nearest", behavior: "instant" });
			const r = `+element+`.getBoundingClientRect();
			return JSON.stringify({ x: r.x + r.width / 2, y: r.y + r.height / 2 }); })()`)), &at)
		for _, kind := range []string{"mousePressed", "mouseReleased"} {
			b.call("Input.dispatchMouseEvent", map[string]any{"type": kind, "x": at.X, "y": at.Y, "button": "left", "clickCount": 1})
		}
		return b.eval(`window.pressed`) == "true"
	}, id)
}

// press presses a key, such as "Enter".
func (b *browser) press(key string) {
	b.t.Helper()
	params := map[string]any{"type": "keyDown", "key": key, "code": key}
	if key == "Enter" {
		params["text"], params["windowsVirtualKeyCode"] = "\r", 13
	}
	b.call("Input.dispatchKeyEvent", params)
	b.call("Input.dispatchKeyEvent", map[string]any{"type": "keyUp", "key": key, "code": key})
}

// text is what an element shows.
func (b *browser) text(id string) string {
	b.t.Helper()
	return b.eval(`document.getElementById("` + id + `").innerText`)
}
