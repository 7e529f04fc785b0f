package caddyplugin

import (
	"fmt"
	"net/http"
)

var crossSite = newProblem(http.StatusForbidden, 0, "cross_site", "Another site's request",
	"A page of another origin has made a browser send this. If that page is yours, name its origin in trusted_origins.")

// foreign says that a page of another origin has made a browser send r: with the
// visitor's cookies, password or certificate, or with what a proxy adds to all
// requests, so that they would buy without knowing.
//
// Proof are only the fields that no page can set and that a proxy has no reason to
// add: Sec-Fetch-Site, else Origin. A field that a page may send only after a
// preflight (a key, a ticket, a bearer token, a Content-Type) proves nothing here,
// since a proxy may have added it. Programs send neither field, and pass; so does
// a browser that sends neither, of before 2020.
func (h *Handler) foreign(r *http.Request) bool {
	// Two values, or two in one: somebody on the way has added one of them.
	if len(r.Header["Sec-Fetch-Site"]) > 1 || len(r.Header["Origin"]) > 1 {
		return true
	}
	return h.origins.Check(r) != nil
}

// trustOrigins takes the origins, besides its own, whose pages may buy.
func (h *Handler) trustOrigins() error {
	for _, origin := range h.TrustedOrigins {
		if err := h.origins.AddTrustedOrigin(origin); err != nil {
			return fmt.Errorf("trusted_origins: %w; write it as browsers do, such as https://www.example.com", err)
		}
	}
	return nil
}
