package caddyplugin

import (
	"net/http"
	"strings"
)

var crossSite = newProblem(http.StatusForbidden, 0, "cross_site", "Another site's request",
	"Another site's page has made a browser send this. A page that may buy sends Content-Type: application/json or an Idempotency-Key.")

// fromElsewhere says that a page of another site has made a browser send r, which
// the browser does without asking us first: with the visitor's cookies, password or
// certificate, so that he would buy without knowing. Browsers say so themselves
// (Fetch Metadata). What a page can send only after we have allowed it (CORS) is
// meant.
func fromElsewhere(r *http.Request) bool {
	site := r.Header["Sec-Fetch-Site"]
	if len(site) == 0 || site[0] != "cross-site" {
		return false
	}
	if r.Header["Idempotency-Key"] != nil || r.Header[ticketHeader] != nil {
		return false
	}
	kind, _, _ := strings.Cut(r.Header.Get("Content-Type"), ";")
	scheme, _, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	return !strings.EqualFold(strings.TrimSpace(kind), "application/json") && !strings.EqualFold(scheme, "Bearer")
}
