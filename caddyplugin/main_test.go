package caddyplugin

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/seckill-edge/seckill/internal/servicetest"
)

// TestMain lets nothing of ours run on. Two parts of Caddy do: the admin server
// outlives caddy.Stop by design, and a lock file's keeper notices within seconds
// that the lock is gone.
func TestMain(m *testing.M) {
	goleak.VerifyTestMain(servicetest.Main(m),
		goleak.IgnoreAnyFunction("github.com/caddyserver/caddy/v2.replaceLocalAdminServer.func2"),
		goleak.IgnoreAnyFunction("github.com/caddyserver/certmagic.keepLockfileFresh"),
	)
}
