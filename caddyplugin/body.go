package caddyplugin

import (
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"sync"
	"time"

	"github.com/seckill-edge/seckill/internal/order"
)

const (
	// maxBody bounds the body of a request to buy, in bytes.
	maxBody = 4 << 10
	// bodyWithin is how long a body may take where the server has no bound.
	bodyWithin = 5 * time.Second
)

// errBodyTooLarge reports a body of more than maxBody bytes, or one beyond a
// smaller bound that the server sets.
var errBodyTooLarge = errors.New("the body is too large")

// errBodyLate reports a body whose end did not come in time.
var errBodyLate = errors.New("the body did not come in time")

// bodies lends the buffers that bodies are read into: one byte more than
// allowed, so that a body too large shows.
var bodies = sync.Pool{New: func() any { return new([maxBody + 1]byte) }}

// readQuantity reads how many units a request asks for. A request without a
// body asks for one; ok is false if the body is none of the form that
// parseQuantity describes. An error is what refuseBody answers.
func readQuantity(w http.ResponseWriter, r *http.Request) (quantity int, ok bool, err error) {
	buffer := bodies.Get().(*[maxBody + 1]byte)
	defer bodies.Put(buffer)
	n, err := readBody(w, r, buffer)
	switch {
	case err != nil:
		return 0, false, err
	case n == 0:
		return 1, true, nil
	}
	quantity, ok = parseQuantity(buffer[:n])
	return quantity, ok, nil
}

// hasBody says whether a request has a body of a byte or more. An error is what
// refuseBody answers.
func hasBody(w http.ResponseWriter, r *http.Request) (bool, error) {
	buffer := bodies.Get().(*[maxBody + 1]byte)
	defer bodies.Put(buffer)
	n, err := readBody(w, r, buffer)
	return n > 0, err
}

// readBody reads the whole body and returns its length. One that did not come to
// its end is an error, since it may be half of what was meant: errBodyTooLarge,
// errBodyLate, or what the connection says.
func readBody(w http.ResponseWriter, r *http.Request, buffer *[maxBody + 1]byte) (n int, err error) {
	if r.ContentLength == 0 || r.Body == nil {
		return 0, nil
	}
	if r.ContentLength > maxBody {
		return 0, errBodyTooLarge
	}
	unbound := bound(w, r)
	for err == nil {
		var more int
		more, err = r.Body.Read(buffer[n:])
		if n += more; n > maxBody {
			return n, errBodyTooLarge
		}
	}
	if errors.Is(err, io.EOF) {
		unbound()
		return n, nil
	}
	if _, limited := errors.AsType[*http.MaxBytesError](err); limited {
		return n, errBodyTooLarge
	}
	if late, ok := errors.AsType[net.Error](err); errors.Is(err, os.ErrDeadlineExceeded) || ok && late.Timeout() {
		return n, errBodyLate
	}
	return n, err
}

// refuseBody answers a body that could not be read. Time is not the client's fault:
// it may have been this process that stood still.
func refuseBody(w http.ResponseWriter, r *http.Request, err error) {
	leaveRest(w, r)
	switch {
	case errors.Is(err, errBodyTooLarge):
		bodyTooLarge.write(w, 0)
	case errors.Is(err, errBodyLate):
		bodyLate.write(w, time.Second)
	default:
		bodyBroken.write(w, 0)
	}
}

// leaveRest closes the connection behind an answer that is given before the body has
// been read. Else the server would read the rest of it before it sends the answer.
// Newer protocols than HTTP/1 need no new connection for that.
func leaveRest(w http.ResponseWriter, r *http.Request) {
	if r.ProtoMajor == 1 && r.ContentLength != 0 {
		w.Header()["Connection"] = []string{"close"}
	}
}

// bound bounds the time that a body takes, unless the server does so itself. That
// of HTTP/3 never does: no time-out of a config is for it. The bound is taken off
// once the body is complete, or it would end the request's context while Redis is
// asked; of one that is not, the server may still read the rest.
func bound(w http.ResponseWriter, r *http.Request) (unbound func()) {
	if server, ok := r.Context().Value(http.ServerContextKey).(*http.Server); ok && server.ReadTimeout > 0 {
		return func() {}
	}
	to := http.NewResponseController(w)
	_ = to.SetReadDeadline(time.Now().Add(bodyWithin)) // all of Caddy's servers can
	return func() { _ = to.SetReadDeadline(time.Time{}) }
}

// parseQuantity reads {"quantity":n}, n a literal from 1 to order.MaxQuantity
// without sign, fraction, exponent or leading zero, and with JSON's white space
// wherever JSON has it. Nothing else is accepted, not even what a lenient
// decoder would take for the same: a second field or key, a key spelt with an
// escape or in another case, anything behind the object. It allocates nothing.
func parseQuantity(body []byte) (quantity int, ok bool) {
	const key = `"quantity"`
	rest, ok := afterWord(body, "{")
	if !ok {
		return 0, false
	}
	if rest, ok = afterWord(rest, key); !ok {
		return 0, false
	}
	if rest, ok = afterWord(rest, ":"); !ok {
		return 0, false
	}
	rest = skipSpace(rest)
	digits := 0
	for digits < len(rest) && '0' <= rest[digits] && rest[digits] <= '9' {
		quantity = quantity*10 + int(rest[digits]-'0')
		if quantity == 0 || quantity > order.MaxQuantity {
			return 0, false
		}
		digits++
	}
	if digits == 0 {
		return 0, false
	}
	if rest, ok = afterWord(rest[digits:], "}"); !ok {
		return 0, false
	}
	return quantity, len(skipSpace(rest)) == 0
}

// afterWord skips white space and then word, which must come next.
func afterWord(b []byte, word string) (rest []byte, ok bool) {
	b = skipSpace(b)
	if len(b) < len(word) || string(b[:len(word)]) != word {
		return nil, false
	}
	return b[len(word):], true
}

func skipSpace(b []byte) []byte {
	for len(b) > 0 && (b[0] == ' ' || b[0] == '\t' || b[0] == '\n' || b[0] == '\r') {
		b = b[1:]
	}
	return b
}
