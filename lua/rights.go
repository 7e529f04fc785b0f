package lua

import (
	"context"
	"embed"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/redis/go-redis/v9"
)

// sources are the files of all scripts.
//
//go:embed *.lua
var sources embed.FS

// called finds the commands that a script calls.
var called = regexp.MustCompile(`redis\.p?call\('([A-Z]+)'`)

// rights are the commands that a user needs to run every script, in lower case.
func rights() ([]string, error) {
	commands := []string{"eval", "evalsha"}
	files, err := sources.ReadDir(".")
	if err != nil {
		return nil, err
	}
	for _, file := range files {
		source, err := sources.ReadFile(file.Name())
		if err != nil {
			return nil, err
		}
		for _, m := range called.FindAllSubmatch(source, -1) {
			commands = append(commands, strings.ToLower(string(m[1])))
		}
	}
	slices.Sort(commands)
	return slices.Compact(commands), nil
}

// Forbidden names what a user lacks to run the scripts: Redis before 7.2 does not
// tell it of a command inside a script. It returns err with the commands behind it
// if err is FaultForbidden and they can be found, else err as it is.
func Forbidden(ctx context.Context, c redis.UniversalClient, err error) error {
	if FaultOf(err) != FaultForbidden {
		return err
	}
	needed, failed := rights()
	if failed != nil {
		return err
	}
	missing, asked := missingRights(ctx, c, needed)
	if asked != nil || len(missing) == 0 {
		return err
	}
	return fmt.Errorf("%w (ACL SETUSER must give this user +%s)", err, strings.Join(missing, " +"))
}

// rightsKey is a key that no activity has.
const rightsKey = "seckill:rights"

// missingRights tries which of the commands this user may not send. They are
// queued in a transaction that is discarded, where Redis checks rights at once:
// none of them runs.
func missingRights(ctx context.Context, c redis.UniversalClient, commands []string) ([]string, error) {
	node, ok := c.(*redis.Client)
	if cluster, is := c.(*redis.ClusterClient); is {
		var err error
		if node, err = cluster.MasterForKey(ctx, rightsKey); err != nil {
			return nil, fmt.Errorf("looking for a node to ask for rights: %w", err)
		}
	} else if !ok {
		return nil, fmt.Errorf("a Redis client of type %T is not known here", c)
	}
	conn := node.Conn()
	defer func() { _ = conn.Close() }()
	if err := conn.Do(ctx, "MULTI").Err(); err != nil {
		return nil, fmt.Errorf("beginning to ask for rights: %w", err)
	}
	pipe := conn.Pipeline()
	tries := make([][]*redis.Cmd, len(commands))
	for i, command := range commands {
		// Redis looks at the number of arguments first, and that differs.
		args := []any{command}
		for _, next := range []any{rightsKey, "0", "0", "0", "0"} {
			tries[i] = append(tries[i], pipe.Do(ctx, args...))
			args = append(args, next)
		}
	}
	discard := pipe.Do(ctx, "DISCARD")
	_, _ = pipe.Exec(ctx) // each try has its own answer
	if err := discard.Err(); err != nil {
		return nil, fmt.Errorf("asking for rights: %w", err)
	}
	var missing []string
	for i, command := range commands {
		if slices.ContainsFunc(tries[i], func(try *redis.Cmd) bool { return FaultOf(try.Err()) == FaultForbidden }) {
			missing = append(missing, command)
		}
	}
	return missing, nil
}
