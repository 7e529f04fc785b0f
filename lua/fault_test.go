package lua

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/seckill-edge/seckill/internal/servicetest"
)

// answer is an error as go-redis hands on what a server says.
type answer string

func (a answer) Error() string { return string(a) }
func (answer) RedisError()     {}

func TestFaultOf(t *testing.T) {
	for _, c := range []struct {
		err  error
		want Fault
	}{
		{nil, FaultNone},
		{redis.ErrPoolTimeout, FaultNotSent},
		{fmt.Errorf("calling: %w", redis.ErrClosed), FaultNotSent},
		{context.DeadlineExceeded, FaultUnanswered},
		{errors.New("EOF"), FaultUnanswered},
		{ErrDamaged, FaultPermanent},
		{fmt.Errorf("settle: %w", ErrReply), FaultPermanent},
		{answer("READONLY You can't write against a read only replica. script: d, on @user_script:1."), FaultRefused},
		{answer("LOADING Redis is loading the dataset in memory"), FaultRefused},
		{answer("BUSY Redis is busy running a script."), FaultRefused},
		{answer("TRYAGAIN Multiple keys request during rehashing of slot"), FaultRefused},
		{answer("CLUSTERDOWN Hash slot not served"), FaultRefused},
		{answer("MASTERDOWN Link with MASTER is down"), FaultRefused},
		{answer("ERR max number of clients reached"), FaultRefused},
		{answer("NEWCODE that this program does not know"), FaultRefused},
		{answer("NOPERM this user has no permissions"), FaultForbidden},
		{answer("ERR unknown command 'EVALSHA', with args beginning with: "), FaultForbidden},
		{answer("CROSSSLOT Keys in request don't hash to the same slot"), FaultPermanent},
		{answer("ERR user_script:1: a fault of this program script: 47e3, on @user_script:1."), FaultPermanent},
		// Words in the text decide nothing.
		{answer("OOM a script named WRONGTYPE"), FaultRefused},
		// As Redis 6.2 reports a command's error inside a script.
		{answer("ERR Error running script (call to f_" + strings.Repeat("0a", 20) + "): @user_script:3: @user_script: 3: -READONLY You can't write against a read only replica."), FaultRefused},
		{answer("ERR Error running script (call to f_" + strings.Repeat("0a", 20) + "): @user_script:3: @user_script: 3: -OOM command not allowed"), FaultRefused},
		{answer("ERR Error running script (call to f_" + strings.Repeat("0a", 20) + "): @user_script:3: WRONGTYPE Operation against a key"), FaultPermanent},
		{answer("ERR Error running script (call to f_" + strings.Repeat("0a", 20) + "): @user_script:3: @user_script: 3: The user executing the script can't run this command or subcommand"), FaultForbidden},
		// As Redis 7.2 reports a right that is missing inside one.
		{answer("ERR ACL failure in script: User edge has no permissions to run the 'hset' command script: 47e3, on @user_script:1."), FaultForbidden},
	} {
		require.Equal(t, c.want, FaultOf(c.err), "%v", c.err)
	}
}

func TestWhatMayHaveRun(t *testing.T) {
	for _, c := range []struct {
		err  error
		want bool
	}{
		{nil, true},
		{context.DeadlineExceeded, true},
		{fmt.Errorf("reserve: %w", ErrReply), true},
		{redis.ErrPoolTimeout, false},
		{answer("LOADING Redis is loading the dataset in memory"), false},
		{answer("NOPERM this user has no permissions"), false},
		{answer("WRONGTYPE Operation against a key"), false},
		{ErrDamaged, false},
	} {
		require.Equal(t, c.want, MayHaveRun(c.err), "%v", c.err)
	}
}

func TestFaults(t *testing.T) {
	for f := FaultNone; f <= FaultPermanent; f++ {
		require.Equal(t, f != FaultNone && f != FaultPermanent, f.Transient(), f)
		require.NotEqual(t, "unknown", f.String())
	}
}

// TestFaultsOfAServer brings a real Redis into a state and sees what it answers to a
// script that writes.
func TestFaultsOfAServer(t *testing.T) {
	if testing.Short() {
		return // only a real Redis has these states
	}
	dir := t.TempDir()
	server, err := servicetest.StartRedis(t.Context(), dir, "--enable-protected-configs", "yes")
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, server.Kill()) })
	admin := connect(t, server.URL())
	as := func(user string) redis.UniversalClient {
		return connect(t, strings.Replace(server.URL(), "redis://", "redis://"+user+"@", 1))
	}
	do := func(args ...any) { require.NoError(t, admin.Do(t.Context(), args...).Err()) }
	set := func(name, value string) { do("CONFIG", "SET", name, value) }
	write := func(c redis.UniversalClient) error {
		return c.Eval(t.Context(), "return redis.call('SET', KEYS[1], '1')", []string{"seckill:k"}).Err()
	}
	require.NoError(t, write(admin))
	do("ACL", "SETUSER", "edge", "on", ">pw", "~*", "&*", "+@all", "-set")
	do("ACL", "SETUSER", "narrow", "on", ">pw", "~other:*", "&*", "+@all")

	for _, c := range []struct {
		name             string
		begin, end       func()
		client           redis.UniversalClient
		want, afterwards Fault
		beginsWith       string
	}{
		{
			name: "too few replicas", want: FaultRefused, beginsWith: "NOREPLICAS ",
			begin: func() { set("min-replicas-to-write", "1") }, end: func() { set("min-replicas-to-write", "0") },
		},
		{
			name: "memory full", want: FaultRefused, beginsWith: "OOM ",
			begin: func() { set("maxmemory", "1") }, end: func() { set("maxmemory", "0") },
		},
		{
			name: "a replica", want: FaultRefused, beginsWith: "READONLY ",
			begin: func() { do("REPLICAOF", "127.0.0.1", "1") }, end: func() { do("REPLICAOF", "NO", "ONE") },
		},
		{
			name: "disk", want: FaultRefused, beginsWith: "MISCONF ",
			begin: func() {
				require.NoError(t, os.Mkdir(filepath.Join(dir, "no.rdb"), 0o700))
				set("dbfilename", "no.rdb")
				set("save", "1 1")
				_ = admin.BgSave(t.Context())
				servicetest.Eventually(t, func() bool { return write(admin) != nil })
			},
			end: func() { set("save", ""); set("stop-writes-on-bgsave-error", "no") },
		},
		{name: "a right to a command", client: as("edge:pw"), want: FaultForbidden, afterwards: FaultForbidden},
		{name: "a right to a key", client: as("narrow:pw"), want: FaultForbidden, afterwards: FaultForbidden, beginsWith: "NOPERM "},
		{name: "the password", client: as("edge:wrong"), want: FaultForbidden, afterwards: FaultForbidden, beginsWith: "WRONGPASS "},
	} {
		t.Run(c.name, func(t *testing.T) {
			if c.client == nil {
				c.client = admin
			}
			if c.begin != nil {
				c.begin()
			}
			err := write(c.client)
			if c.end != nil {
				c.end()
			}
			require.Error(t, err)
			require.True(t, strings.HasPrefix(err.Error(), c.beginsWith), "%v", err)
			require.Equal(t, c.want, FaultOf(err), "%v", err)
			require.Equal(t, c.afterwards, FaultOf(write(c.client)))
		})
	}
	t.Run("a key of another type", func(t *testing.T) {
		err := admin.Eval(t.Context(), "return redis.call('HGET', KEYS[1], 'x')", []string{"seckill:k"}).Err()
		require.Equal(t, FaultPermanent, FaultOf(err), "%v", err)
	})
	t.Run("no server", func(t *testing.T) {
		require.NoError(t, server.Stop())
		require.Equal(t, FaultNotSent, FaultOf(write(admin)))
	})
}
