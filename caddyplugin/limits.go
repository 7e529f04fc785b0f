package caddyplugin

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/caddyserver/caddy/v2"

	"github.com/seckill-edge/seckill/caddyplugin/limit"
)

// How much of an address one client has, in bits, for who says nothing: a whole
// IPv4 address, and of IPv6 what one customer is given.
const (
	defaultIPv4Prefix  = 32
	defaultIPv6Prefix  = 64
	ipv4Bits, ipv6Bits = 32, 128
)

// Limits are the limits on calls, each of them optional, and the lists. What
// needs no identity (allow, deny, ip, total, shared_total) is asked by the handler
// seckill_limit, or else by the handler seckill; user by the latter for calls that
// a buyer makes; activity and shared_activity for purchases that would go to Redis.
type Limits struct {
	// IP limits each client address, as Caddy knows it behind trusted proxies.
	IP *IPLimit `json:"ip,omitempty"`
	// Total limits this edge.
	Total *Limit `json:"total,omitempty"`
	// SharedTotal limits all edges together. They count in Redis and take many
	// tokens ahead; an edge that Redis does not answer goes by this limit alone.
	SharedTotal *Limit `json:"shared_total,omitempty"`
	// User limits each buyer.
	User *Limit `json:"user,omitempty"`
	// Activity limits the purchases of each product on this edge.
	Activity *Limit `json:"activity,omitempty"`
	// SharedActivity limits the purchases of each product on all edges together.
	SharedActivity *Limit `json:"shared_activity,omitempty"`
	// Allow are networks or addresses that are not limited by ip, Deny those that
	// are answered 403. Placeholders such as {file./etc/seckill/deny} may stand for
	// many, apart by white space, with comments from # to the end of a line. Who is
	// on both lists is denied.
	Allow []string `json:"allow,omitempty"`
	Deny  []string `json:"deny,omitempty"`
}

// Limit is a token bucket.
type Limit struct {
	// Events is how many tokens come back every Per, 1ms to 24h.
	Events int            `json:"events"`
	Per    caddy.Duration `json:"per"`
	// Burst is how many calls may come at once. Default: events.
	Burst int `json:"burst,omitempty"`
	// Shadow lets calls in that would be refused; they are counted, and their
	// answers say so in the field Seckill-Limit-Shadow.
	Shadow bool `json:"shadow,omitempty"`
}

// IPLimit is a token bucket for each client address.
type IPLimit struct {
	Limit
	// IPv4Prefix and IPv6Prefix are how many bits of an address make one client, 1
	// to 32 and 1 to 128. Defaults 32 and 64.
	IPv4Prefix int `json:"ipv4_prefix,omitempty"`
	IPv6Prefix int `json:"ipv6_prefix,omitempty"`
}

func (l *Limit) rate() limit.Rate {
	return limit.Rate{Events: l.Events, Per: time.Duration(l.Per), Burst: cmp.Or(l.Burst, l.Events)}
}

func (l *Limit) validate(shared bool) error {
	if shared {
		return l.rate().ValidateShared()
	}
	return l.rate().Validate()
}

// resolve translates the limits; nil are none.
func (l *Limits) resolve() (limit.Config, error) {
	c := limit.Config{IPv4Bits: defaultIPv4Prefix, IPv6Bits: defaultIPv6Prefix}
	if l == nil {
		return c, nil
	}
	given := [len(limit.Levels)]*Limit{
		limit.Total: l.Total, limit.SharedTotal: l.SharedTotal, limit.User: l.User,
		limit.Activity: l.Activity, limit.SharedActivity: l.SharedActivity,
	}
	var errs []error
	if ip := l.IP; ip != nil {
		given[limit.IP] = &ip.Limit
		if ip.IPv4Prefix != 0 {
			c.IPv4Bits = ip.IPv4Prefix
		}
		if ip.IPv6Prefix != 0 {
			c.IPv6Bits = ip.IPv6Prefix
		}
		if c.IPv4Bits < 1 || c.IPv4Bits > ipv4Bits {
			errs = append(errs, fmt.Errorf("limits: ip: ipv4_prefix %d: must be 1 to %d bits", c.IPv4Bits, ipv4Bits))
		}
		if c.IPv6Bits < 1 || c.IPv6Bits > ipv6Bits {
			errs = append(errs, fmt.Errorf("limits: ip: ipv6_prefix %d: must be 1 to %d bits", c.IPv6Bits, ipv6Bits))
		}
	}
	for _, level := range limit.Levels {
		g := given[level]
		if g == nil {
			continue
		}
		if err := g.validate(level.Shared()); err != nil {
			errs = append(errs, fmt.Errorf("limits: %v: %w", level, err))
		}
		c.Limits[level] = &limit.Limit{Rate: g.rate(), Shadow: g.Shadow}
	}
	var err error
	if c.Allow, err = prefixes("allow", l.Allow); err != nil {
		errs = append(errs, err)
	}
	if c.Deny, err = prefixes("deny", l.Deny); err != nil {
		errs = append(errs, err)
	}
	return c, errors.Join(errs...)
}

// maxList is how much Caddy reads of a file that a placeholder names, in bytes, and
// says nothing of the rest; it takes a line end off.
const maxList = 1 << 20

// prefixes reads a list, placeholders resolved.
func prefixes(list string, entries []string) (limit.Prefixes, error) {
	texts := make([]string, len(entries))
	for i, entry := range entries {
		text, err := resolvePlaceholders(entry)
		if err != nil && emptyFile(entry) { // its last line was taken away
			continue
		}
		if err != nil {
			return limit.Prefixes{}, fmt.Errorf("limits: %s: %w; set what the placeholder names", list, err)
		}
		if text != entry && len(text) >= maxList-2 {
			return limit.Prefixes{}, fmt.Errorf("limits: %s: %s holds a MiB or more, of which Caddy reads no more than one; spread it over several files", list, entry)
		}
		texts[i] = text
	}
	p, err := limit.ParsePrefixes(texts...)
	if err != nil {
		return p, fmt.Errorf("limits: %s: %w", list, err)
	}
	return p, nil
}

// limits are those of this process. They outlive every config and engine, so that
// no reload gives anybody a fresh burst.
var limits = &running{Limits: limit.New()}

// running applies the limits of the config that runs.
type running struct {
	*limit.Limits
	mu sync.Mutex
	// apps have begun and not ended, in this order. The last one's limits are in
	// use: on a reload the new config begins before the old one ends, and if it
	// fails to, it ends first.
	apps []begun
}

type begun struct {
	app    *App
	limits limit.Config
}

func (r *running) begin(a *App, c limit.Config) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.apps = append(r.apps, begun{a, c})
	r.useLocked()
}

// end may be called for an app that has not begun.
func (r *running) end(a *App) {
	r.mu.Lock()
	defer r.mu.Unlock()
	n := len(r.apps)
	r.apps = slices.DeleteFunc(r.apps, func(b begun) bool { return b.app == a })
	if len(r.apps) < n {
		r.useLocked()
	}
}

func (r *running) useLocked() {
	var c limit.Config
	if n := len(r.apps); n > 0 {
		c = r.apps[n-1].limits
	}
	r.Use(c, time.Now())
}
