package caddyplugin

import (
	"mime"
	"net/http"
	"strings"

	"github.com/seckill-edge/seckill/lua"
)

// The refusals of what is sent and would not be read: a buyer who says something
// must not be sold something else.
var (
	queryNotRead = newProblem(http.StatusBadRequest, lua.BadArguments, "query_not_read", "Query not read",
		`A purchase has no query: say how many units in the body, {"quantity":n}.`)
	bodyNotRead = newProblem(http.StatusBadRequest, lua.BadArguments, "body_not_read", "Body not read",
		"Only a purchase has a body. Send this without one.")
	trailerNotRead = newProblem(http.StatusBadRequest, lua.BadArguments, "trailer_not_read", "Trailer fields not read",
		"Fields behind the body are not read. Send them as header fields.")
	wrongType = newProblem(http.StatusUnsupportedMediaType, 0, "unsupported_type", "Unsupported Content-Type",
		"A body must be JSON in UTF-8: send Content-Type: application/json.")
	encoded = newProblem(http.StatusUnsupportedMediaType, 0, "unsupported_encoding", "Unsupported Content-Encoding",
		"A body must not be compressed: send it without Content-Encoding.")
)

// unread finds what r has that its call does not read; nil if there is nothing.
// A header field that is not named here changes no purchase, whatever it says.
//
// The Content-Type of an empty body is not looked at: many clients send one with
// every POST, and there is nothing that it could be the type of.
func (h *Handler) unread(r *http.Request) *problem {
	if r.Method != http.MethodPost {
		if r.ContentLength > 0 {
			return &bodyNotRead
		}
		return nil
	}
	switch {
	case r.URL.RawQuery != "" && !h.identity.query:
		return &queryNotRead
	case len(r.Trailer) > 0:
		return &trailerNotRead
	case !plainEncoding(r.Header["Content-Encoding"]):
		return &encoded
	case r.ContentLength != 0 && !jsonOrNone(r.Header["Content-Type"]):
		return &wrongType
	}
	return nil
}

// refuseUnread answers what unread has found.
func refuseUnread(w http.ResponseWriter, r *http.Request, p *problem) {
	leaveRest(w, r)
	switch p {
	case &wrongType:
		w.Header().Set("Accept-Post", "application/json")
	case &encoded:
		w.Header().Set("Accept-Encoding", "identity")
	}
	p.write(w, 0)
}

func plainEncoding(values []string) bool {
	return len(values) == 0 || len(values) == 1 && strings.EqualFold(values[0], "identity")
}

// jsonOrNone accepts JSON in UTF-8, which is its only encoding.
func jsonOrNone(values []string) bool {
	switch {
	case len(values) == 0, len(values) == 1 && values[0] == "application/json":
		return true
	case len(values) > 1:
		return false
	}
	kind, parameters, err := mime.ParseMediaType(values[0])
	if err != nil || kind != "application/json" {
		return false
	}
	for name, value := range parameters {
		if name != "charset" || !strings.EqualFold(value, "utf-8") {
			return false
		}
	}
	return true
}
