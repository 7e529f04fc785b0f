package api

import (
	"context"
	"maps"
	"net/http"
	"slices"
	"time"
)

// readyz answers 200 when orders can be stored, else 503 with the names of what
// is missing; in both cases with what to mend before it fails. Reasons are for
// those who have the token.
func readyz(d Deps, g *guard) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithTimeout(r.Context(), 2*time.Second)
		defer cancel()
		missing := d.Ready(ctx)
		status := http.StatusOK
		body := map[string]any{"ready": len(missing) == 0}
		why := map[string]string{}
		if len(missing) > 0 {
			status = http.StatusServiceUnavailable
			body["not_ready"] = slices.Sorted(maps.Keys(missing))
		}
		for name, err := range missing {
			why[name] = err.Error()
		}
		if d.Warnings != nil {
			if warnings := d.Warnings(ctx); len(warnings) > 0 {
				body["warnings"] = slices.Sorted(maps.Keys(warnings))
				maps.Copy(why, warnings)
			}
		}
		if len(why) > 0 && g.lets(r) {
			body["why"] = why
		}
		writeJSON(w, status, body)
	})
}
