package main

import (
	"fmt"
	"io"
	"net"
	"net/netip"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/seckill-edge/seckill/backend/activities"
	"github.com/seckill-edge/seckill/internal/order"
	"github.com/seckill-edge/seckill/internal/usage"
)

const help = `A whole flash sale in one process, with nothing installed: edge, backend, shop
page and console, on an embedded Redis, queue and SQLite. One activity is open:
product 1001, for 24 hours; one unit a buyer and no payment, unless flags say so.

Everybody is who he says he is here (header X-User-Id), so it listens on loopback
only. The embedded parts are for trying out, not for measuring.

Usage:
  standalone [flags]

Examples:
  # the whole thing; addresses and commands to try are printed
  standalone

  # on free ports, for a script: one line of JSON when it is ready
  standalone --listen 127.0.0.1:0 --console 127.0.0.1:0 --json

  # 5000 units on a real Redis, RabbitMQ and MySQL
  standalone --units 5000 --redis redis://127.0.0.1:6379/0 \
    --rabbitmq amqp://guest:guest@127.0.0.1:5672/ \
    --database mysql://seckill:secret@127.0.0.1:3306/seckill

  # buyers have five seconds to pay, by the API; what they do not pay for sells again
  standalone --units 1000 --pay-window 5s

  # keep the orders from run to run
  standalone --data ./data

Exit codes:
  0  stopped by Ctrl-C or SIGTERM
  1  could not start, or could not stop in order
  2  wrong usage, a URL that is none included

Flags:
`

// settings are the flags, checked.
type settings struct {
	listen, console string // host:port on loopback; port 0 is a free one
	redis, rabbitmq string // empty: embedded
	database        string // empty: SQLite in data
	data            string // empty: a temporary folder
	units           int64
	limit           int           // units a buyer
	payWindow       time.Duration // 0: no payment stage
	json, verbose   bool
	// given says whether a flag was.
	given func(flag string) bool
}

// longestPayWindow is the backend's bound.
const longestPayWindow = 7 * 24 * time.Hour

// parse reads the flags. pflag.ErrHelp means that help was asked for and printed
// to out.
func parse(args []string, out io.Writer) (settings, error) {
	var s settings
	f := pflag.NewFlagSet("standalone", pflag.ContinueOnError)
	f.SortFlags = false
	f.SetOutput(io.Discard)
	f.StringVar(&s.listen, "listen", "127.0.0.1:8480", "where the shop and the edge listen; port 0 takes a free one")
	f.StringVar(&s.console, "console", "127.0.0.1:8481", "where the backend's console and API listen; port 0 takes a free one")
	f.StringVar(&s.redis, "redis", "", "a Redis, as redis://user:password@host:6379/0, instead of the embedded one")
	f.StringVar(&s.rabbitmq, "rabbitmq", "", "a RabbitMQ, as amqp://user:password@host:5672/vhost, instead of the embedded queue")
	f.StringVar(&s.database, "database", "", "a MySQL or MariaDB, as mysql://user:password@host:3306/name, or sqlite:PATH")
	f.StringVar(&s.data, "data", "", "keep the SQLite database in this folder (default: a temporary one, removed at the end)")
	f.Int64Var(&s.units, "units", 100, "the units on sale when the activity is created, 1 to 1000000000")
	f.IntVar(&s.limit, "limit", 1, "the units one buyer may have, 1 to 999; more than there are lets one buyer have all")
	f.DurationVar(&s.payWindow, "pay-window", 0, "how long a buyer may take to pay, in whole seconds up to 168h; 0: sold at once")
	f.BoolVar(&s.json, "json", false, "when ready, print one JSON line in place of the text")
	f.BoolVar(&s.verbose, "verbose", false, "log everything, not only warnings and errors")
	f.Usage = func() { fmt.Fprint(out, help, f.FlagUsages()) }
	if err := f.Parse(args); err != nil {
		return s, usage.Words(err)
	}
	s.given = f.Changed
	return s, s.validate(f.Args())
}

func (s settings) validate(rest []string) error {
	if len(rest) > 0 {
		return fmt.Errorf("unexpected argument %q; all input goes through flags", rest[0])
	}
	if err := checkLoopback("--listen", s.listen); err != nil {
		return err
	}
	if err := checkLoopback("--console", s.console); err != nil {
		return err
	}
	if s.units < 1 || s.units > order.MaxUnits {
		return fmt.Errorf("--units %d is out of range; use 1 to %d", s.units, order.MaxUnits)
	}
	if s.limit < 1 || s.limit > order.MaxQuantity {
		return fmt.Errorf("--limit %d is out of range; use 1 to %d", s.limit, order.MaxQuantity)
	}
	if s.payWindow < 0 || s.payWindow > longestPayWindow || s.payWindow%time.Second != 0 {
		return fmt.Errorf("--pay-window %s is out of range; use whole seconds from 0s to %s", s.payWindow, longestPayWindow)
	}
	if s.data != "" && s.database != "" {
		return fmt.Errorf("--data %s has no use with --database; leave one of them out", s.data)
	}
	return nil
}

// ignored says which of the flags that describe a new sale come to nothing, because
// one is going on that is not so; empty if there are none.
func (s settings) ignored(kept activities.View) string {
	var flags []string
	for _, f := range []struct {
		name        string
		asked, kept any
	}{
		{"units", s.units, kept.Total},
		{"limit", s.limit, kept.Limit},
		{"pay-window", s.payWindow, kept.PayWindow},
	} {
		if s.given(f.name) && f.asked != f.kept {
			flags = append(flags, fmt.Sprintf("--%s %v (it has %v)", f.name, f.asked, f.kept))
		}
	}
	if len(flags) == 0 {
		return ""
	}
	where := "--database"
	if s.data != "" {
		where = "--data " + s.data
	}
	return fmt.Sprintf("the sale kept in %s goes on, without %s; name another place for a new sale", where, strings.Join(flags, ", "))
}

// checkLoopback refuses an address that other machines can reach.
func checkLoopback(flag, address string) error {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return fmt.Errorf("%s %q is no host:port; use one as 127.0.0.1:8480", flag, address)
	}
	if _, err := strconv.ParseUint(port, 10, 16); err != nil {
		return fmt.Errorf("%s %q has port %q; use 0 to 65535", flag, address, port)
	}
	if host == "localhost" {
		return nil
	}
	if ip, err := netip.ParseAddr(host); err != nil || !ip.IsLoopback() {
		return fmt.Errorf("%s %q is not on loopback; anybody may buy in anybody's name here, so use 127.0.0.1:%s", flag, address, port)
	}
	return nil
}
