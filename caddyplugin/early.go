package caddyplugin

import "net/http"

var tooEarly = newProblem(http.StatusTooEarly, 0, "too_early", "Too early",
	"This was sent before the TLS handshake was complete. Send it again.")

// early says that r came as early data (0-RTT): in the first packets of a
// connection, before the client has answered anything. Whoever has seen those
// packets can send them again, from whatever address he writes into them, and a
// click would buy twice, at the cost of somebody else's limit. Clients that send
// early data repeat on 425 what they sent (RFC 8470).
func early(r *http.Request) bool {
	// The field is a proxy's, that has taken early data itself. A client that
	// makes it up delays itself.
	return r.TLS != nil && !r.TLS.HandshakeComplete || r.Header["Early-Data"] != nil
}
