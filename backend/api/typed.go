package api

import (
	"mime"
	"net/http"
)

// typed refuses a body that does not say that it is JSON. A page of another site
// can make a browser post a form, plain text or bytes of no type, and JSON only
// where it is allowed to.
func typed(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
		if r.ContentLength != 0 && (err != nil || kind != "application/json") {
			writeProblem(w, http.StatusUnsupportedMediaType, "a body needs Content-Type: application/json")
			return
		}
		next.ServeHTTP(w, r)
	})
}
