package caddyplugin

import (
	"errors"
	"strings"

	"github.com/seckill-edge/seckill/internal/order"
)

// call is what a path asks for.
type call int

const (
	notOurs     call = iota // not under the prefix: the next handler's
	unknownPath             // under the prefix, but nothing is there
	badProduct              // in a product's place stands what can be none
	activityCall
	orderCall
	eventsCall
	ticketCall
)

// route takes a path apart without allocating:
//
//	<prefix>/<product>                   activityCall
//	<prefix>/<product>/ticket            ticketCall
//	<prefix>/<product>/orders/<order>    orderCall
//	<prefix>/<product>/orders/<order>/events    eventsCall
func route(prefix, path string) (what call, product, orderID string) {
	rest, ours := strings.CutPrefix(path, prefix)
	if !ours || rest != "" && rest[0] != '/' {
		return notOurs, "", ""
	}
	if len(rest) < 2 {
		return unknownPath, "", ""
	}
	product, rest, deeper := strings.Cut(rest[1:], "/")
	if !order.ValidProduct(product) {
		return badProduct, "", ""
	}
	if !deeper {
		return activityCall, product, ""
	}
	if rest == "ticket" {
		return ticketCall, product, ""
	}
	orderID, under := strings.CutPrefix(rest, "orders/")
	orderID, events := strings.CutSuffix(orderID, "/events")
	if !under || orderID == "" || strings.Contains(orderID, "/") {
		return unknownPath, "", ""
	}
	if events {
		return eventsCall, product, orderID
	}
	return orderCall, product, orderID
}

// errPrefix says what a path prefix may be.
var errPrefix = errors.New("a path prefix is one or more segments of A-Z a-z 0-9 . _ ~ -, each after a slash, such as /seckill")

// checkPrefix refuses a prefix that would have to be escaped in a URL or in
// JSON, or that no request path can start with.
func checkPrefix(prefix string) error {
	if len(prefix) < 2 || prefix[0] != '/' {
		return errPrefix
	}
	for segment := range strings.SplitSeq(prefix[1:], "/") {
		if segment == "" || segment == "." || segment == ".." {
			return errPrefix
		}
		for i := range len(segment) {
			c := segment[i]
			switch {
			case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9',
				c == '.', c == '_', c == '~', c == '-':
			default:
				return errPrefix
			}
		}
	}
	return nil
}
