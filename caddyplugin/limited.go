package caddyplugin

import (
	"context"
	"net/http"
	"net/netip"
	"strconv"
	"strings"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/seckill-edge/seckill/caddyplugin/limit"
	"github.com/seckill-edge/seckill/lua"
)

// enteredVar is the request variable that says that the limits which need no
// identity have been asked, so that they are asked once.
const enteredVar = "seckill_entered"

// shadowHeader names the limits that would have refused an answer's request.
const shadowHeader = "Seckill-Limit-Shadow"

// limitProblems are the refusals of the limits.
var limitProblems = func() (all [len(limit.Levels)]problem) {
	for level, detail := range [...]string{
		limit.IP:             "Too many requests come from your address.",
		limit.Total:          "Too many requests come to this server.",
		limit.SharedTotal:    "Too many requests come to the shop.",
		limit.User:           "You send too many requests.",
		limit.Activity:       "Too many purchases of this product come to this server.",
		limit.SharedActivity: "Too many purchases of this product come to the shop.",
	} {
		name := limit.Level(level).String()
		all[level] = newLevelProblem(http.StatusTooManyRequests, lua.Limited, "limited:"+name, "Too many requests",
			detail+" Wait as long as Retry-After says.", name)
	}
	return all
}()

// entrance is what asks the limits that need not know who is calling.
type entrance interface {
	Enter(netip.Addr) limit.Verdict
}

// enter asks the limits on the client's address and on the whole; false if it has
// answered the request with their refusal, or because nobody can know yet whose
// it is.
func enter(w http.ResponseWriter, r *http.Request, e entrance) bool {
	if early(r) {
		tooEarly.write(w, 0)
		return false
	}
	v := e.Enter(clientAddress(r))
	return let(w, &v)
}

func entered(ctx context.Context) bool {
	done, _ := caddyhttp.GetVar(ctx, enteredVar).(bool)
	return done
}

// let writes the refusal of a limit; true if there is none, and the request goes
// on.
func let(w http.ResponseWriter, v *limit.Verdict) bool {
	switch {
	case v.Denied:
		denied.write(w, 0)
	case v.Refused:
		writeLimited(w, v)
	default:
		if v.Shadowed != 0 {
			tellShadow(w, v.Shadowed)
		}
		return true
	}
	return false
}

// writeLimited sends the refusal of a limit with the fields of the IETF's draft
// "RateLimit header fields for HTTP".
func writeLimited(w http.ResponseWriter, v *limit.Verdict) {
	p := &limitProblems[v.Level]
	after := strconv.Itoa(v.RetryAfter)
	values := [5]string{"application/problem+json", "no-store", after, `"` + v.Level.String() + `";r=0;t=` + after, v.Policy}
	s := values[:]
	h := w.Header()
	h["Content-Type"], h["Cache-Control"], h["Retry-After"] = s[0:1:1], s[1:2:2], s[2:3:3]
	h["Ratelimit"], h["Ratelimit-Policy"] = s[3:4:4], s[4:5:5]
	if v.Shadowed != 0 {
		tellShadow(w, v.Shadowed)
	}
	w.WriteHeader(p.status)
	_, _ = w.Write(p.body)
}

func tellShadow(w http.ResponseWriter, levels limit.Set) {
	var names []string
	for _, level := range limit.Levels {
		if levels.Has(level) {
			names = append(names, level.String())
		}
	}
	w.Header().Add(shadowHeader, strings.Join(names, ", "))
}

// clientAddress is the client's address as Caddy knows it, behind the proxies
// that the operator trusts. All clients without one share the zero address.
func clientAddress(r *http.Request) netip.Addr {
	s, _ := caddyhttp.GetVar(r.Context(), caddyhttp.ClientIPVarKey).(string)
	addr, err := netip.ParseAddr(s)
	if err != nil {
		return netip.Addr{}
	}
	return addr
}
