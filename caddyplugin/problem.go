package caddyplugin

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/seckill-edge/seckill/lua"
)

// problem is one kind of refusal, its body built once: in a sale nearly every
// answer is a refusal, and one must cost no more than a fixed response.
type problem struct {
	status int
	// body is the whole document; open is the same without its closing brace,
	// for the one that takes a further member.
	body, open []byte
}

// The refusals (RFC 9457). Those that are outcomes of the purchase carry the
// outcome as their code.
var (
	unauthorized = newProblem(http.StatusUnauthorized, 0, "unauthorized", "Unauthorized",
		"Nobody has said who is buying. Log in first.")
	badUser = newProblem(http.StatusBadRequest, lua.BadArguments, "bad_user", "Malformed user id",
		"The user id must be 1 to 128 bytes of UTF-8 without control characters.")
	badBody = newProblem(http.StatusBadRequest, lua.BadArguments, "bad_body", "Malformed request",
		`The body must be empty or {"quantity":n} with a whole number n from 1 to 999.`)
	bodyTooLarge = newProblem(http.StatusRequestEntityTooLarge, 0, "body_too_large", "Body too large",
		"The body must not be longer than 4096 bytes.")
	bodyLate = newProblem(http.StatusRequestTimeout, 0, "body_late", "Request timeout",
		"The body did not come in time, and nothing was bought. Try again.")
	bodyBroken = newProblem(http.StatusBadRequest, lua.BadArguments, "body_broken", "Incomplete body",
		"The body ended before it was complete, and nothing was bought.")
	wrongMethod = newProblem(http.StatusMethodNotAllowed, 0, "method_not_allowed", "Method not allowed",
		"See the Allow header for the methods of this resource.")
	nothingHere = newProblem(http.StatusNotFound, 0, "not_found", "Not found",
		"There is no such resource.")
	noOrder = newProblem(http.StatusNotFound, 0, "no_order", "No such order",
		"You have no order of this id for this product.")
	denied = newProblem(http.StatusForbidden, lua.Denied, "denied", "Denied",
		"No requests are taken from your address.")
	badKey = newProblem(http.StatusBadRequest, lua.BadArguments, "bad_key", "Malformed Idempotency-Key",
		"Idempotency-Key must be given once, and be 1 to 128 visible ASCII characters.")
	tooManyStreams = newProblem(http.StatusTooManyRequests, 0, "too_many_streams", "Too many streams",
		"You follow too many orders at once. Close one, or ask for the status instead.")
	noStream = newProblem(http.StatusServiceUnavailable, 0, "no_stream", "No stream now",
		"No further stream can be opened here at the moment. Ask for the status instead.")
	orderUnavailable = newProblem(http.StatusServiceUnavailable, 0, "order_unavailable", "Order state unavailable",
		"The state of the order cannot be read at the moment. Ask again.")

	// refusals holds those that are outcomes, by the outcome's negative.
	refusals = [...]problem{
		-lua.BadArguments: newProblem(http.StatusBadRequest, lua.BadArguments, "bad_arguments", "Quantity not allowed",
			"The quantity is more than the activity allows one buyer."),
		-lua.NotStarted: newProblem(http.StatusForbidden, lua.NotStarted, "not_started", "Not started",
			"The activity has not started yet."),
		-lua.Ended: newProblem(http.StatusGone, lua.Ended, "ended", "Ended",
			"The activity is over."),
		-lua.AlreadyBought: newProblem(http.StatusConflict, lua.AlreadyBought, "already_bought", "Already bought",
			"Your orders and this one together are more than the activity allows one buyer."),
		-lua.NoProduct: newProblem(http.StatusNotFound, lua.NoProduct, "no_product", "No such product",
			"No activity sells this product."),
		-lua.SoldOut: newProblem(http.StatusGone, lua.SoldOut, "sold_out", "Sold out",
			"Every unit is taken."),
		-lua.TooFew: newProblem(http.StatusConflict, lua.TooFew, "too_few", "Too few left",
			"Fewer units are left than you asked for. Ask for fewer."),
		-lua.Held: newProblem(http.StatusServiceUnavailable, lua.Held, "held", "Sale on hold",
			"The seller has put the sale on hold. It may go on later."),
		-lua.KeyReused: newProblem(http.StatusUnprocessableEntity, lua.KeyReused, "key_reused", "Idempotency-Key used before",
			"You have sent this Idempotency-Key with another body. Take a new key for another purchase."),
		-lua.Crowded: newProblem(http.StatusServiceUnavailable, lua.Crowded, "crowded", "Crowded",
			"More purchases are on their way than the units left can serve. Try again."),
		-lua.Unavailable: newProblem(http.StatusServiceUnavailable, lua.Unavailable, "unavailable", "Temporarily unavailable",
			"Nothing can be sold at the moment, and nothing was reserved. Try again."),
	}
)

// refusalOf finds the refusal for an outcome; one that has none here is
// Unavailable, so that an unknown outcome is never read as a sale. A limit's
// refusal says which limit it is, see let, and a ticket's what is wrong with it.
func refusalOf(o lua.Outcome) *problem {
	if i := -int(o); 0 < i && i < len(refusals) && refusals[i].status != 0 {
		return &refusals[i]
	}
	return &refusals[-lua.Unavailable]
}

func newProblem(status int, code lua.Outcome, name, title, detail string) problem {
	return newLevelProblem(status, code, name, title, detail, "")
}

// newLevelProblem makes the refusal of one limit, which names it.
func newLevelProblem(status int, code lua.Outcome, name, title, detail, level string) problem {
	document := struct {
		Type   string      `json:"type"`
		Title  string      `json:"title"`
		Status int         `json:"status"`
		Detail string      `json:"detail"`
		Code   lua.Outcome `json:"code,omitempty"`
		Level  string      `json:"level,omitempty"`
	}{"urn:seckill:" + name, title, status, detail, code, level}
	body, err := json.Marshal(document)
	if err != nil {
		panic(fmt.Sprintf("problem %s: %v", name, err)) // strings and numbers only
	}
	return problem{status: status, body: body, open: body[:len(body)-1]}
}

// write sends p. A client that is gone is nobody's error: Caddy would log one
// and take its slow path.
func (p *problem) write(w http.ResponseWriter, retryAfter time.Duration) {
	p.head(w, retryAfter)
	_, _ = w.Write(p.body)
}

// writeOrder sends p with the order the buyer has already.
func (p *problem) writeOrder(w http.ResponseWriter, orderID string) {
	if orderID == "" {
		p.write(w, 0)
		return
	}
	buffer := answers.Get().(*answer)
	defer answers.Put(buffer)
	b := buffer.b[:0]
	b = append(b, p.open...)
	b = append(b, `,"order_id":"`...)
	b = append(b, orderID...)
	b = append(b, `"}`...)
	buffer.b = b
	p.head(w, 0)
	_, _ = w.Write(b)
}

func (p *problem) head(w http.ResponseWriter, retryAfter time.Duration) {
	// One array for the values: they may be changed in place by handlers around
	// us, so they are not shared between requests, and each is capped, so that
	// an Add does not run into its neighbour.
	values := [3]string{"application/problem+json", "no-store"}
	v := values[:]
	h := w.Header()
	h["Content-Type"] = v[0:1:1]
	h["Cache-Control"] = v[1:2:2]
	if retryAfter > 0 {
		v[2] = strconv.FormatInt(seconds(retryAfter), 10)
		h["Retry-After"] = v[2:3:3]
	}
	w.WriteHeader(p.status)
}

// seconds rounds up, for who comes back at once after rounding down is early.
func seconds(d time.Duration) int64 {
	return int64((d + time.Second - 1) / time.Second)
}
