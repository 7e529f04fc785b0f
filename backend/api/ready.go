package api

import (
	"context"
	"maps"
	"net/http"
	"slices"
	"time"

	"golang.org/x/sync/singleflight"

	"github.com/seckill-edge/seckill/backend/readiness"
)

// readyTimeout bounds what one look asks of the servers.
const readyTimeout = 2 * time.Second

// readyz answers 200 when orders can be stored, else 503 with the names of what
// is missing and its cause, in a word from a fixed list (see package readiness); in
// both cases with what to mend before it fails. Reasons in words are for those who
// have the token.
func readyz(d Deps, g *guard) http.Handler {
	looks := &looks{d: d}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		seen := looks.look(r.Context())
		status := http.StatusOK
		body := map[string]any{"ready": len(seen.missing) == 0}
		why := map[string]string{}
		if len(seen.missing) > 0 {
			status = http.StatusServiceUnavailable
			body["not_ready"] = slices.Sorted(maps.Keys(seen.missing))
			body["causes"] = readiness.CausesOf(seen.missing)
		}
		for name, err := range seen.missing {
			why[name] = err.Error()
		}
		if len(seen.warnings) > 0 {
			body["warnings"] = slices.Sorted(maps.Keys(seen.warnings))
			maps.Copy(why, seen.warnings)
		}
		if len(why) > 0 && g.lets(r) {
			body["why"] = why
		}
		writeJSON(w, status, body)
	})
}

// looks asks the servers what is missing. Anybody may make it do so, without a
// token, and a crowd would keep the database from storing orders: so all who wait
// share the look that is under way.
type looks struct {
	d     Deps
	group singleflight.Group
}

// seen is what one look has found.
type seen struct {
	missing  map[string]error
	warnings map[string]string
}

func (l *looks) look(ctx context.Context) seen {
	found, _, _ := l.group.Do("", func() (any, error) {
		// Whoever came first may go; others wait with him.
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), readyTimeout)
		defer cancel()
		s := seen{missing: l.d.Ready(ctx)}
		if l.d.Warnings != nil {
			s.warnings = l.d.Warnings(ctx)
		}
		return s, nil
	})
	return found.(seen)
}
