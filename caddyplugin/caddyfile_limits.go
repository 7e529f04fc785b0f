package caddyplugin

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"

	"github.com/seckill-edge/seckill/caddyplugin/gate"
)

func isLimit(option string) bool { return option == "limit" || option == "allow" || option == "deny" }

// parseLimits reads one of the options limit, allow and deny.
func (a *App) parseLimits(d *caddyfile.Dispenser, seen options) error {
	l := a.Limits
	if l == nil {
		l = new(Limits)
	}
	var err error
	switch option := d.Val(); option {
	case "limit":
		err = l.parseLimit(d, seen)
	case "allow":
		l.Allow, err = networks(d, l.Allow)
	case "deny":
		l.Deny, err = networks(d, l.Deny)
	}
	if err == nil && !l.empty() {
		a.Limits = l
	}
	return err
}

func (l *Limits) empty() bool {
	return l.IP == nil && l.Total == nil && l.SharedTotal == nil && l.User == nil && l.Activity == nil &&
		l.SharedActivity == nil && l.Allow == nil && l.Deny == nil
}

func networks(d *caddyfile.Dispenser, list []string) ([]string, error) {
	option := d.Val()
	args := d.RemainingArgs()
	if len(args) == 0 || slices.Contains(args, "") {
		return nil, d.Errf("%s takes networks such as 192.0.2.0/24, or addresses", option)
	}
	return append(list, args...), nil
}

// surplus reads a factor, or off.
func surplus(d *caddyfile.Dispenser) (int, error) {
	if d.CountRemainingArgs() == 1 && d.NextArg() {
		if d.Val() == "off" {
			return -1, nil
		}
		if n, err := strconv.Atoi(d.Val()); err == nil && gate.SurplusBound.Has(n) {
			return n, nil
		}
		return 0, d.Errf("surplus %q is neither a whole number from %v nor off", d.Val(), gate.SurplusBound)
	}
	return number(d, gate.SurplusBound)
}

// parseLimit reads the limit of one level:
//
//	limit [shared] <level> off
//	limit [shared] <level> <events>/<duration> [burst <events>] [shadow] [ipv4 <bits>] [ipv6 <bits>]
//
// The levels are ip, user, activity and total; shared are activity and total, and
// only ip has ipv4 and ipv6.
func (l *Limits) parseLimit(d *caddyfile.Dispenser, seen options) error {
	args := d.RemainingArgs()
	if slices.Contains(args, "") {
		return d.Err("limit: a word is empty; a variable that stands for nothing has no default")
	}
	shared := len(args) > 0 && args[0] == "shared"
	if shared {
		args = args[1:]
	}
	if len(args) < 2 {
		return d.Err("limit takes [shared], a level and <events>/<duration>, such as limit ip 20/1s burst 40, or off")
	}
	level, name := args[0], "limit "+args[0]
	if shared {
		name = "limit shared " + level
	}
	if seen[name] {
		return d.Errf("%s is given twice", name)
	}
	seen[name] = true
	place, err := l.place(d, level, shared)
	if err != nil || args[1] == "off" && len(args) == 2 {
		return err
	}
	limit := new(IPLimit)
	if err := limit.parse(d, name, args[1:], level == "ip"); err != nil {
		return err
	}
	if err := limit.validate(shared); err != nil {
		return d.Errf("%s: %v", name, err)
	}
	place(limit)
	return nil
}

// place finds where the limit of a level goes.
func (l *Limits) place(d *caddyfile.Dispenser, level string, shared bool) (func(*IPLimit), error) {
	switch {
	case level == "ip" && !shared:
		return func(i *IPLimit) { l.IP = i }, nil
	case level == "user" && !shared:
		return func(i *IPLimit) { l.User = &i.Limit }, nil
	case level == "activity" && !shared:
		return func(i *IPLimit) { l.Activity = &i.Limit }, nil
	case level == "total" && !shared:
		return func(i *IPLimit) { l.Total = &i.Limit }, nil
	case level == "activity":
		return func(i *IPLimit) { l.SharedActivity = &i.Limit }, nil
	case level == "total":
		return func(i *IPLimit) { l.SharedTotal = &i.Limit }, nil
	case shared:
		return nil, d.Errf("limit shared %s: activity and total can be shared by all edges", level)
	}
	return nil, d.Errf("limit %s: there are the levels ip, user, activity and total", level)
}

// parse reads the rate and what follows it.
func (l *IPLimit) parse(d *caddyfile.Dispenser, name string, args []string, ip bool) error {
	var err error
	events, per, ok := strings.Cut(args[0], "/")
	if l.Events, err = strconv.Atoi(events); !ok || err != nil || l.Events < 1 {
		return d.Errf("%s: %q is not <events>/<duration>, such as 20/1s; write off for no limit", name, args[0])
	}
	parsed, err := caddy.ParseDuration(per)
	if err != nil || parsed <= 0 {
		return d.Errf("%s: %q is not a positive duration such as 1s", name, per)
	}
	l.Per = caddy.Duration(parsed)
	for args = args[1:]; len(args) > 0; args = args[1:] {
		word := args[0]
		if word == "shadow" && !l.Shadow {
			l.Shadow = true
			continue
		}
		var to *int
		most := math.MaxInt
		switch {
		case word == "burst":
			to = &l.Burst
		case word == "ipv4" && ip:
			to, most = &l.IPv4Prefix, ipv4Bits
		case word == "ipv6" && ip:
			to, most = &l.IPv6Prefix, ipv6Bits
		}
		if to == nil || *to != 0 {
			return d.Errf("%s: %q is not known here, or given twice; burst <events> and shadow may follow the rate, with ip also ipv4 <bits> and ipv6 <bits>", name, word)
		}
		if args = args[1:]; len(args) == 0 {
			return d.Errf("%s: %s needs a number", name, word)
		}
		if *to, err = strconv.Atoi(args[0]); err != nil || *to < 1 || *to > most {
			bound := "from 1"
			if most < math.MaxInt {
				bound = fmt.Sprintf("from 1 to %d", most)
			}
			return d.Errf("%s: %s %q is not a whole number %s", name, word, args[0], bound)
		}
	}
	return nil
}
