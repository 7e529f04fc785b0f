package main

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/seckill-edge/seckill/internal/order"
	"github.com/seckill-edge/seckill/internal/secret"
	"github.com/seckill-edge/seckill/internal/usage"
)

const help = `A crowd against the edge: every buyer clicks "buy", each from an address of his
own where the target is this machine. Prints what the buyers were told and how
fast. With --console it then waits until everything is settled and compares what
the buyers were told with what Redis sold and SQL stored.

Usage:
  rush --url URL --product ID [flags]

Examples:
  # a thousand buyers, one click each, and the proof
  rush --url http://127.0.0.1:8480 --product 1001 --buyers 1000 --console http://127.0.0.1:8481

  # impatient buyers: three clicks each, 256 of them at a time
  rush --url http://127.0.0.1:8480 --product 1001 --buyers 5000 --clicks-per-buyer 3 --concurrency 256

  # of every hundred orders 70 are paid, 10 cancelled and 20 left to expire; buyers
  # come again for what returns (the activity needs a --pay-window)
  rush --url http://127.0.0.1:8480 --product 1001 --buyers 5000 --console http://127.0.0.1:8481 \
    --pay 70 --cancel 10 --abandon 20

  # once more, on the same sale: other buyers
  rush --url http://127.0.0.1:8480 --product 1001 --seed 2

  # a sale that needs signed tokens (seckill_jwt with an HS256 key) and tickets
  rush --url http://127.0.0.1:8480 --product 1001 --ticket --token-secret-file login.secret \
    --token-key-id rehearsal --issuer https://login.example.com --audience shop

  # for a script
  rush --url http://127.0.0.1:8480 --product 1001 --json

Environment:
  SECKILL_API_TOKEN  the bearer token of --console, if it asks for one

Exit codes:
  0  somebody was told "queued", and all checks held
  1  a check failed, or the run was interrupted or too slow to prove anything
  2  wrong usage, or --url or --console is no edge or backend of this product
  3  every click was refused, for whatever reason: sold out, no login, too fast…

Flags:
`

// settings are the flags, checked.
type settings struct {
	url, console *url.URL // console is nil without --console
	token        string   // of the console
	product      string
	buyers       int
	clicks       int // a buyer
	concurrency  int // buyers at a time
	userHeader   string
	tokens       tokens
	tickets      bool
	seed         uint64
	shares       shares
	timeout      time.Duration // of crowd and check together
	json         bool
	allowRemote  bool
}

// parse reads the flags. pflag.ErrHelp means that help was asked for and printed
// to out.
func parse(args []string, out io.Writer) (settings, error) {
	var s settings
	var target, console string
	f := pflag.NewFlagSet("rush", pflag.ContinueOnError)
	f.SortFlags = false
	f.SetOutput(io.Discard)
	f.StringVar(&target, "url", "", "the edge, as http://127.0.0.1:8480; a path is its path_prefix, /seckill without one (required)")
	f.StringVar(&s.product, "product", "", "the product to buy (required)")
	f.IntVar(&s.buyers, "buyers", 1000, "how many buyers come, 1 to 1000000")
	f.IntVar(&s.clicks, "clicks-per-buyer", 1, "how often each clicks, one after the other, 1 to 1000")
	f.IntVar(&s.concurrency, "concurrency", 64, "how many buyers click at the same time, 1 to 10000")
	f.StringVar(&console, "console", "", "the backend, as http://127.0.0.1:8481; compare the stores afterwards")
	f.IntVar(&s.shares.pay, "pay", 0, "pay this percentage of the orders, by the API of --console; the three make 100")
	f.IntVar(&s.shares.cancel, "cancel", 0, "cancel this percentage")
	f.IntVar(&s.shares.abandon, "abandon", 0, "let this percentage expire; then wait for it")
	f.StringVar(&s.userHeader, "user-header", "X-User-Id", "the request header that names the buyer")
	f.StringVar(&s.tokens.secretFile, "token-secret-file", "", "sign a token for each buyer with the secret in this file: that of an HS256 key of the edge's seckill_jwt")
	f.StringVar(&s.tokens.keyID, "token-key-id", "", "the id of that key")
	f.StringVar(&s.tokens.issuer, "issuer", "", "the issuer that seckill_jwt wants")
	f.StringVar(&s.tokens.audience, "audience", "", "an audience that seckill_jwt takes")
	f.BoolVar(&s.tickets, "ticket", false, "fetch a ticket before each click, for an edge with require_ticket")
	f.Uint64Var(&s.seed, "seed", 1, "chooses who comes, and in which order: the buyers are called buyer-SEED-0, buyer-SEED-1 and so on")
	f.DurationVar(&s.timeout, "timeout", 2*time.Minute, "bounds the whole run, crowd and check")
	f.BoolVar(&s.json, "json", false, "print one JSON object in place of the tables")
	f.BoolVar(&s.allowRemote, "allow-remote", false, "let --url and --console name another machine; be sure that it is yours")
	f.Usage = func() { fmt.Fprint(out, help, f.FlagUsages()) }
	if err := f.Parse(args); err != nil {
		return s, usage.Words(err)
	}
	if f.NArg() > 0 {
		return s, fmt.Errorf("unexpected argument %q; all input goes through flags", f.Arg(0))
	}
	if s.tokens.any() && f.Changed("user-header") {
		return s, errors.New("--user-header has no use with tokens, which say who the buyer is; leave it out, or the four flags of tokens")
	}
	var err error
	if s.token, err = secret.Environment(os.LookupEnv, "SECKILL_API_TOKEN"); err != nil {
		return s, err
	}
	if s.url, err = address("--url", target, s.allowRemote); err != nil {
		return s, err
	}
	if console != "" {
		if s.console, err = address("--console", console, s.allowRemote); err != nil {
			return s, err
		}
	}
	return s, s.validate()
}

func (s settings) validate() error {
	if !order.ValidProduct(s.product) {
		return fmt.Errorf("--product %q is no product id; use 1 to %d of A-Z a-z 0-9 _ and -, as 1001", s.product, order.MaxProductBytes)
	}
	for _, n := range []struct {
		flag       string
		value, max int
	}{
		{"--buyers", s.buyers, 1_000_000},
		{"--clicks-per-buyer", s.clicks, 1000},
		{"--concurrency", s.concurrency, 10_000},
	} {
		if n.value < 1 || n.value > n.max {
			return fmt.Errorf("%s %d is out of range; use 1 to %d", n.flag, n.value, n.max)
		}
	}
	if err := s.shares.validate(s.console != nil); err != nil {
		return err
	}
	if !headerName(s.userHeader) {
		return fmt.Errorf("--user-header %q is no name of a header; use the one that the edge reads the buyer from, as X-User-Id", s.userHeader)
	}
	if err := s.tokens.validate(); err != nil {
		return err
	}
	if s.timeout <= 0 {
		return fmt.Errorf("--timeout %s is no time; use a positive duration, as 2m", s.timeout)
	}
	return nil
}

func (s shares) validate(console bool) error {
	for _, n := range []struct {
		flag  string
		value int
	}{{"--pay", s.pay}, {"--cancel", s.cancel}, {"--abandon", s.abandon}} {
		if n.value < 0 || n.value > 100 {
			return fmt.Errorf("%s %d is no percentage; use 0 to 100", n.flag, n.value)
		}
	}
	switch {
	case !s.any():
	case s.pay+s.cancel+s.abandon != 100:
		return fmt.Errorf("--pay %d, --cancel %d and --abandon %d make %d; every order has one fate, so they must make 100",
			s.pay, s.cancel, s.abandon, s.pay+s.cancel+s.abandon)
	case !console:
		return errors.New("--pay, --cancel and --abandon need --console: orders are paid through the backend's API")
	}
	return nil
}

// address reads the base URL that a flag names. Unless remote is allowed it must
// lead to this machine: the crowd is a flood.
func address(flag, value string, remote bool) (*url.URL, error) {
	if value == "" {
		return nil, fmt.Errorf("%s is missing; name the address, as %s http://127.0.0.1:8480", flag, flag)
	}
	u, err := url.Parse(value)
	if err != nil || u.Host == "" || (u.Scheme != "http" && u.Scheme != "https") || u.User != nil {
		return nil, fmt.Errorf("%s is no http or https address without user and password; use one as http://127.0.0.1:8480", flag)
	}
	if !remote && !loopback(u.Hostname()) {
		return nil, fmt.Errorf("%s %s is not this machine; use a loopback address, or --allow-remote if that machine is yours to flood", flag, u.Redacted())
	}
	u.RawQuery, u.Fragment = "", ""
	return u, nil
}

// edge is where the calls of the edge are.
func (s settings) edge() *url.URL {
	if strings.Trim(s.url.Path, "/") == "" {
		return s.url.JoinPath("seckill")
	}
	return s.url
}

// headerName says whether HTTP lets a header have this name (RFC 9110, section 5.6.2).
func headerName(name string) bool {
	const letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789!#$%&'*+-.^_`|~"
	return name != "" && strings.Trim(name, letters) == ""
}

func loopback(host string) bool {
	if host == "localhost" {
		return true
	}
	ip, err := netip.ParseAddr(host)
	return err == nil && ip.Unmap().IsLoopback()
}

// sourcesOf says from which address each buyer dials: one of his own in
// 127.0.0.0/8 if the target is reached through IPv4 loopback and the system lets
// us (Linux does), so that a limit per address sees a crowd and not one machine.
// Nil leaves the choice to the system.
func sourcesOf(target *url.URL) func(buyer int) net.Addr {
	host := target.Hostname()
	if ip, err := netip.ParseAddr(host); host != "localhost" && (err != nil || !ip.Is4() || !ip.IsLoopback()) {
		return nil
	}
	probe, err := net.ListenTCP("tcp4", source(0))
	if err != nil {
		return nil
	}
	probe.Close()
	return func(buyer int) net.Addr { return source(buyer) }
}

// source is the address of a buyer: 127.1.0.1 and up, without those that end in
// 0 or 255.
func source(buyer int) *net.TCPAddr {
	const last = 254
	low, rest := buyer%last+1, buyer/last
	return &net.TCPAddr{IP: net.IPv4(127, byte(1+(rest>>8)), byte(rest), byte(low))}
}
