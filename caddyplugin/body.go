package caddyplugin

import (
	"errors"
	"io"
	"net/http"
	"sync"

	"github.com/seckill-edge/seckill/internal/order"
)

// maxBody bounds the body of a request to buy, in bytes.
const maxBody = 4 << 10

// errBodyTooLarge reports a body of more than maxBody bytes, or one beyond a
// smaller bound that the server sets.
var errBodyTooLarge = errors.New("the body is too large")

// bodies lends the buffers that bodies are read into: one byte more than
// allowed, so that a body too large shows.
var bodies = sync.Pool{New: func() any { return new([maxBody + 1]byte) }}

// readQuantity reads how many units a request asks for. A request without a
// body asks for one; ok is false if the body is none of the form that
// parseQuantity describes.
func readQuantity(r *http.Request) (quantity int, ok bool, err error) {
	if r.ContentLength == 0 || r.Body == nil {
		return 1, true, nil
	}
	if r.ContentLength > maxBody {
		return 0, false, errBodyTooLarge
	}
	buffer := bodies.Get().(*[maxBody + 1]byte)
	defer bodies.Put(buffer)
	n := 0
	for {
		var more int
		more, err = r.Body.Read(buffer[n:])
		n += more
		if n > maxBody {
			return 0, false, errBodyTooLarge
		}
		if err != nil {
			break
		}
	}
	var limited *http.MaxBytesError
	switch {
	case errors.As(err, &limited):
		return 0, false, errBodyTooLarge
	case !errors.Is(err, io.EOF): // cut short: what came may be half of what was meant
		return 0, false, err
	case n == 0:
		return 1, true, nil
	}
	quantity, ok = parseQuantity(buffer[:n])
	return quantity, ok, nil
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
