package caddyplugin

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/seckill-edge/seckill/caddyplugin/gate"
)

const (
	// heartbeat is how often a stream without news shows that it is alive: proxies
	// close what is silent for long.
	heartbeat = 15 * time.Second
	// writeWithin is how long a client may leave what is sent to it unread.
	writeWithin = 10 * time.Second
	// reconnectMin to reconnectMax is when a client whose stream broke comes back;
	// chance spreads those of one edge.
	reconnectMin = time.Second
	reconnectMax = 4 * time.Second
)

// endStreamsWith ends the streams of this handler when its server shuts down,
// which waits for them, and when its config goes.
func (h *Handler) endStreamsWith(ctx caddy.Context) {
	h.ending = make(chan struct{})
	end := sync.OnceFunc(func() { close(h.ending) })
	if server, ok := ctx.Value(caddyhttp.ServerCtxKey).(*caddyhttp.Server); ok {
		server.RegisterOnShutdown(end)
	}
	h.endStreams = end
}

// Cleanup ends the streams that a shutdown has not.
func (h *Handler) Cleanup() error {
	if h.endStreams != nil {
		h.endStreams()
	}
	return nil
}

// followOrder answers with server-sent events: one "status" now and one with each
// change, its data being what showOrder answers, until one is final. A stream
// that ends without a final one is to be opened again; browsers do that by
// themselves. One that is asked for again after the final event, which is what
// they do too, is answered 204, and they stop.
func (h *Handler) followOrder(w http.ResponseWriter, r *http.Request, product, user, orderID string) {
	early := notNow
	if strings.Contains(r.Header.Get("Accept"), "text/event-stream") {
		early = comeAgain
	}
	fate, ok := h.fate(w, r, product, user, orderID, early)
	if !ok {
		return
	}
	if fate.Final && r.Header.Get("Last-Event-ID") == string(fate.State) {
		w.Header().Set("Cache-Control", "no-store")
		w.WriteHeader(http.StatusNoContent)
		return
	}
	var fates <-chan gate.Fate
	if !fate.Final {
		stream, err := h.gate.Follow(product, user, fate)
		switch {
		case errors.Is(err, gate.ErrTooManyOfBuyer):
			tooManyStreams.write(w, fate.RetryAfter)
			return
		case err != nil:
			noStream.write(w, fate.RetryAfter)
			return
		}
		defer stream.Close()
		fates = stream.Fates()
	}
	e := events{w: w, to: http.NewResponseController(w)}
	e.open()
	if e.send(fate) && !fate.Final {
		h.push(&e, r, fates)
	}
}

// comeAgain is for an EventSource, which gives up for ever at any answer but 200 and
// 204: a stream that ends at once, and is opened again a little later.
func comeAgain(w http.ResponseWriter) {
	e := events{w: w, to: http.NewResponseController(w)}
	e.open()
	_ = e.write(fmt.Appendf(nil, "retry: %d\n\n", reconnectIn().Milliseconds()))
}

// reconnectIn is when a client whose stream has ended is to come again.
func reconnectIn() time.Duration { return reconnectMin + rand.N(reconnectMax-reconnectMin) }

// push sends what comes until the last of it, the end of the client or of this
// config.
func (h *Handler) push(e *events, r *http.Request, fates <-chan gate.Fate) {
	beat := time.NewTicker(heartbeat)
	defer beat.Stop()
	for {
		select {
		case fate, more := <-fates:
			if !more || !e.send(fate) || fate.Final {
				return
			}
		case <-beat.C:
			if !e.write([]byte(":\n\n")) {
				return
			}
		case <-r.Context().Done():
			return
		case <-h.ending:
			return
		}
	}
}

// events writes an event stream. A write that fails ends it.
type events struct {
	w  http.ResponseWriter
	to *http.ResponseController
}

// open begins the stream, which no time-out of the server is meant for: one for
// reading the request would end its context, one for writing the answer the
// stream. Where Caddy's idle timers are on it holds on to both, and the client
// opens a new stream.
func (e *events) open() {
	_ = e.to.SetReadDeadline(time.Time{})
	_ = e.to.SetWriteDeadline(time.Time{})
	h := e.w.Header()
	h.Set("Content-Type", "text/event-stream")
	h.Set("Cache-Control", "no-store, no-transform")
	h.Set("X-Accel-Buffering", "no") // nginx in front would wait for a full buffer
	e.w.WriteHeader(http.StatusOK)
}

func (e *events) send(f gate.Fate) bool {
	buffer := answers.Get().(*answer)
	defer answers.Put(buffer)
	b := buffer.b[:0]
	b = append(b, "retry: "...)
	b = strconv.AppendInt(b, reconnectIn().Milliseconds(), 10)
	b = append(b, "\nevent: status\nid: "...)
	b = append(b, f.State...)
	b = append(b, "\ndata: "...)
	b = appendFate(b, f)
	b = append(b, "\n\n"...)
	buffer.b = b
	return e.write(b)
}

// write sends b at once, or finds out that the client is gone.
func (e *events) write(b []byte) bool {
	_ = e.to.SetWriteDeadline(time.Now().Add(writeWithin)) // where there is one
	if _, err := e.w.Write(b); err != nil {
		return false
	}
	if e.to.Flush() != nil {
		return false
	}
	_ = e.to.SetWriteDeadline(time.Time{}) // HTTP/2 would end the stream at it, written to or not
	return true
}

// Interface guard
var _ caddy.CleanerUpper = (*Handler)(nil)
