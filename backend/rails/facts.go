package rails

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/seckill-edge/seckill/lua"
)

// answer is what a server says to a question of yes and no.
type answer int

const (
	silent answer = iota // it does not tell
	no
	yes
)

func answerOf(is bool) answer {
	if is {
		return yes
	}
	return no
}

// facts are what one server tells of itself.
type facts struct {
	addr        string
	policy      string // "" if it does not tell
	aof, saves  answer
	memoryKnown bool
	used        int64 // bytes
	maxMemory   int64 // bytes, 0: no limit
}

// askWithin bounds what one server is asked.
const askWithin = 3 * time.Second

// Inspect asks the servers that hold products about themselves; units are those
// still to be sold of each. A plain Redis is asked without products too. Errors
// are of the connection: what a server does not tell is a Problem of kind Unknown.
func Inspect(ctx context.Context, client redis.UniversalClient, units map[string]int64) ([]Problem, error) {
	need := map[string]int64{}
	nodes := map[string]*redis.Client{}
	for product, n := range units {
		node, err := nodeOf(ctx, client, product)
		if err != nil {
			return nil, err
		}
		addr := node.Options().Addr
		nodes[addr] = node
		need[addr] += max(0, Need(n)-margin)
	}
	if plain, ok := client.(*redis.Client); ok {
		nodes[plain.Options().Addr] = plain
	}
	var problems []Problem
	addrs := make([]string, 0, len(nodes))
	for addr := range nodes {
		addrs = append(addrs, addr)
	}
	slices.Sort(addrs)
	for _, addr := range addrs {
		f, err := ask(ctx, nodes[addr])
		if err != nil {
			return nil, err
		}
		problems = append(problems, judge(f, need[addr]+margin)...)
	}
	return problems, nil
}

// nodeOf is the server that holds a product.
func nodeOf(ctx context.Context, client redis.UniversalClient, product string) (*redis.Client, error) {
	switch c := client.(type) {
	case *redis.Client:
		return c, nil
	case *redis.ClusterClient:
		node, err := c.MasterForKey(ctx, lua.KeysOf(product).Activity)
		if err != nil {
			return nil, fmt.Errorf("looking for the node of product %s in the cluster: %w", product, err)
		}
		return node, nil
	}
	return nil, fmt.Errorf("a Redis client of type %T is not known here", client)
}

// ask reads INFO, which every Redis has, and CONFIG, which managed ones often
// forbid and embedded ones do not know.
func ask(ctx context.Context, node *redis.Client) (facts, error) {
	ctx, cancel := context.WithTimeout(ctx, askWithin)
	defer cancel()
	f := facts{addr: node.Options().Addr}
	info, err := read(ctx, node)
	if err != nil {
		return facts{}, fmt.Errorf("asking Redis %s about itself: %w", f.addr, err)
	}
	f.policy = info["maxmemory_policy"]
	if text, there := info["aof_enabled"]; there {
		f.aof = answerOf(text != "0")
	}
	// INFO does not tell the save points. A snapshot taken since the start does.
	if seconds, err := strconv.ParseInt(info["rdb_last_bgsave_time_sec"], 10, 64); err == nil && seconds >= 0 {
		f.saves = yes
	}
	used, err1 := strconv.ParseInt(info["used_memory"], 10, 64)
	limit, err2 := strconv.ParseInt(info["maxmemory"], 10, 64)
	if f.memoryKnown = err1 == nil && err2 == nil; f.memoryKnown {
		f.used, f.maxMemory = used, limit
	}
	config, err := setting(ctx, node, "maxmemory-policy", "appendonly", "save")
	if err != nil {
		return facts{}, fmt.Errorf("asking Redis %s for its configuration: %w", f.addr, err)
	}
	if policy, there := config["maxmemory-policy"]; there {
		f.policy = policy
	}
	if text, there := config["appendonly"]; there {
		f.aof = answerOf(text == "yes")
	}
	if text, there := config["save"]; there {
		f.saves = answerOf(strings.TrimSpace(text) != "")
	}
	return f, nil
}

// read asks for two sections of INFO, one by one: before Redis 7 a call names one.
func read(ctx context.Context, node *redis.Client) (map[string]string, error) {
	out := map[string]string{}
	for _, section := range []string{"memory", "persistence"} {
		text, err := node.Info(ctx, section).Result()
		if refused(err) {
			continue
		}
		if err != nil {
			return nil, err
		}
		for line := range strings.Lines(text) {
			if name, value, ok := strings.Cut(strings.TrimSpace(line), ":"); ok {
				out[name] = value
			}
		}
	}
	return out, nil
}

// setting reads what CONFIG GET shows of names; nothing where it is forbidden.
func setting(ctx context.Context, node *redis.Client, names ...string) (map[string]string, error) {
	out := map[string]string{}
	for _, name := range names {
		got, err := node.ConfigGet(ctx, name).Result()
		if refused(err) {
			return out, nil
		}
		if err != nil {
			return nil, err
		}
		if value, there := got[name]; there {
			out[name] = value
		}
	}
	return out, nil
}

// refused says that the server is there and does not answer this question: it does
// not know it, or not from this user. One that starts, fails over or asks for a
// password is a failure.
func refused(err error) bool {
	switch lua.FaultOf(err) {
	case lua.FaultForbidden:
		return !redis.IsAuthError(err)
	case lua.FaultPermanent:
		return true
	case lua.FaultNone, lua.FaultNotSent, lua.FaultUnanswered, lua.FaultRefused:
	}
	return false
}
