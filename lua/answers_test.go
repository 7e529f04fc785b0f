package lua

import (
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"
)

// TestEveryAnswer reaches each declared Outcome, Moved and Preheated, and
// collects them: one that is added and never answered fails it.
func TestEveryAnswer(t *testing.T) {
	onEach(t, func(t *testing.T, c redis.UniversalClient) {
		ctx := t.Context()
		var id ids
		got := map[string][]int64{}
		saw := func(kind string, value int64) {
			if !slices.Contains(got[kind], value) {
				got[kind] = append(got[kind], value)
			}
		}
		ask := func(epoch int64, reqs ...Request) {
			b, err := Reserve(ctx, c, product, epoch, reqs)
			require.NoError(t, err)
			for _, r := range b.Results {
				saw("Outcome", int64(r.Outcome))
			}
		}
		heat := func(a Activity) {
			p, err := Preheat(ctx, c, a)
			require.NoError(t, err)
			saw("Preheated", int64(p))
		}
		one := func(user string, quantity int) Request {
			return Request{OrderID: id.next(), UserID: user, Quantity: quantity}
		}

		ask(1, one("u", 1)) // no product
		a := sale(3, 2)
		heat(a)
		heat(a)
		b := a
		b.ID = "a-2"
		heat(b)
		first := one("u", 2)
		ask(1, first, one("u", 1), one("v", 2), one("v", 1), one("w", 1), one("w", 0))
		ask(0, one("w", 1)) // another epoch
		key := HashKey(product, "u", "k")
		require.NoError(t, c.HSet(ctx, KeysOf(product).Users, "k", FormatRecord([]Entry{{Mark: MarkExpired, OrderID: id.next(), Quantity: 1, Claim: 1, At: time.Now(), Key: key}})).Err())
		ask(1, Request{OrderID: id.next(), UserID: "k", Quantity: 2, Key: key}) // key reused
		var given []Entry
		old := id.next()
		for range 8 {
			given = append(given, Entry{Mark: MarkCancelled, OrderID: id.next(), Quantity: 1, Claim: 1, At: time.Now()})
		}
		require.NoError(t, c.HSet(ctx, KeysOf(product).Users, "g", FormatRecord(given)).Err())
		ask(1, Request{OrderID: old, UserID: "g", Quantity: 1}) // may be forgotten
		for _, m := range slices.Concat(
			change(t, c, MarkSettled, Move{UserID: "u", OrderID: first.OrderID}, Move{UserID: "u", OrderID: first.OrderID}, Move{UserID: "x", OrderID: first.OrderID}),
			change(t, c, MarkExpired, Move{UserID: "u", OrderID: first.OrderID})) {
			saw("Moved", int64(m))
		}
		require.NoError(t, c.FlushDB(ctx).Err())
		a.Start = time.Now().Add(time.Minute)
		heat(a)
		ask(1, one("u", 1)) // not started
		_, _, err := SetState(ctx, c, product, a.ID, OnHold)
		require.NoError(t, err)
		ask(2, one("u", 1)) // held
		_, _, err = SetState(ctx, c, product, a.ID, Closed)
		require.NoError(t, err)
		ask(3, one("u", 1)) // ended

		declared := declaredConstants(t)
		for _, kind := range []string{"Outcome", "Moved", "Preheated"} {
			require.NotEmpty(t, declared[kind])
			byScripts := slices.DeleteFunc(slices.Clone(declared[kind]), func(v int64) bool {
				return kind == "Outcome" && v < int64(KeyReused) && v != int64(NoTicket) && v != int64(Unavailable) // an edge gives it by itself
			})
			require.ElementsMatch(t, byScripts, got[kind], kind)
		}
		for _, value := range declared["Outcome"] {
			require.NotEqual(t, "unknown", Outcome(value).String(), value)
		}
		require.Equal(t, "unknown", Outcome(-99).String())
		require.Len(t, declared["Outcome"], len(Outcomes()))
	})
}

// declaredConstants reads the constants of this package by type.
func declaredConstants(t *testing.T) map[string][]int64 {
	t.Helper()
	fset := token.NewFileSet()
	var files []*ast.File
	for _, name := range []string{"outcome.go", "types.go", "preheat.go"} {
		file, err := parser.ParseFile(fset, name, nil, parser.SkipObjectResolution)
		require.NoError(t, err)
		files = append(files, file)
	}
	info := &types.Info{Defs: map[*ast.Ident]types.Object{}}
	// What the other files declare is missing here; constants do not need it.
	conf := types.Config{Error: func(error) {}, Importer: importer.Default()}
	_, _ = conf.Check("lua", fset, files, info)
	found := map[string][]int64{}
	for _, obj := range info.Defs {
		c, ok := obj.(*types.Const)
		if !ok || c.Val() == nil {
			continue
		}
		if named, ok := c.Type().(*types.Named); ok {
			if value, exact := constantInt(c); exact {
				found[named.Obj().Name()] = append(found[named.Obj().Name()], value)
			}
		}
	}
	return found
}

func constantInt(c *types.Const) (int64, bool) {
	text := c.Val().ExactString()
	value, ok := parseNumber(strings.TrimPrefix(text, "-"), latest)
	if strings.HasPrefix(text, "-") {
		value = -value
	}
	return value, ok
}

var (
	anyCall  = regexp.MustCompile(`redis\.p?call\b`)
	goodCall = regexp.MustCompile(`redis\.p?call\('([A-Z]+)'`) // its name in letters
	oneKey   = regexp.MustCompile(`^, KEYS\[\w+\]`)
	allKeys  = regexp.MustCompile(`^(, KEYS\[\w+\])+\)`)
	pairs    = regexp.MustCompile(`^(, KEYS\[\w+\], [\w'\[\]]+)+\)`)
)

// TestScriptsNameTheirKeys reads the scripts: every command takes its keys from
// KEYS, and its name is written out.
func TestScriptsNameTheirKeys(t *testing.T) {
	names, err := os.ReadDir(".")
	require.NoError(t, err)
	calls := 0
	for _, name := range names {
		if !strings.HasSuffix(name.Name(), ".lua") {
			continue
		}
		raw, err := os.ReadFile(name.Name())
		require.NoError(t, err)
		source := string(raw)
		require.Regexp(t, `^-- [A-Z]`, source, "%s begins with what it does", name.Name())
		found := goodCall.FindAllStringSubmatchIndex(source, -1)
		require.Len(t, found, len(anyCall.FindAllString(source, -1)), "%s: a command that cannot be read", name.Name())
		for _, call := range found {
			calls++
			command := source[call[2]:call[3]]
			rest, _, _ := strings.Cut(source[call[1]:], "\n")
			switch command {
			case "PUBLISH":
				require.Regexp(t, `^, 'seckill:(changes|moves)', `, rest)
				require.Contains(t, source, "'"+Changes+"'")
			case "TIME":
				require.Regexp(t, `^\)`, rest)
			case "INFO":
				require.Regexp(t, `^, '(server|replication)'\)`, rest)
			case "EXISTS", "MGET", "UNLINK":
				require.Regexp(t, allKeys, rest, "%s: %s", name.Name(), command)
			case "MSET":
				require.Regexp(t, pairs, rest, "%s: %s", name.Name(), command)
			case "GET", "HMGET", "HSET", "HDEL", "HLEN", "INCRBY", "DECRBY", "SET", "PTTL", "PEXPIRE", "PEXPIREAT",
				"ZCARD", "ZADD", "ZRANGEBYLEX", "ZREMRANGEBYLEX":
				require.Regexp(t, oneKey, rest, "%s: %s", name.Name(), command)
			default:
				t.Errorf("%s: command %s: say here which of its arguments are keys", name.Name(), command)
			}
		}
	}
	require.Greater(t, calls, 20)
	for name := range scripts() {
		raw, err := os.ReadFile(name + ".lua")
		require.NoError(t, err)
		keys := "-- KEYS  1 activity  2 stock  3 frozen  4 sold  5 users  6 outbox"
		if name == "tide" { // of no product
			keys = "-- KEYS  1 the tide"
		}
		for _, part := range []string{keys, "\n-- Returns "} {
			require.Contains(t, string(raw), part, name)
		}
	}
}

// TestKeysShareASlot: one hash tag, the product, in every key.
func TestKeysShareASlot(t *testing.T) {
	seen := map[string]bool{}
	for _, key := range KeysOf("p-1").list() {
		require.Regexp(t, `^seckill:[a-z]+:\{p-1\}$`, key)
		require.False(t, seen[key])
		seen[key] = true
	}
	require.Len(t, seen, 6)
}
