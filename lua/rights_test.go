package lua

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// The commands of every script are named, also of those that only an edge runs.
func TestRights(t *testing.T) {
	commands, err := rights()
	require.NoError(t, err)
	for _, command := range []string{
		"evalsha", "set", "get", "hset", "zadd", "zrangebylex", "zremrangebylex", "time", "pexpireat", "unlink",
	} {
		require.Contains(t, commands, command)
	}
}
