package api

import (
	"context"
	"maps"
	"net/http"
	"slices"
	"time"
)

// readyz answers 200 when orders can be stored, else 503 with the names of what
// is missing. Reasons are for those who have the token.
func readyz(d Deps, g *guard) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithTimeout(r.Context(), 2*time.Second)
		defer cancel()
		missing := d.Ready(ctx)
		status := http.StatusOK
		body := map[string]any{"ready": len(missing) == 0}
		if len(missing) > 0 {
			status = http.StatusServiceUnavailable
			body["not_ready"] = slices.Sorted(maps.Keys(missing))
		}
		if len(missing) > 0 && g.lets(r) {
			why := make(map[string]string, len(missing))
			for name, err := range missing {
				why[name] = err.Error()
			}
			body["why"] = why
		}
		writeJSON(w, status, body)
	})
}
