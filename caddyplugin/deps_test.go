package caddyplugin

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestDependencies holds the fence around the production Caddy: whatever edge
// and backend share, no database driver and no test server comes along.
func TestDependencies(t *testing.T) {
	out, err := exec.Command("go", "list", "-deps", "-tags", "nobadger,nomysql,nopgx", "./...").CombinedOutput()
	require.NoError(t, err, "%s", out)
	require.Contains(t, string(out), "github.com/redis/go-redis/v9\n", "the list is that of the plugin")
	for _, unwanted := range []string{
		"gorm.io/", "github.com/go-sql-driver/", "sqlite", "modernc.org/", "miniredis", "gopher-lua",
		"seckill/backend", "seckill/standalone", "seckill/internal/servicetest", "stretchr/testify",
	} {
		for path := range strings.Lines(string(out)) {
			require.NotContains(t, path, unwanted)
		}
	}
}
