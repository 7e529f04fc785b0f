package api

import (
	"crypto/sha256"
	"crypto/subtle"
	"encoding/json"
	"net"
	"net/http"
	"net/netip"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
)

// guard lets in who has the token, and without one whoever is on this machine
// and not a web page of somebody else.
type guard struct {
	set    bool
	digest [sha256.Size]byte
	// wrong counts tokens that are not the right one: somebody may be guessing.
	wrong prometheus.Counter
}

func newGuard(token string) *guard {
	return &guard{set: token != "", digest: sha256.Sum256([]byte(token)), wrong: prometheus.NewCounter(prometheus.CounterOpts{
		Namespace: "seckill", Subsystem: "backend", Name: "wrong_tokens_total", Help: "Calls with a wrong API token.",
	})}
}

// lets compares digests: their length is always the same, so the time taken
// tells nothing of the token.
func (g *guard) lets(r *http.Request) bool {
	if !g.set {
		return true
	}
	given := r.Header.Get("Authorization")
	if given == "" { // every console, until it is told the token
		return false
	}
	scheme, token, _ := strings.Cut(given, " ")
	digest := sha256.Sum256([]byte(token))
	if strings.EqualFold(scheme, "Bearer") && subtle.ConstantTimeCompare(digest[:], g.digest[:]) == 1 {
		return true
	}
	g.wrong.Inc()
	return false
}

func (g *guard) only(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !g.lets(r) {
			w.Header().Set("WWW-Authenticate", `Bearer realm="seckill"`)
			writeProblem(w, http.StatusUnauthorized, "the API token is missing or wrong; send Authorization: Bearer <token>")
			return
		}
		next.ServeHTTP(w, r)
	})
}

// sameSite refuses a browser that acts for another site: a form posted across
// origins, and, where no token protects, a name that was pointed at this machine
// to read the answers (DNS rebinding).
func (g *guard) sameSite(next http.Handler) http.Handler {
	protection := http.NewCrossOriginProtection()
	protection.SetDenyHandler(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		writeProblem(w, http.StatusForbidden, "a request from another origin")
	}))
	return protection.Handler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !g.set && !loopbackHost(r.Host) {
			writeProblem(w, http.StatusForbidden, "without an API token the backend answers to localhost, 127.0.0.1 and [::1] only")
			return
		}
		next.ServeHTTP(w, r)
	}))
}

func loopbackHost(host string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	host = strings.Trim(host, "[]")
	if strings.EqualFold(host, "localhost") {
		return true
	}
	addr, err := netip.ParseAddr(host)
	return err == nil && addr.Unmap().IsLoopback()
}

// Loopback says whether a listen address can be reached from this machine only.
// An empty host listens everywhere.
func Loopback(listen string) bool {
	host, _, err := net.SplitHostPort(listen)
	return err == nil && loopbackHost(host)
}

func headers(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Content-Security-Policy", "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'")
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("Cache-Control", "no-store")
		next.ServeHTTP(w, r)
	})
}

func writeProblem(w http.ResponseWriter, status int, detail string) {
	w.Header().Set("Content-Type", "application/problem+json")
	writeBody(w, status, map[string]any{"title": http.StatusText(status), "status": status, "detail": detail})
}

func writeJSON(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", "application/json")
	writeBody(w, status, body)
}

func writeBody(w http.ResponseWriter, status int, body any) {
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(body) // the client has gone; nobody to tell
}
