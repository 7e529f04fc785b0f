package main

import (
	"encoding/json"
	"net/http"
	"time"

	"github.com/seckill-edge/seckill/internal/order"
)

// outcome is what a buyer was told, as the report groups it.
type outcome struct {
	kind   string
	status int // HTTP; 0 without an answer
	code   int // of the body; 0 is "queued"
}

// The kinds that the checks look at.
const (
	queued     = "queued"
	noAnswer   = "no answer"  // unknown: the click may have bought
	unexpected = "unexpected" // answered, but not in a way an edge is known to answer
)

// kinds names the refusals by HTTP status and code.
var kinds = map[[2]int]string{
	{http.StatusBadRequest, -1}:          "bad request",
	{http.StatusForbidden, -2}:           "not started",
	{http.StatusGone, -3}:                "ended",
	{http.StatusConflict, -4}:            "already bought",
	{http.StatusNotFound, -5}:            "no such product",
	{http.StatusGone, -6}:                "sold out",
	{http.StatusConflict, -7}:            "too few left",
	{http.StatusServiceUnavailable, -8}:  "held",
	{http.StatusServiceUnavailable, -11}: "crowded",
	{http.StatusForbidden, -12}:          "denied",
	{http.StatusForbidden, -13}:          "no ticket",
	{http.StatusServiceUnavailable, -14}: "unavailable",
}

// answer is one click and what came of it.
type answer struct {
	outcome
	buyer    int
	orderID  string // of a queued order
	quantity int    // units of a queued order
	took     time.Duration
	err      error // with noAnswer
}

// classify reads an answer of the edge.
func classify(status int, body []byte) (a answer) {
	var fields struct {
		Code     int    `json:"code"`
		OrderID  string `json:"order_id"`
		Quantity int    `json:"quantity"`
	}
	malformed := json.Unmarshal(body, &fields) != nil
	a.outcome = outcome{kind: unexpected, status: status, code: fields.Code}
	switch {
	case status == http.StatusTooManyRequests:
		a.kind = "limited"
	case status == http.StatusUnauthorized:
		a.kind = "unknown buyer"
	case malformed:
	case status == http.StatusAccepted:
		if fields.Code == 0 && order.ValidID(fields.OrderID) && fields.Quantity > 0 {
			a.kind, a.orderID, a.quantity = queued, fields.OrderID, fields.Quantity
		}
	default:
		if kind, known := kinds[[2]int{status, fields.Code}]; known {
			a.kind = kind
		}
	}
	return a
}

// unknown says that the click may have bought: it got no answer, or one that no edge
// gives and that does not say that nothing was bought.
func (a answer) unknown() bool {
	return a.kind == noAnswer || a.kind == unexpected && (a.status/100 == 2 || a.status/100 == 5)
}
